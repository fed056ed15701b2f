package harness

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// Kubectl runs kubectl and returns its standard output.
func Kubectl(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %v: %w: %s", args, err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.String(), nil
}
