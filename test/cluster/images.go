package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// imageCmd is the command image.
type imageCmd struct {
	File     string            `help:"Dockerfile to build; it gets the base image as build argument BASE." required:"" type:"existingfile"`
	Context  string            `help:"Folder that the Dockerfile copies from. All of it but .git counts as input." required:"" type:"existingdir"`
	Tag      string            `help:"Name of the image, with its tag." required:""`
	BuildArg map[string]string `help:"Further build arguments." mapsep:"none" placeholder:"NAME=VALUE"`
	Base     string            `help:"What to build on: debian, scratch, or the name of an image that was built before." default:"debian"`
	Tar      string            `help:"Write the image to this file too, in docker-archive format." type:"path"`
	Push     bool              `help:"Push the image to the registry of its name, by plain HTTP."`
	Version  string            `help:"Command of the image that prints a version; with --push, the image gets that as a tag too." placeholder:"COMMAND"`
}

// Run builds the image unless nothing has changed.
func (cmd *imageCmd) Run(ctx context.Context, c *cluster) error {
	if err := needRoot(); err != nil {
		return fmt.Errorf("cannot build images: %w", err)
	}
	base, baseID, err := c.findBase(ctx, cmd.Base)
	if err != nil {
		return err
	}
	note, err := c.buildImage(ctx, image{
		file: cmd.File, context: cmd.Context, tag: cmd.Tag, args: cmd.BuildArg, base: base, baseID: baseID, tar: cmd.Tar, push: cmd.Push, version: cmd.Version,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", cmd.Tag, note)
	return nil
}

// image describes an image to build: its inputs, and where it is saved or pushed.
type image struct {
	file    string
	context string
	tag     string
	args    map[string]string
	base    string
	baseID  string // of a base whose name stays the same when it is built again
	tar     string
	push    bool
	version string // command in the image that prints the second tag
}

// memory is stored about the last build of an image.
type memory struct {
	Key     string `json:"key"`     // of the inputs
	ID      string `json:"id"`      // in buildah's storage
	Digest  string `json:"digest"`  // of the pushed image
	Version string `json:"version"` // of the program in the image, the second tag
	Tar     string `json:"tar"`     // path, size and time of the archive
}

// buildImage builds, saves and pushes an image as far as that is not yet done for its present
// inputs. It returns a note for the user about what it did.
func (c *cluster) buildImage(ctx context.Context, img image) (string, error) {
	if _, err := installPackages(ctx, c.buildLog("apt"), imagePackages()); err != nil {
		return "", err
	}
	key, err := img.key()
	if err != nil {
		return "", err
	}
	path := img.memoryPath(c.cache)
	var mem memory
	if readJSON(path, &mem) && img.done(ctx, mem, key) {
		return "unchanged", nil
	}

	// One build at a time: builds share the cache of Debian packages, which apt locks, and the
	// machine's few cores.
	unlock, err := lock(ctx, filepath.Join(c.cache, "images", "lock"), "building images")
	if err != nil {
		return "", err
	}
	defer unlock()

	note := "unchanged"
	mem = memory{} // the run that held the lock may have built the image
	if !readJSON(path, &mem) || mem.Key != key || imageID(ctx, img.tag) != mem.ID {
		note = "built"
		id, err := c.bud(ctx, img)
		if err != nil {
			return "", err
		}
		mem = memory{Key: key, ID: id}
	}
	if !img.saved(mem) {
		if err := writeArchive(ctx, img); err != nil {
			return "", err
		}
		mem.Tar, note = fileMark(img.tar), note+", saved"
	}
	if !img.pushed(ctx, mem) {
		if mem, err = c.pushTags(ctx, img, mem); err != nil {
			return "", err
		}
		note += ", pushed as " + strings.Join(img.tags(mem), " and ")
	}
	return note, writeJSON(path, mem)
}

// memoryPath returns the file in which the memory of an image is stored.
func (img image) memoryPath(cache string) string {
	name := sha256.Sum256([]byte(img.tag))
	return filepath.Join(cache, "images", hex.EncodeToString(name[:])[:16]+".json")
}

// done reports whether an image was built from its present inputs, identified by key, and is
// saved and pushed as requested.
func (img image) done(ctx context.Context, mem memory, key string) bool {
	if mem.Key != key || !img.saved(mem) || !img.pushed(ctx, mem) {
		return false
	}
	// Once an image is saved or pushed, buildah's copy is no longer needed.
	return img.tar != "" || img.push || imageID(ctx, img.tag) == mem.ID
}

func (img image) saved(mem memory) bool {
	return img.tar == "" || (mem.Tar != "" && mem.Tar == fileMark(img.tar))
}

func (img image) pushed(ctx context.Context, mem memory) bool {
	if !img.push {
		return true
	}
	if mem.Digest == "" || (img.version != "" && mem.Version == "") {
		return false
	}
	return !slices.ContainsFunc(img.tags(mem), func(tag string) bool { return pushedDigest(ctx, tag) != mem.Digest })
}

// tags returns the names under which an image is pushed.
func (img image) tags(mem memory) []string {
	if img.version == "" || mem.Version == "" {
		return []string{img.tag}
	}
	return []string{img.tag, withTag(img.tag, mem.Version)}
}

// bud builds the image from its Dockerfile and returns its ID.
func (c *cluster) bud(ctx context.Context, img image) (string, error) {
	debs := filepath.Join(c.cache, "debs")
	if err := os.MkdirAll(filepath.Join(debs, "partial"), 0o755); err != nil {
		return "", fmt.Errorf("cannot make the cache of Debian packages: %w", err)
	}
	argv := []string{
		"buildah", "bud", "--isolation", "chroot", "--network", "host", "--pull-never",
		// buildah 1.28 compares only the text of an ENV line, so it takes an ENV with a build
		// argument from its cache even if the argument's value has changed. In the Dockerfiles on
		// Debian a RUN with the argument comes before it. From scratch, nothing is worth caching.
		fmt.Sprintf("--layers=%t", img.base != "scratch"),
		"--volume", debs + ":/var/cache/apt/archives",
		"--build-arg", "BASE=" + img.base,
		"--file", img.file, "--tag", img.tag,
	}
	for _, name := range slices.Sorted(maps.Keys(img.args)) {
		argv = append(argv, "--build-arg", name+"="+img.args[name])
	}
	defer ticker("building image " + img.tag)()
	log := c.buildLog(filepath.Base(filepath.Dir(img.file)))
	if _, err := run(ctx, command{log: log, argv: append(argv, img.context)}); err != nil {
		return "", fmt.Errorf("cannot build image %s: %w", img.tag, err)
	}
	return imageID(ctx, img.tag), nil
}

func writeArchive(ctx context.Context, img image) error {
	if err := os.MkdirAll(filepath.Dir(img.tar), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of %s: %w", img.tar, err)
	}
	tmp := img.tar + ".tmp"
	_ = os.Remove(tmp) // buildah does not add to an existing archive
	if _, err := sh(ctx, "buildah", "push", "--quiet", img.tag, "docker-archive:"+tmp+":"+img.tag); err != nil {
		return fmt.Errorf("cannot save image %s: %w", img.tag, err)
	}
	if err := os.Rename(tmp, img.tar); err != nil {
		return fmt.Errorf("cannot save image %s: %w", img.tag, err)
	}
	return nil
}

// pushTags pushes an image under all its names and returns mem with the version and the digest.
func (c *cluster) pushTags(ctx context.Context, img image, mem memory) (memory, error) {
	if img.version != "" && mem.Version == "" {
		version, err := imageVersion(ctx, img.tag, img.version)
		if err != nil {
			return memory{}, err
		}
		mem.Version = version
	}
	for _, tag := range img.tags(mem) {
		digest, err := c.pushImage(ctx, img.tag, tag)
		if err != nil {
			return memory{}, err
		}
		mem.Digest = digest
	}
	return mem, nil
}

// pushImage pushes image ref of buildah's storage as tag and returns its digest.
func (c *cluster) pushImage(ctx context.Context, ref, tag string) (string, error) {
	if err := checkReachable(tag); err != nil {
		return "", err
	}
	digest := filepath.Join(c.cache, "images", "digest")
	// Only the cluster's own registry, which other machines cannot reach, is used without TLS.
	ours := strings.HasPrefix(tag, registryAddress+"/")
	_, err := sh(ctx, "buildah", "push", "--quiet", fmt.Sprintf("--tls-verify=%t", !ours), "--format", "oci", "--compression-level", "1", "--digestfile", digest, ref, "docker://"+tag)
	if err != nil {
		return "", fmt.Errorf("cannot push image %s: %w", tag, err)
	}
	if ours {
		c.forgetImage(ctx, tag)
	}
	b, err := os.ReadFile(digest)
	if err != nil {
		return "", fmt.Errorf("cannot read the digest of image %s: %w", tag, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// forgetImage removes an image from the node, so that the next pod pulls the new one: pods use
// the image that the node has, which is older. It does nothing if there is no node.
func (c *cluster) forgetImage(ctx context.Context, tag string) {
	if _, err := os.Stat(c.containerdSocket()); err == nil {
		_, _ = sh(ctx, append([]string{"ctr", "--address", c.containerdSocket(), "--namespace", "k8s.io", "images", "rm"}, namesOnNode(tag)...)...)
	}
}

// imageID returns an image's ID in buildah's storage, or "" if it is not there.
func imageID(ctx context.Context, ref string) string {
	out, err := sh(ctx, "buildah", "inspect", "--type", "image", "--format", "{{.FromImageID}}", ref)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// key returns a digest of all inputs of an image.
func (img image) key() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, img.base)
	if img.baseID != "" {
		fmt.Fprintln(h, img.baseID)
	}
	for _, name := range slices.Sorted(maps.Keys(img.args)) {
		fmt.Fprintf(h, "%q=%q\n", name, img.args[name])
	}
	if err := hashFile(h, img.file); err != nil {
		return "", err
	}
	if err := hashTree(h, img.context); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashTree writes the names, modes and contents of all files under a folder to w, except for
// .git.
func hashTree(w io.Writer, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", dir, err)
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", path, err)
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", path, err)
		}
		fmt.Fprintf(w, "%q %s", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			fmt.Fprintln(w, info.Size())
			return hashFile(w, path)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return fmt.Errorf("cannot read link %s: %w", path, err)
			}
			fmt.Fprintf(w, "%q\n", target)
		}
		return nil
	})
}

// fileMark returns the path, size and time of a file, from which a change of a large file is
// detected without reading it, or "" if there is no file.
func fileMark(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %s", path, info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
}

// buildLog returns the path of the log of a long command. It is in the cache, because down
// removes the state folder.
func (c *cluster) buildLog(name string) string { return filepath.Join(c.cache, "logs", name+".log") }
