package pgbackrest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Version returns the version that pgBackRest reports, such as "pgBackRest 2.55.1".
func Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, Program, "version").Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask pgBackRest for its version: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// HasBlocks reports whether incremental backups of a version may contain the blocks that have
// changed instead of whole files. pgBackRest writes them since 2.46, and restores all of them
// correctly since 2.55 (https://pgbackrest.org/release.html).
func HasBlocks(version string) bool {
	const major, minor = 2, 55
	var a, b int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "pgBackRest "), "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}
