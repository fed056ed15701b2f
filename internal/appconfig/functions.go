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
			s, err := text(v)
			if err != nil {
				return "", err
			}
			if err := a.spend(len(s)); err != nil {
				return "", err
			}
			out := of(s)
			return out, a.spend(len(out))
		}
	}
	return template.FuncMap{
		"lower": one(strings.ToLower),
		"upper": one(strings.ToUpper),
		"trim":  one(strings.TrimSpace),
		"quote": one(func(s string) string { return fmt.Sprintf("%q", s) }),
		"eq":    a.equal,
		"ne": func(v, other any) (bool, error) {
			is, err := a.equal(v, other)
			return !is, err
		},
		"index": func(values map[string]string, key any) (string, error) {
			k, err := text(key)
			if err != nil {
				return "", err
			}
			return values[k], a.spend(len(k))
		},
		"default": func(instead string, v any) (string, error) {
			if v == nil {
				return instead, nil
			}
			s, err := text(v)
			if err != nil || s != "" {
				return s, errors.Join(err, a.spend(len(s)))
			}
			return instead, nil
		},
		"indent": func(by int, v any) (string, error) {
			s, err := text(v)
			if err != nil {
				return "", err
			}
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

// equal reports whether a value equals one of the others, as text.
func (a *allowance) equal(v any, others ...any) (bool, error) {
	s, err := text(v)
	if err != nil {
		return false, err
	}
	is := false
	for _, o := range others {
		other, err := text(o)
		if err != nil {
			return false, err
		}
		if err := a.spend(min(len(s), len(other))); err != nil {
			return false, err
		}
		is = is || other == s
	}
	if len(others) == 0 {
		return false, errors.New("there is nothing to compare with")
	}
	return is, nil
}

// widest is the largest number of spaces by which indent indents.
const widest = 100

// text returns a text, a number or a truth value as text. Anything else, such as all values at once,
// may be large, so that its text would cost more than the template that asks for it.
func text(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool, int, float64, complex128:
		return fmt.Sprint(v), nil
	}
	return "", errors.New("a function takes a text, a number or a truth value, such as .Values.key")
}
