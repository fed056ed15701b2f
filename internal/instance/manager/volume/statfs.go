package volume

import (
	"fmt"
	"syscall"
)

// Usage of the file system at a path: bytes used, and bytes that there are.
func Usage(path string) (uint64, uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, fmt.Errorf("cannot look at the volume: %w", err)
	}
	block := uint64(s.Bsize) //nolint:gosec // a block has a size
	// What is kept for root is nobody's to use, so it counts as used up.
	used := s.Blocks - s.Bfree
	return used * block, (used + s.Bavail) * block, nil
}
