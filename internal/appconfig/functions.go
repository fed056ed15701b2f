package appconfig

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// available are the functions that templates may call.
var available = []string{"and", "default", "eq", "indent", "index", "lower", "ne", "not", "or", "quote", "trim", "upper"}

// functions returns the functions of templates in addition to Go's own and, or and not. None is
// random, depends on the time, or reads the provider's environment. The bytes that they read and
// produce are spent from an allowance.
func functions(a *allowance) template.FuncMap {
	one := func(of func(string) string) func(any) (string, error) {
		return func(v any) (string, error) {
			s := text(v)
			if err := a.spend(len(s)); err != nil {
				return "", err
			}
			out := of(s)
			return out, a.spend(len(out))
		}
	}
	equal := func(v any, others ...any) (bool, error) {
		s, is := text(v), false
		for _, o := range others {
			is = is || text(o) == s
		}
		if len(others) == 0 {
			return false, errors.New("there is nothing to compare with")
		}
		return is, a.spend(len(s) * len(others))
	}
	return template.FuncMap{
		"lower": one(strings.ToLower),
		"upper": one(strings.ToUpper),
		"trim":  one(strings.TrimSpace),
		"quote": one(func(s string) string { return fmt.Sprintf("%q", s) }),
		"eq":    equal,
		"ne": func(v, other any) (bool, error) {
			is, err := equal(v, other)
			return !is, err
		},
		"index": func(values map[string]string, key any) (string, error) {
			k := text(key)
			return values[k], a.spend(len(k))
		},
		"default": func(instead string, v any) (string, error) {
			if s := text(v); v != nil && s != "" {
				return s, a.spend(len(s))
			}
			return instead, nil
		},
		"indent": func(by int, v any) (string, error) {
			s := text(v)
			if by < 0 || by > widest {
				return "", fmt.Errorf("indent is by 0 to %d", widest)
			}
			if err := a.spend(len(s) + by*(1+strings.Count(s, "\n"))); err != nil {
				return "", err
			}
			pad := strings.Repeat(" ", by)
			return pad + strings.ReplaceAll(s, "\n", "\n"+pad), nil
		},
	}
}

// widest is the largest number of spaces by which indent indents.
const widest = 100

// text returns a value as text.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprint(v)
}
