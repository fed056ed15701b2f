package compose

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objectKey identifies an object in a namespace.
type objectKey struct {
	kind schema.GroupKind
	name string
}

// objects holds the names of components by the objects that they declare.
type objects map[objectKey]string

// check returns an error when a plan contradicts itself, which is a bug of an intent and never a
// user's mistake. Otherwise it returns the objects that are already built.
func check(claim string, p *Plan) (objects, error) {
	index := make(map[string]*Component, len(p.Components))
	objects := make(objects, len(p.Components))
	for i := range p.Components {
		c := &p.Components[i]
		if c.Name == "" {
			return nil, fmt.Errorf("cannot compose: component %d has no name", i)
		}
		if index[c.Name] != nil {
			return nil, fmt.Errorf("cannot compose: two components are named %s", c.Name)
		}
		index[c.Name] = c
		if c.Object == nil && c.Make != nil {
			continue
		}
		if err := objects.check(claim, c); err != nil {
			return nil, err
		}
	}
	for i := range p.Components {
		c := &p.Components[i]
		for _, deps := range [][]string{c.After, c.ChangeAfter} {
			for _, d := range deps {
				if index[d] == nil {
					return nil, fmt.Errorf("cannot compose: component %s comes after %s, which is not declared", c.Name, d)
				}
			}
		}
	}

	done := make(map[string]bool, len(index))
	for i := range p.Components {
		if cycle := findCycle(index, done, nil, p.Components[i].Name); cycle != nil {
			return nil, fmt.Errorf("cannot compose: components wait for each other: %s", strings.Join(cycle, " after "))
		}
	}
	return objects, nil
}

// check returns an error if a component's object is incomplete or misnamed, or if another component
// declares the same object.
func (o objects) check(claim string, c *Component) error {
	if c.Object == nil {
		return fmt.Errorf("cannot compose: component %s has no object", c.Name)
	}
	if gvk := c.Object.GetObjectKind().GroupVersionKind(); gvk.Version == "" || gvk.Kind == "" {
		return fmt.Errorf("cannot compose: component %s has no apiVersion or kind", c.Name)
	}
	object := objectKey{groupKind(c), c.Object.GetName()}
	if first := o[object]; first != "" {
		return fmt.Errorf("cannot compose: components %s and %s are both %s %s", first, c.Name, groupKind(c).Kind, c.Object.GetName())
	}
	if n := c.Object.GetName(); !strings.HasPrefix(n, claim+"-") {
		return fmt.Errorf("cannot compose: component %s is named %q, not %s-<component>", c.Name, n, claim)
	}
	o[object] = c.Name
	return nil
}

// findCycle walks the dependencies of a component depth first and returns the
// first path that comes back to itself.
func findCycle(index map[string]*Component, done map[string]bool, path []string, name string) []string {
	for i, p := range path {
		if p == name {
			return append(path[i:], name)
		}
	}
	if done[name] {
		return nil
	}
	path = append(path, name)
	c := index[name]
	for _, deps := range [][]string{c.After, c.ChangeAfter} {
		for _, d := range deps {
			if cycle := findCycle(index, done, path, d); cycle != nil {
				return cycle
			}
		}
	}
	done[name] = true
	return nil
}
