package appconfig

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// functions of templates beside Go's own, and in place of those of Go's that make
// text: what all of them make in all is limited by an allowance. None is random,
// depends on the time, or reads what is around the provider.
func functions(allowance *int) template.FuncMap {
	spend := func(n int) error {
		if *allowance -= n; *allowance < 0 {
			return errors.New("the templates make too much text")
		}
		return nil
	}
	one := func(of func(string) string) func(any) (string, error) {
		return func(v any) (string, error) {
			out := of(text(v))
			return out, spend(len(out))
		}
	}
	all := func(of func(...any) string) func(...any) (string, error) {
		return func(v ...any) (string, error) {
			if err := spend(lengths(v)); err != nil {
				return "", err
			}
			out := of(v...)
			return out, spend(len(out))
		}
	}
	return template.FuncMap{
		"lower":    one(strings.ToLower),
		"upper":    one(strings.ToUpper),
		"trim":     one(strings.TrimSpace),
		"quote":    one(func(s string) string { return fmt.Sprintf("%q", s) }),
		"print":    all(fmt.Sprint),
		"println":  all(fmt.Sprintln),
		"html":     all(template.HTMLEscaper),
		"js":       all(template.JSEscaper),
		"urlquery": all(template.URLQueryEscaper),
		"default":  fallback,
		"indent": func(by int, v any) (string, error) {
			s := text(v)
			if by < 0 || by > widest {
				return "", fmt.Errorf("indent is by 0 to %d", widest)
			}
			if err := spend(len(s) + by*(1+strings.Count(s, "\n"))); err != nil {
				return "", err
			}
			return indent(by, s), nil
		},
		"printf": func(format string, v ...any) (string, error) {
			if tooWide.MatchString(format) {
				return "", errors.New("printf takes widths of at most 999, in digits")
			}
			// Each verb may print each argument.
			if err := spend(len(format) + strings.Count(format, "%")*(999+lengths(v))); err != nil {
				return "", err
			}
			return fmt.Sprintf(format, v...), nil
		},
	}
}

const widest = 100

var tooWide = regexp.MustCompile(`%[^%a-zA-Z]*([0-9]{4}|\*)`)

// text of a value.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprint(v)
}

func lengths(v []any) int {
	n := 0
	for _, x := range v {
		n += len(text(x))
	}
	return n
}

// fallback is the value, unless it is empty. It is called default.
func fallback(instead string, v any) string {
	if v == nil {
		return instead
	}
	if s := text(v); s != "" {
		return s
	}
	return instead
}

// indent each line.
func indent(by int, s string) string {
	pad := strings.Repeat(" ", by)
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
}
