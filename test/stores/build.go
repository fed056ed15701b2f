package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// builder builds programs and caches them under a digest of their inputs, so that all clones of
// the repository share the cache.
type builder struct {
	stores string // test/stores
	cache  string
}

// ensure builds a program unless it is cached, and returns its path.
func (b builder) ensure(ctx context.Context, name string) (string, error) {
	p, err := find(name)
	if err != nil {
		return "", err
	}
	key, err := b.key(p)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(b.cache, name+"-"+key)
	path := filepath.Join(dir, p.path)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(b.cache, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the cache folder: %w", err)
	}
	// The folder is renamed once it is complete. If two processes build the same program, one of
	// the results is kept.
	tmp, err := os.MkdirTemp(b.cache, ".building-")
	if err != nil {
		return "", fmt.Errorf("cannot make a build folder: %w", err)
	}
	defer os.RemoveAll(tmp)
	fmt.Fprintln(os.Stderr, "stores: building", name)
	if err := b.build(ctx, p, tmp); err != nil {
		return "", fmt.Errorf("cannot build %s: %w", name, err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // All users may run the programs.
		return "", fmt.Errorf("cannot open the build folder: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(path); there != nil {
			return "", fmt.Errorf("cannot keep %s: %w", name, err)
		}
	}
	return path, nil
}

func (b builder) build(ctx context.Context, p program, dir string) error {
	if p.pkg == "" {
		return b.install(ctx, p, dir)
	}
	source := filepath.Join(b.stores, p.module)
	if p.versioned != "" {
		own, err := b.copyModule(ctx, p)
		if err != nil {
			return err
		}
		defer os.RemoveAll(own)
		source = own
	}
	// The images that these programs are copied into have no C library.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(dir, p.path), p.pkg)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return quietly(cmd)
}

// copyModule copies a module, at its pinned version, to a writable folder, and adds the file with
// its version.
func (b builder) copyModule(ctx context.Context, p program) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", p.versioned)
	cmd.Dir = filepath.Join(b.stores, p.module)
	raw, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot fetch %s: %w: %s", p.versioned, err, raw)
	}
	m := struct{ Dir, Version string }{}
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", fmt.Errorf("cannot read where %s is: %w", p.versioned, err)
	}
	tmp, err := os.MkdirTemp(b.cache, ".building-")
	if err != nil {
		return "", fmt.Errorf("cannot make a build folder: %w", err)
	}
	if err := copyTree(tmp, m.Dir); err != nil {
		return "", fmt.Errorf("cannot copy %s: %w", p.versioned, err)
	}
	return tmp, os.WriteFile(filepath.Join(tmp, "build", "version", "version.txt"), []byte(m.Version+"\n"), 0o644)
}

// copyTree copies files to a folder in which files can be added, because the module cache is
// read-only.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), raw, 0o644)
	})
}

// install installs with npm exactly the packages of the lock file, without running their scripts.
func (b builder) install(ctx context.Context, p program, dir string) error {
	for _, name := range p.pins() {
		raw, err := os.ReadFile(filepath.Join(b.stores, p.module, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	return quietly(cmd)
}

// quietly runs a command. The error of a failure contains its output.
func quietly(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Args[0], err, out)
	}
	return nil
}

// key returns a digest of all inputs of a program.
func (b builder) key(p program) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, pattern := range p.pins() {
		files, err := filepath.Glob(filepath.Join(b.stores, p.module, pattern))
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("cannot find what a program is made of: %s in %s", pattern, p.module)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				return "", fmt.Errorf("cannot read what a program is made of: %w", err)
			}
			fmt.Fprintln(h, filepath.Base(f), len(raw))
			h.Write(raw)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}
