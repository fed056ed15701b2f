package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keeper passes requests on to a registry and saves the manifests that are pushed. newKeeper
// pushes the saved ones to the registry again.
type keeper struct {
	next http.Handler
	dir  string
}

// kept is a manifest as it was pushed.
type kept struct {
	Path string    `json:"path"`
	Type string    `json:"type"`
	Body []byte    `json:"body"`
	At   time.Time `json:"at"`
}

func newKeeper(next http.Handler, dir string) (*keeper, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // It holds no secret.
		return nil, fmt.Errorf("cannot make the folder of manifests: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("cannot list manifests: %w", err)
	}
	var all []kept
	for _, f := range files {
		b, err := os.ReadFile(f) //nolint:gosec // A file that keep wrote.
		if err != nil {
			return nil, fmt.Errorf("cannot read manifest %s: %w", f, err)
		}
		var m kept
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, fmt.Errorf("cannot read manifest %s: %w", f, err)
		}
		all = append(all, m)
	}
	// In the order in which they were pushed: the registry rejects an index before the manifests
	// that it lists.
	slices.SortFunc(all, func(a, b kept) int { return a.At.Compare(b.At) })
	k := &keeper{next: next, dir: dir}
	for _, m := range all {
		if w := k.store(m); w.Code != http.StatusCreated {
			return nil, fmt.Errorf("cannot restore manifest %s: the registry answers %d", m.Path, w.Code)
		}
	}
	return k, nil
}

// ServeHTTP passes a request on. It saves a manifest that the registry accepts, and removes one
// that is deleted.
func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/v2/") || !strings.Contains(r.URL.Path, "/manifests/") || (r.Method != http.MethodPut && r.Method != http.MethodDelete) {
		k.next.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodDelete {
		_ = os.Remove(k.file(r.URL.Path))
		k.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m := kept{Path: r.URL.Path, Type: r.Header.Get("Content-Type"), Body: body, At: time.Now()}
	answer := k.store(m)
	if answer.Code == http.StatusCreated {
		if err := k.keep(m); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// store pushes a manifest to the registry and returns the response.
func (k *keeper) store(m kept) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPut, m.Path, bytes.NewReader(m.Body))
	r.Header.Set("Content-Type", m.Type)
	w := httptest.NewRecorder()
	k.next.ServeHTTP(w, r)
	return w
}

// keep writes a manifest to its file atomically.
func (k *keeper) keep(m kept) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot encode manifest %s: %w", m.Path, err)
	}
	tmp, err := os.CreateTemp(k.dir, "new-")
	if err != nil {
		return fmt.Errorf("cannot keep manifest %s: %w", m.Path, err)
	}
	_, err = tmp.Write(b)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), k.file(m.Path))
	}
	if err != nil {
		return fmt.Errorf("cannot keep manifest %s: %w", m.Path, err)
	}
	return nil
}

func (k *keeper) file(path string) string {
	return filepath.Join(k.dir, url.PathEscape(strings.TrimPrefix(path, "/v2/"))+".json")
}
