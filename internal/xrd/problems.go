package xrd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Problem is one thing that is wrong with a claim.
type Problem struct {
	// Path is the path of the field, like spec.cronJobs[0].name. Empty for the whole claim.
	Path string

	// Message is what is wrong, and with which value. Empty for an Unknown field.
	Message string

	// Unknown is true if the schema has no field with this Path.
	Unknown bool
}

func (p Problem) String() string {
	if p.Unknown {
		// As kubectl reports it.
		return fmt.Sprintf("unknown field %q", p.Path)
	}
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// An InvalidError lists all that is wrong with a claim, sorted by path.
type InvalidError struct {
	Kind     string
	Name     string
	Problems []Problem
}

// Error returns one line for one problem, or else a line for each.
func (e *InvalidError) Error() string {
	head := fmt.Sprintf("%s %q is invalid: ", e.Kind, e.Name)
	if len(e.Problems) == 1 {
		return head + e.Problems[0].String()
	}
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, "\n  "+p.String())
	}
	return strings.TrimSuffix(head, " ") + strings.Join(lines, "")
}

func invalid(obj *unstructured.Unstructured, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		// Problems of the whole claim, like the note that some rules were not checked, come last.
		if (a.Path == "") != (b.Path == "") {
			return cmp.Compare(len(b.Path), len(a.Path))
		}
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return &InvalidError{Kind: obj.GetKind(), Name: obj.GetName(), Problems: slices.Compact(problems)}
}

// explain converts the API server's errors about the object. The texts are the same, but contain
// the value where the server gives only its type, and do not repeat the path.
func explain(obj *unstructured.Unstructured, errs field.ErrorList) []Problem {
	out := make([]Problem, 0, len(errs))
	for _, err := range errs {
		path := err.Field
		if path == "<nil>" {
			path = ""
		}
		detail := strings.TrimPrefix(err.Detail, path+" in body ")
		switch err.Type {
		case field.ErrorTypeRequired:
			out = append(out, Problem{Path: path, Message: joined(err.Type.String(), "", detail)})
		case field.ErrorTypeDuplicate:
			// The value is what makes the item the same as another, not the item.
			out = append(out, Problem{Path: path, Message: joined(err.Type.String(), asJSON(err.BadValue), detail)})
		case field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeForbidden:
			out = append(out, Problem{Path: path, Message: joined(err.Type.String(), "", detail)})
		default:
			value := scalar(obj.Object, path)
			if value == "" {
				// The message of a rule on an object is complete.
				out = append(out, Problem{Path: path, Message: detail})
				continue
			}
			out = append(out, Problem{Path: path, Message: joined(err.Type.String(), value, detail)})
		}
	}
	return out
}

// joined joins the parts that are not empty to "Invalid value: VALUE: detail".
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ": ")
}

// scalar returns the value at the path as JSON, or "" for an object, a list or nothing.
func scalar(obj any, path string) string {
	at, ok := lookup(obj, path)
	if !ok {
		return ""
	}
	switch at.(type) {
	case map[string]any, []any, nil:
		return ""
	default:
		return asJSON(at)
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// lookup follows a path as field.Path writes it: spec.list[0].map[key].
func lookup(at any, path string) (any, bool) {
	for path != "" {
		var key string
		switch rest := path; {
		case strings.HasPrefix(rest, "["):
			end := strings.Index(rest, "]")
			if end < 0 {
				return nil, false
			}
			key, path = rest[1:end], strings.TrimPrefix(rest[end+1:], ".")
		default:
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			key, path = rest[:end], strings.TrimPrefix(rest[end:], ".")
		}
		switch in := at.(type) {
		case map[string]any:
			v, ok := in[key]
			if !ok {
				return nil, false
			}
			at = v
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			at = in[i]
		default:
			return nil, false
		}
	}
	return at, true
}
