package volume

import (
	"fmt"
	"syscall"
)

// Usage returns the used bytes of the file system at a path, and its size in bytes.
func Usage(path string) (uint64, uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, fmt.Errorf("cannot measure the volume: %w", err)
	}
	block := uint64(s.Bsize) //nolint:gosec // a block size is positive
	// Blocks that are reserved for root count neither as used nor to the size.
	used := s.Blocks - s.Bfree
	return used * block, (used + s.Bavail) * block, nil
}
