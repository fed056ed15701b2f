package appconfig

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// expand each value of config in place.
func expand(p *configv1.AppConfigParameters, namespace string, config, values map[string]string) *Problem {
	if p.Templating == configv1.TemplatingNone {
		return nil
	}
	// Maps, so that an unknown name is told as a missing key.
	data := map[string]any{
		"Environment": string(environment(p)),
		"Namespace":   namespace,
		"Application": p.Application,
		"Values":      values,
	}
	allowance := limit * effort
	for _, k := range slices.Sorted(maps.Keys(config)) {
		if !strings.Contains(config[k], "{{") {
			continue
		}
		out, err := execute(k, config[k], data, &allowance)
		if err != nil {
			return &Problem{Reason: ReasonInvalidTemplate, Message: "config key " + position(err)}
		}
		config[k] = out
	}
	return nil
}

// position says the error of a template, which begins with the template's name:
// the key.
func position(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "template: "), "\n", " ")
}

// execute one template.
func execute(key, text string, data any, allowance *int) (string, error) {
	t, err := template.New(key).Option("missingkey=error").Funcs(functions(allowance)).Parse(text)
	if err != nil {
		return "", err //nolint:wrapcheck // It names the key and the line already.
	}
	if err := cheap(key, t); err != nil {
		return "", err
	}
	out := &capped{}
	if err := t.Execute(out, data); err != nil {
		return "", err //nolint:wrapcheck // It names the key and the line already.
	}
	return out.String(), nil
}

// effort is how many MiB the functions of all templates may make in all.
const effort = 16

var errTooMuch = errors.New("makes more than 1 MiB")

// capped buffer: what does not fit into a ConfigMap is not even made.
type capped struct{ bytes.Buffer }

func (c *capped) Write(b []byte) (int, error) {
	if c.Len()+len(b) > limit {
		return 0, errTooMuch
	}
	return c.Buffer.Write(b) //nolint:wrapcheck // A buffer has no errors.
}

// cheap tells what could keep the provider busy without end: many namespaces
// share it. Loops go over .Values and not within each other, and templates call
// no templates.
func cheap(key string, t *template.Template) error {
	if len(t.Templates()) > 1 {
		return fmt.Errorf("%s: define, block and template are not available", key)
	}
	if t.Tree == nil || t.Root == nil {
		return nil
	}
	c := &costs{tree: t.Tree}
	c.list(t.Root, false)
	if c.problem == "" {
		return nil
	}
	return errors.New(c.problem)
}

// costs of a template, found by walking its tree.
type costs struct {
	tree    *parse.Tree
	problem string
}

func (c *costs) list(l *parse.ListNode, looping bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			c.loop(n, looping)
		case *parse.IfNode:
			c.list(n.List, looping)
			c.list(n.ElseList, looping)
		case *parse.WithNode:
			c.list(n.List, looping)
			c.list(n.ElseList, looping)
		case *parse.TemplateNode:
			c.refuse(n, "template is not available")
		default:
		}
	}
}

func (c *costs) loop(n *parse.RangeNode, looping bool) {
	if looping {
		c.refuse(n, "range within range is not available")
	}
	if p := n.Pipe.String(); !overValues(n.Pipe) {
		c.refuse(n, "range goes over .Values only, not over "+p)
	}
	c.list(n.List, true)
	c.list(n.ElseList, looping)
}

// overValues tells whether a range is over .Values, or $.Values.
func overValues(p *parse.PipeNode) bool {
	if len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return false
	}
	switch a := p.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		return slices.Equal(a.Ident, []string{"Values"})
	case *parse.VariableNode:
		return slices.Equal(a.Ident, []string{"$", "Values"})
	}
	return false
}

func (c *costs) refuse(n parse.Node, message string) {
	if c.problem == "" {
		location, _ := c.tree.ErrorContext(n)
		c.problem = location + ": " + message
	}
}
