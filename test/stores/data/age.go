package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type ageCmd struct {
	Folder string `arg:"" help:"Folder of a backup."`
	Days   int    `arg:"" help:"By how many days it should be older."`
}

// idFormat is the format of the time with which a backup's ID begins.
const idFormat = "20060102T150405Z"

// Run copies the backup to a folder of an older one and prints the older one's ID.
func (c *ageCmd) Run() error {
	id, err := older(filepath.Base(c.Folder), c.Days)
	if err != nil {
		return err
	}
	to := filepath.Join(filepath.Dir(c.Folder), id)
	if err := os.CopyFS(to, os.DirFS(c.Folder)); err != nil {
		return fmt.Errorf("cannot copy %s: %w", c.Folder, err)
	}
	manifest := filepath.Join(to, "manifest.json")
	raw, err := os.ReadFile(manifest)
	if err != nil {
		return fmt.Errorf("cannot read the manifest of %s: %w", c.Folder, err)
	}
	if raw, err = agedManifest(raw, id, c.Days); err != nil {
		return err
	}
	if err := os.WriteFile(manifest, raw, 0o600); err != nil {
		return fmt.Errorf("cannot write %s: %w", manifest, err)
	}
	fmt.Println(id)
	return nil
}

// older returns the ID of a backup that began the given number of days earlier.
func older(id string, days int) (string, error) {
	begun, rest, _ := strings.Cut(id, "-")
	t, err := time.Parse(idFormat, begun)
	if err != nil {
		return "", fmt.Errorf("cannot read the id %q: %w", id, err)
	}
	return t.AddDate(0, 0, -days).Format(idFormat) + "-" + rest, nil
}

// agedManifest returns the manifest with another ID, and with times that are the given number of
// days earlier.
func agedManifest(raw []byte, id string, days int) ([]byte, error) {
	m := map[string]any{}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("cannot read a manifest: %w", err)
	}
	m["id"] = id
	for _, key := range []string{"started", "finished"} {
		text, _ := m[key].(string)
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return nil, fmt.Errorf("cannot read when a backup was %s: %w", key, err)
		}
		m[key] = t.AddDate(0, 0, -days)
	}
	out, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a manifest: %w", err)
	}
	return out, nil
}
