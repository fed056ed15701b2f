package folder

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// bufferSize is how much of a file is copied at once.
const bufferSize = 256 << 10

// Pack writes what is in a folder as an archive, in the order of the names. It leaves out what the function
// returns true for, which is called with paths relative to the folder, and whether they are folders. No link leads out
// of the folder, as other programs may have written there.
func Pack(ctx context.Context, root *os.Root, w io.Writer, leaveOut func(path string, isFolder bool) bool) error {
	archive := tar.NewWriter(w)
	buffer := make([]byte, bufferSize)
	err := fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("cannot read the folder: %w", err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case path == ".":
			return nil
		case !leaveOut(path, e.IsDir()):
			return add(archive, root, path, e, buffer)
		case e.IsDir():
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

// add adds a file or a folder to an archive.
func add(archive *tar.Writer, root *os.Root, path string, e fs.DirEntry, buffer []byte) error {
	if !e.IsDir() && !e.Type().IsRegular() {
		return neither(path, e.Type())
	}
	// Opening a pipe that has replaced the file would wait for a writer.
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	h := &tar.Header{Name: filepath.ToSlash(path), Mode: int64(info.Mode().Perm())}
	switch {
	case info.IsDir() && e.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return archive.WriteHeader(h)
	case !info.Mode().IsRegular():
		return neither(path, info.Mode().Type())
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	// A file that grows meanwhile is not read to its end, and for one that shrinks Flush fails.
	if _, err := io.CopyBuffer(onlyWriter{archive}, onlyReader{io.LimitReader(f, h.Size)}, buffer); err != nil {
		return err
	}
	if err := archive.Flush(); err != nil {
		return fmt.Errorf("cannot archive %s: %w", path, err)
	}
	return nil
}

func neither(path string, is fs.FileMode) error {
	return fmt.Errorf("cannot archive %s: it is neither a file nor a folder, but of type %s", path, is)
}

// These types hide the shortcuts for copying that files have, which would bypass the buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)
