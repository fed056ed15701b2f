package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestImageKey(t *testing.T) {
	dir := t.TempDir()
	file, content := filepath.Join(dir, "Dockerfile"), filepath.Join(dir, "context")
	write := func(path, text string) {
		t.Helper()
		if err := writeFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "FROM scratch\n")
	write(filepath.Join(content, "a", "b"), "text")
	base := image{file: file, context: content, base: "scratch", args: map[string]string{"A": "1"}}
	key := func(img image) string {
		t.Helper()
		k, err := img.key()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := key(base)

	if key(base) != first {
		t.Error("the same inputs make two keys")
	}
	write(filepath.Join(content, ".git", "HEAD"), "ref")
	if key(base) != first {
		t.Error("a commit changes the key")
	}

	changes := map[string]func(*image){
		"Base":     func(i *image) { i.base = "debian" },
		"BaseID":   func(i *image) { i.baseID = "built anew" },
		"Argument": func(i *image) { i.args = map[string]string{"A": "2"} },
		"Content":  func(*image) { write(filepath.Join(content, "a", "b"), "other") },
		"Mode": func(*image) {
			if err := os.Chmod(filepath.Join(content, "a", "b"), 0o755); err != nil { //nolint:gosec // The mode is the change under test.
				t.Fatal(err)
			}
		},
		"Dockerfile": func(*image) { write(file, "FROM scratch\nUSER 1\n") },
	}
	for name, change := range changes {
		img := base
		before := key(img)
		change(&img)
		if key(img) == before {
			t.Errorf("%s: a change leaves the key as it was", name)
		}
	}
}
