package folder

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/storeplane/storeplane/internal/backup"
)

// folderMode is the mode of a folder while it is filled.
const folderMode fs.FileMode = 0o700

// An Unpacking makes a folder of an archive.
type Unpacking struct {
	// Root is the folder, which is empty. No link leads out of it.
	Root *os.Root

	// Limit is the size that all files may have together, in bytes.
	Limit int64

	// Sync means that the folder is to survive the loss of the node once it is unpacked.
	Sync bool
}

// Unpack unpacks an archive. An error of the archive has the reason BackupCorrupt, unless reading it returns one with
// another reason, and one of the disk NoSpace if that is its cause. A part of the archive may be there after an error.
func (u Unpacking) Unpack(ctx context.Context, r io.Reader) error {
	archive := tar.NewReader(r)
	buffer := make([]byte, bufferSize)
	var folders []*tar.Header
	for left := u.Limit; ; {
		if ctx.Err() != nil {
			return backup.WithReason(backup.Interrupted, context.Cause(ctx))
		}
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return wrong(fmt.Errorf("cannot read the archive: %w", err))
		}
		name, err := accept(h)
		if err != nil {
			return wrong(err)
		}
		if h.Typeflag == tar.TypeDir {
			if err := u.Root.Mkdir(name, folderMode); err != nil {
				return cannotCreate(name, err)
			}
			folders = append(folders, h)
			continue
		}
		if left -= h.Size; left < 0 {
			return wrong(fmt.Errorf("cannot unpack the archive: its files have more than %d bytes, the size of the backup", u.Limit))
		}
		if err := u.write(name, h, archive, buffer); err != nil {
			return err
		}
	}
	return u.finish(folders)
}

// accept returns the name of an entry of an archive, as a path in the folder, or an error if there is no such entry
// in an archive of Pack.
func accept(h *tar.Header) (string, error) {
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
		return "", fmt.Errorf("cannot unpack %q: it is neither a file nor a folder", h.Name)
	}
	// A few bytes of a sparse file fill a disk.
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "", fmt.Errorf("cannot unpack %q: it is a sparse file", h.Name)
		}
	}
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	if name == "." || name != path.Clean(name) || !filepath.IsLocal(name) || strings.ContainsAny(name, "\\\x00") {
		return "", fmt.Errorf("cannot unpack %q: it is no path in the folder", h.Name)
	}
	return name, nil
}

// write writes a file.
func (u Unpacking) write(name string, h *tar.Header, from io.Reader, buffer []byte) error {
	f, err := u.Root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return cannotCreate(name, err)
	}
	to := &writer{to: f}
	_, err = io.CopyBuffer(to, onlyReader{from}, buffer)
	if to.err == nil && err != nil {
		_ = f.Close()
		return wrong(fmt.Errorf("cannot read %s in the archive: %w", name, err))
	}
	if err == nil {
		err = f.Chmod(fs.FileMode(h.Mode) & fs.ModePerm) //nolint:gosec // only the bits of permissions are used
	}
	if err == nil && u.Sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return disk(fmt.Errorf("cannot write %s: %w", name, err))
	}
	return nil
}

// finish sets the modes of the folders, which might forbid to write before, and syncs them.
func (u Unpacking) finish(folders []*tar.Header) error {
	for _, h := range slices.Backward(folders) {
		name := strings.TrimSuffix(h.Name, "/")
		if err := u.settle(name, fs.FileMode(h.Mode)&fs.ModePerm); err != nil { //nolint:gosec // only the bits of permissions are used
			return disk(fmt.Errorf("cannot write folder %s: %w", name, err))
		}
	}
	if !u.Sync {
		return nil
	}
	f, err := u.Root.Open(".")
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return disk(fmt.Errorf("cannot write to the folder: %w", err))
	}
	return nil
}

// settle gives a folder its mode.
func (u Unpacking) settle(name string, mode fs.FileMode) error {
	f, err := u.Root.Open(name)
	if err != nil {
		return err
	}
	err = f.Chmod(mode)
	if err == nil && u.Sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// A writer keeps the error of writing.
type writer struct {
	to  io.Writer
	err error
}

// Write writes to the file.
func (w *writer) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// wrong gives an error of the archive its reason, unless what reads it has given it one.
func wrong(err error) error { return backup.WithReason(backup.BackupCorrupt, err) }

// cannotCreate returns the error of an entry that cannot be created: one that is twice in the archive, or is in a
// folder that is not, is an error of the archive.
func cannotCreate(name string, err error) error {
	err = fmt.Errorf("cannot create %s: %w", name, err)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return wrong(err)
	}
	return disk(err)
}

// disk gives an error of the disk its reason.
func disk(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return backup.WithReason(backup.NoSpace, err)
	}
	return backup.WithReason(backup.ToolFailed, err)
}
