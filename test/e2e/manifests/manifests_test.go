package manifests

import (
	"io/fs"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	names, err := fs.Glob(files, "*/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("cannot list manifests: %v", err)
	}
	values := map[string]string{"NAMESPACE": "there", "NAME": "it", "SIZE": "3", "VERSION": "17", "SUITE": "e2e-suite", "VOLUME": "volume", "FOLDER": "/tmp/volume", "NODE": "node"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			us, err := ReadAll(name, values)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range us {
				if u.GetKind() == "" || u.GetName() == "" || strings.Contains(u.GetName(), "$") {
					t.Errorf("\nEvery manifest is an object with a kind and a name\nReadAll(%s): %v", name, u.Object)
				}
			}
		})
	}
}
