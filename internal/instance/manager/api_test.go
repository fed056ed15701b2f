package manager

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// api is an API server as far as the managers need one: get, list, watch, merge patch, delete and
// create in one namespace.
type api struct {
	t *testing.T

	mu      sync.Mutex
	version int
	objects map[string]map[string]any
	changed chan struct{}

	// refuse holds the reason why a verb on an object is forbidden.
	refuse map[string]string

	// deleted holds the names of deleted pods, in order.
	deleted []string

	// reports holds the keys of each patch of the reports, sorted, in order.
	reports [][]string
}

// kinds holds the API version and kind of each resource.
var kinds = map[string]struct{ version, kind string }{
	"configmaps":             {"v1", "ConfigMap"},
	"pods":                   {"v1", "Pod"},
	"secrets":                {"v1", "Secret"},
	"persistentvolumeclaims": {"v1", "PersistentVolumeClaim"},
	"statefulsets":           {"apps/v1", "StatefulSet"},
}

func newAPI(t *testing.T) (*api, *rest.Config) {
	t.Helper()
	a := &api{t: t, objects: map[string]map[string]any{}, changed: make(chan struct{}), refuse: map[string]string{}}
	server := httptest.NewServer(a)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return a, &rest.Config{Host: server.URL}
}

// put stores an object under its resource and name, such as configmaps/name.
func (a *api) put(resource string, object metav1.Object) {
	a.t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		a.t.Fatal(err)
	}
	u["apiVersion"], u["kind"] = kinds[resource].version, kinds[resource].kind
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store(resource+"/"+object.GetName(), u)
}

// change changes an object, if it exists.
func (a *api) change(key string, change func(map[string]any)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.objects[key]; o != nil {
		o = runtime.DeepCopyJSON(o)
		change(o)
		a.store(key, o)
	}
}

func (a *api) remove(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.objects, key)
	a.wake()
}

func (a *api) store(key string, o map[string]any) {
	a.version++
	// Watches may still read the object that was stored before, so a copy is stored.
	o = runtime.DeepCopyJSON(o)
	meta, _ := o["metadata"].(map[string]any)
	meta["resourceVersion"] = strconv.Itoa(a.version)
	if meta["uid"] == nil {
		meta["uid"] = "uid-" + strconv.Itoa(a.version)
	}
	a.objects[key] = o
	a.wake()
}

func (a *api) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// report returns what the status ConfigMap holds under a key.
func (a *api) report(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	data, _ := a.objects["configmaps/"+setName+"-status"]["data"].(map[string]any)
	s, _ := data[key].(string)
	return s
}

// has reports whether an object exists.
func (a *api) has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[key] != nil
}

func (a *api) annotations(key string) map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	meta, _ := a.objects[key]["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return annotations
}

// events returns the events that were written, as type, reason and message.
func (a *api) events() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var events []string
	for _, k := range slices.Sorted(maps.Keys(a.objects)) {
		if strings.HasPrefix(k, "events/") {
			o := a.objects[k]
			events = append(events, fmt.Sprintf("%s %s: %s", o["type"], o["reason"], o["message"]))
		}
	}
	return events
}

// ServeHTTP answers /api/v1/namespaces/<ns>/<resource>[/<name>].
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/shop/")
	resource, name, _ := strings.Cut(path, "/")
	if r.URL.Query().Get("watch") != "" {
		a.watch(w, r, resource)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if reason := a.refuse[r.Method+" "+path]; reason != "" {
		a.fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf("%s %q is forbidden: %s", resource, name, reason))
		return
	}
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodPost {
		o := map[string]any{}
		_ = json.Unmarshal(body, &o)
		a.store(fmt.Sprintf("%s/%05d", resource, a.version), o)
		encode(w, o)
		return
	}
	if name == "" {
		encode(w, map[string]any{"kind": kinds[resource].kind + "List", "apiVersion": kinds[resource].version, "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}, "items": a.matching(resource, r)})
		return
	}
	o := a.objects[path]
	if o == nil {
		a.fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, path+" not found")
		return
	}
	switch r.Method {
	case http.MethodPatch:
		patch := map[string]any{}
		_ = json.Unmarshal(body, &patch)
		if data, ok := patch["data"].(map[string]any); ok && path == "configmaps/"+setName+"-status" {
			a.reports = append(a.reports, slices.Sorted(maps.Keys(data)))
		}
		o, _ = merged(o, patch).(map[string]any)
		a.store(path, o)
	case http.MethodDelete:
		options := metav1.DeleteOptions{}
		_ = json.Unmarshal(body, &options)
		meta, _ := o["metadata"].(map[string]any)
		if p := options.Preconditions; p == nil || *p.ResourceVersion != meta["resourceVersion"] || string(*p.UID) != meta["uid"] {
			a.fail(w, http.StatusConflict, metav1.StatusReasonConflict, "it has changed")
			return
		}
		a.deleted = append(a.deleted, name)
		delete(a.objects, path)
		a.wake()
	}
	encode(w, o)
}

func (a *api) fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	encode(w, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, //nolint:gosec // an HTTP code
	})
}

// matching returns the objects of a kind. Label selectors are ignored: all pods have the same
// labels.
func (a *api) matching(resource string, r *http.Request) []map[string]any {
	only := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	list := []map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(a.objects)) {
		kind, name, _ := strings.Cut(k, "/")
		if kind == resource && (only == "" || only == name) {
			list = append(list, a.objects[k])
		}
	}
	return list
}

// watch sends the differences to what it sent before.
func (a *api) watch(w http.ResponseWriter, r *http.Request, resource string) {
	w.Header().Set("Content-Type", "application/json")
	sent := map[string]map[string]any{}
	initial := r.URL.Query().Get("sendInitialEvents") != ""
	for {
		a.mu.Lock()
		changed, version := a.changed, a.version
		now := map[string]map[string]any{}
		for _, o := range a.matching(resource, r) {
			meta, _ := o["metadata"].(map[string]any)
			name, _ := meta["name"].(string)
			now[name] = o
		}
		a.mu.Unlock()
		for name, o := range now {
			before := sent[name]
			switch {
			case before == nil:
				encode(w, map[string]any{"type": "ADDED", "object": o})
			case fmt.Sprint(before["metadata"]) != fmt.Sprint(o["metadata"]):
				encode(w, map[string]any{"type": "MODIFIED", "object": o})
			}
		}
		for name, o := range sent {
			if now[name] == nil {
				encode(w, map[string]any{"type": "DELETED", "object": o})
			}
		}
		if sent = now; initial {
			initial = false
			encode(w, map[string]any{"type": "BOOKMARK", "object": map[string]any{"apiVersion": kinds[resource].version, "kind": kinds[resource].kind, "metadata": map[string]any{
				"resourceVersion": strconv.Itoa(version), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
			}}})
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}

// encode writes an answer. An error is ignored: the client has disconnected.
func encode(w io.Writer, answer any) {
	data, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(append(data, '\n'))
}

// merged returns an object after a JSON merge patch.
func merged(o, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	old, _ := o.(map[string]any)
	next := maps.Clone(old)
	if next == nil {
		next = map[string]any{}
	}
	for k, v := range p {
		if v == nil {
			delete(next, k)
			continue
		}
		next[k] = merged(next[k], v)
	}
	return next
}
