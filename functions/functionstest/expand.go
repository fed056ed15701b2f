package functionstest

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Composed is one object that a claim composes.
type Composed struct {
	// Claim is the kind and the name of the claim that composes it.
	Claim string

	// Component is its name in that claim.
	Component string

	// Object is the object in the cluster.
	Object *structpb.Struct
}

// Kind returns the kind of the object.
func (o Composed) Kind() string { return Get(o.Object, "kind").GetStringValue() }

// Name returns the kind and the name of the object.
func (o Composed) Name() string {
	return o.Kind() + " " + Get(o.Object, "metadata", "name").GetStringValue()
}

// Pods returns the pod template of the object, none where it has none.
func (o Composed) Pods(t testing.TB) []Pod {
	t.Helper()
	return Pods(t, map[string]*structpb.Struct{o.Component: o.Object})
}

// Expand settles a claim, with settings where they are not empty, and all claims that it composes,
// and returns all objects that exist in the end.
func Expand(t testing.TB, claim, settings string) []Composed {
	t.Helper()
	c := New(t, claim)
	if settings != "" {
		c.InstallSettings(settings)
	}
	return c.Expand()
}

// Nested simulates Crossplane for a claim that this one composes. That claim does not compose
// anything yet.
func (c *Crossplane) Nested(component string) *Crossplane {
	nested := &Crossplane{t: c.t, Function: c.Function, Settings: c.Settings, Claim: proto.CloneOf(c.Observed[component]), Observed: map[string]*structpb.Struct{}, annotations: map[string][]string{}}
	delete(nested.Claim.GetFields(), "status")
	return nested
}

// Expand settles the claim and all claims that it composes, and returns all objects that exist in
// the end.
func (c *Crossplane) Expand() []Composed {
	c.t.Helper()
	c.Settle()
	var out []Composed
	for _, n := range c.ComponentNames() {
		o := Composed{Claim: Get(c.Claim, "kind").GetStringValue() + " " + Get(c.Claim, "metadata", "name").GetStringValue(), Component: n, Object: c.Observed[n]}
		out = append(out, o)
		if o.Kind() == appsv1.WebAppKind || o.Kind() == appsv1.DatabaseClusterKind {
			out = append(out, c.Nested(n).Expand()...)
		}
	}
	return out
}
