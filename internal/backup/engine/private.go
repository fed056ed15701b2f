package engine

import (
	"os"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/backup"
)

// A Private is a folder that no other user can read, for passwords that a tool takes from a file.
type Private string

// NewPrivate creates a Private. Close removes it.
func NewPrivate() (Private, error) {
	dir, err := os.MkdirTemp("", "backup-")
	if err != nil {
		return "", backup.Errorf(ScratchReason(err.Error(), backup.ToolFailed), "cannot make a folder: %w", err)
	}
	return Private(dir), nil
}

// Write writes a file, and returns its path.
func (p Private) Write(name, content string) (string, error) {
	path := filepath.Join(string(p), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return "", backup.Errorf(ScratchReason(err.Error(), backup.ToolFailed), "cannot write a file for the tool: %w", err)
	}
	return path, nil
}

// Close removes the folder.
func (p Private) Close() {
	if p != "" {
		_ = os.RemoveAll(string(p))
	}
}
