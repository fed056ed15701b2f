package pgbackrest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Blocks tells whether incremental backups can hold the blocks that have changed
// instead of whole files. PgBackRest does so since 2.46, and has restored all of
// them since 2.55 (https://pgbackrest.org/release.html).
func Blocks(ctx context.Context) (bool, error) {
	out, err := exec.CommandContext(ctx, Program, "version").Output()
	if err != nil {
		return false, fmt.Errorf("cannot ask pgBackRest for its version: %w", err)
	}
	return hasBlocks(string(out)), nil
}

func hasBlocks(version string) bool {
	const major, minor = 2, 55
	var a, b int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "pgBackRest "), "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}
