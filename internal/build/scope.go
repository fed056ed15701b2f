package build

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/label"
)

// Scope names and labels the objects of one claim.
type Scope struct {
	// Claim is the name of the claim.
	Claim string
	// Namespace of the claim and of all its objects.
	Namespace string
	// Platform is the name of the outermost claim.
	Platform string
}

// ScopeOf returns the scope of a claim. A nested claim carries its platform as a label.
func ScopeOf(c *compose.Claim) Scope {
	s := Scope{Claim: c.Name(), Namespace: c.Namespace(), Platform: c.Label(label.Platform)}
	if s.Platform == "" {
		s.Platform = s.Claim
	}
	return s
}

// Name returns the name of a component's object.
func (s Scope) Name(component string) string { return s.Claim + "-" + component }

// Labels returns the labels of a component's objects. app is what runs there, for example redis.
func (s Scope) Labels(component, app string) map[string]string {
	return map[string]string{
		label.Name:      app,
		label.Instance:  s.Claim,
		label.Component: component,
		label.PartOf:    s.Platform,
		label.ManagedBy: label.Storeplane,
		label.Platform:  s.Platform,
	}
}

// Selector returns the selector of a component's pods. It can never change: the selectors of
// Deployments and StatefulSets are immutable.
func (s Scope) Selector(component string) map[string]string {
	return map[string]string{label.Instance: s.Claim, label.Component: component}
}

// Meta returns the metadata of a component's object.
func (s Scope) Meta(component, app string) metav1.ObjectMeta {
	return s.Named(s.Name(component), component, app)
}

// Named is like Meta, for an object whose name is not just that of its component.
func (s Scope) Named(name, component, app string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: s.Labels(component, app)}
}

// With returns labels with more added, which take precedence.
func With(labels, more map[string]string) map[string]string {
	out := make(map[string]string, len(labels)+len(more))
	maps.Copy(out, labels)
	maps.Copy(out, more)
	return out
}
