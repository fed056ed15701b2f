package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

func TestKeeperRestoresManifests(t *testing.T) {
	const manifest = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[]}`
	const path = "/v2/storeplane/test/manifests/v1"
	dir := t.TempDir()

	first, err := newKeeper(registry.New(), dir)
	if err != nil {
		t.Fatal(err)
	}
	put := httptest.NewRequest(http.MethodPut, path, strings.NewReader(manifest))
	put.Header.Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	w := httptest.NewRecorder()
	first.ServeHTTP(w, put)
	if w.Code != http.StatusCreated {
		t.Fatalf("PUT: got %d, want %d: %s", w.Code, http.StatusCreated, w.Body)
	}

	second, err := newKeeper(registry.New(), dir)
	if err != nil {
		t.Fatal(err)
	}
	w = httptest.NewRecorder()
	second.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != http.StatusOK || w.Body.String() != manifest {
		t.Errorf("GET after a restart: got %d %q, want %d %q", w.Code, w.Body, http.StatusOK, manifest)
	}
}
