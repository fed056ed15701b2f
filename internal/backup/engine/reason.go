package engine

import (
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
)

// ScratchReason returns NoSpace if an output is about a full disk, and other if not.
func ScratchReason(words string, other backup.Reason) backup.Reason {
	for _, sign := range []string{"No space left on device", "no space left on device", "Disk quota exceeded", "disk quota exceeded", "Disk full", "disk is full", "' is full", "Errcode: 28", "error: 28", "database or disk is full"} {
		if strings.Contains(words, sign) {
			return backup.NoSpace
		}
	}
	return other
}

// Contains reports whether words contains one of the signs.
func Contains(words string, signs ...string) bool {
	for _, sign := range signs {
		if strings.Contains(words, sign) {
			return true
		}
	}
	return false
}
