// Package mounted reports when the files that the kubelet mounts have changed.
package mounted

import (
	"os"
	"path/filepath"
)

// Version returns a text that changes with the files of a mounted directory, or "" for another
// directory. The kubelet replaces the target of a link when it writes them, so no file is read.
func Version(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		return ""
	}
	return target
}
