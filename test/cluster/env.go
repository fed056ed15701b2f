package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// peoplesTools are the programs that developers and tests use.
var peoplesTools = []string{"kubectl", "helm", "crane", "crossplane", "crossplane-core"}

// envCmd is the command env.
type envCmd struct{}

// Run prints export lines for the shell to evaluate.
func (*envCmd) Run(ctx context.Context, c *cluster) error {
	if _, err := c.tools.ensure(ctx, peoplesTools...); err != nil {
		return err
	}
	bin, err := c.linkTools()
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%q\nexport REGISTRY=%q\nexport PATH=%q:\"$PATH\"\n", c.kubeconfig(), registry, bin)
	return nil
}

// linkTools creates a folder with links to peoplesTools and returns its path. Its name depends on
// the targets, so that clones of the repository at different versions do not disturb each other.
func (c *cluster) linkTools() (string, error) {
	h := sha256.New()
	for _, name := range peoplesTools {
		fmt.Fprintln(h, c.tools.path(name))
	}
	bin := filepath.Join(c.tools.cache, "bin-"+hex.EncodeToString(h.Sum(nil))[:12])
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the folder of tools: %w", err)
	}
	for _, name := range peoplesTools {
		link := filepath.Join(bin, name)
		if to, err := os.Readlink(link); err == nil && to == c.tools.path(name) {
			continue
		}
		tmp := link + ".tmp"
		_ = os.Remove(tmp)
		if err := os.Symlink(c.tools.path(name), tmp); err != nil {
			return "", fmt.Errorf("cannot link tool %s: %w", name, err)
		}
		if err := os.Rename(tmp, link); err != nil {
			return "", fmt.Errorf("cannot link tool %s: %w", name, err)
		}
	}
	return bin, nil
}
