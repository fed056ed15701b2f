package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// contents are the contents of an image's file system.
type contents struct {
	// distribution is that of the image, for example debian-13, or "" where it has none.
	distribution string

	packages []debianPackage

	// modules are those of Go programs, by path and version.
	modules map[module]bool
}

// debianPackage is an installed package. Its source is the source package if that has another name
// or version, with the version after an @.
type debianPackage struct{ name, version, architecture, source string }

type module struct{ path, version string }

// The files in which a Debian system lists its packages, and names itself.
const (
	dpkgStatus = "var/lib/dpkg/status"
	osRelease  = "usr/lib/os-release"
)

// contentsOf returns the contents of an image as it is unpacked, without what a later layer
// removes.
func contentsOf(img v1.Image) (*contents, error) {
	files := mutate.Extract(img)
	defer func() { _ = files.Close() }()
	c := &contents{modules: map[module]bool{}}
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := c.add(strings.TrimPrefix(strings.TrimPrefix(h.Name, "."), "/"), h.FileInfo().Mode().Perm()&0o111 != 0, r); err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func (c *contents) add(path string, executable bool, file io.Reader) error {
	var err error
	switch {
	case path == dpkgStatus:
		c.packages, err = packagesOf(file)
	case path == osRelease:
		c.distribution, err = distributionOf(file)
	case executable:
		err = c.addProgram(file)
	}
	return err
}

// packagesOf returns the installed packages in a dpkg status file.
func packagesOf(file io.Reader) ([]debianPackage, error) {
	var out []debianPackage
	for r := textproto.NewReader(bufio.NewReader(file)); ; {
		p, err := r.ReadMIMEHeader()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if strings.HasSuffix(p.Get("Status"), " installed") {
			// The version of the source is in parentheses if it differs.
			source := strings.TrimSuffix(strings.Replace(p.Get("Source"), " (", "@", 1), ")")
			out = append(out, debianPackage{name: p.Get("Package"), version: p.Get("Version"), architecture: p.Get("Architecture"), source: source})
		}
		if err != nil {
			return out, nil //nolint:nilerr // it is the end of the file
		}
	}
}

// distributionOf returns the ID and the version in an os-release file.
func distributionOf(file io.Reader) (string, error) {
	values := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "=")
		values[key] = strings.Trim(value, `"'`)
	}
	return strings.TrimSuffix(values["ID"]+"-"+values["VERSION_ID"], "-"), lines.Err()
}

// addProgram adds the modules of a program that was built by Go, and nothing for another file.
func (c *contents) addProgram(file io.Reader) error {
	head := bufio.NewReader(file)
	if magic, err := head.Peek(4); err != nil || !bytes.Equal(magic, []byte("\x7fELF")) {
		return nil //nolint:nilerr // it is no program
	}
	program, err := io.ReadAll(head)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil //nolint:nilerr // it was built by another compiler
	}
	c.modules[module{path: "stdlib", version: strings.TrimPrefix(info.GoVersion, "go")}] = true
	for _, m := range append(info.Deps, &info.Main) {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Path != "" {
			c.modules[module{path: m.Path, version: m.Version}] = true
		}
	}
	return nil
}
