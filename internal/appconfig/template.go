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
	"time"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// expand expands each value of config in place.
func expand(p *configv1.AppConfigParameters, namespace string, config, values map[string]string) *Problem {
	if p.Templating == configv1.TemplatingNone {
		return nil
	}
	// These are maps, so that an unknown name is reported as a missing key.
	data := map[string]any{
		"Environment": string(environment(p)),
		"Namespace":   namespace,
		"Application": p.Application,
		"Values":      values,
	}
	total, a := 0, &allowance{bytes: effort, until: time.Now().Add(renderTimeout)}
	for _, k := range slices.Sorted(maps.Keys(config)) {
		if !strings.Contains(config[k], "{{") {
			continue
		}
		if total += len(config[k]); len(config[k]) > longestTemplate || total > longestTemplates {
			return &Problem{Reason: configv1.ReasonTooLarge, Message: fmt.Sprintf("config key %s: a template has at most 64 KiB, and those of an AppConfig 256 KiB in all: set templating to None, or split the AppConfig", k)}
		}
		out, err := execute(k, config[k], data, a)
		if err != nil {
			return &Problem{Reason: configv1.ReasonInvalidTemplate, Message: "config key " + position(err)}
		}
		config[k] = out
	}
	return nil
}

// position returns the message of a template's error, which begins with the template's name: the
// key.
func position(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "template: "), "\n", " ")
}

// execute expands one template.
func execute(key, text string, data any, a *allowance) (string, error) {
	t, err := template.New(key).Option("missingkey=error").Funcs(functions(a)).Parse(text)
	if err != nil {
		return "", err //nolint:wrapcheck // It names the key and the line already.
	}
	if err := plain(key, t); err != nil {
		return "", err
	}
	out := &capped{allowance: a}
	if err := t.Execute(out, data); err != nil {
		return "", err //nolint:wrapcheck // It names the key and the line already.
	}
	return out.String(), nil
}

// Bounds of what templates may cost, since many namespaces share one provider. Nothing in a
// template is repeated, so its own length and what its functions read and produce bound its cost.
// The time is for machines that are slower than expected.
const (
	// longestTemplate and longestTemplates are the largest sizes in bytes, of one template and of
	// all templates of a configuration. A value without braces is no template.
	longestTemplate  = 64 << 10
	longestTemplates = 256 << 10

	// effort is the number of bytes that the functions of all templates may read and produce in
	// all.
	effort = 4 << 20

	// renderTimeout is the time that all templates of a configuration may take.
	renderTimeout = 2 * time.Second
)

var (
	errTooMuch = errors.New("makes more than 1 MiB")
	errTooSlow = errors.New("the templates take more than 2 seconds")
)

// capped is a buffer that refuses what does not fit into a ConfigMap.
type capped struct {
	bytes.Buffer
	*allowance
}

func (c *capped) Write(b []byte) (int, error) {
	if c.Len()+len(b) > limit {
		return 0, errTooMuch
	}
	if err := c.spend(0); err != nil {
		return 0, err
	}
	return c.Buffer.Write(b) //nolint:wrapcheck // A buffer has no errors.
}

// allowance is what the templates of a configuration may still use.
type allowance struct {
	bytes int
	until time.Time
}

// spend takes bytes that are read or produced from the allowance, and returns an error once it is
// used up.
func (a *allowance) spend(bytes int) error {
	if a.bytes -= bytes; a.bytes < 0 {
		return errors.New("the templates make too much text")
	}
	if time.Now().After(a.until) {
		return errTooSlow
	}
	return nil
}

// plain returns an error for a template with anything that is not available: loops, calls of other
// templates, and functions that are not in the list.
func plain(key string, t *template.Template) error {
	if len(t.Templates()) > 1 {
		return fmt.Errorf("%s: define, block and template are not available", key)
	}
	if t.Tree == nil || t.Root == nil {
		return nil
	}
	c := &check{tree: t.Tree}
	c.list(t.Root)
	if c.problem == "" {
		return nil
	}
	return errors.New(c.problem)
}

// check walks the tree of a template, and finds what is not available.
type check struct {
	tree    *parse.Tree
	problem string
}

func (c *check) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode, *parse.CommentNode:
		case *parse.ActionNode:
			c.pipe(n.Pipe)
		case *parse.IfNode:
			c.branch(&n.BranchNode)
		case *parse.WithNode:
			c.branch(&n.BranchNode)
		case *parse.RangeNode:
			c.refuse(n, "range is not available: name each value")
		default:
			word, _, _ := strings.Cut(strings.Trim(n.String(), "{} "), " ")
			c.refuse(n, word+" is not available")
		}
	}
}

func (c *check) branch(b *parse.BranchNode) {
	c.pipe(b.Pipe)
	c.list(b.List)
	c.list(b.ElseList)
}

func (c *check) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, command := range p.Cmds {
		for _, arg := range command.Args {
			c.argument(arg)
		}
	}
}

func (c *check) argument(n parse.Node) {
	switch n := n.(type) {
	case *parse.PipeNode:
		c.pipe(n)
	case *parse.ChainNode:
		c.argument(n.Node)
	case *parse.IdentifierNode:
		if !slices.Contains(available, n.Ident) {
			c.refuse(n, n.Ident+" is not available: there are "+strings.Join(available, ", "))
		}
	}
}

func (c *check) refuse(n parse.Node, message string) {
	if c.problem == "" {
		location, _ := c.tree.ErrorContext(n)
		c.problem = location + ": " + message
	}
}
