package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Notes are what a check tells beside its verdict.
type Notes struct{ t *testing.T }

// Addf adds a note to the check's line.
func (n Notes) Addf(format string, args ...any) { n.attr("note", fmt.Sprintf(format, args...)) }

func (n Notes) attr(key, text string) { n.t.Attr(key, strings.Join(strings.Fields(text), " ")) }

// Check is one line of the report. It returns all that it found wrong.
type Check func(ctx context.Context, n Notes) error

// SkippedError is that of a check that cannot be made here, and is therefore
// not passed either. Its text says what it needs.
type SkippedError string

func (s SkippedError) Error() string { return string(s) }

// Assess makes a check an assessment: when it fails, what explains the failure
// is kept, and the checks after it run all the same. An interrupt ends them all.
func (s *Suite) Assess(c Check, namespaces ...string) features.Func {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		if ctx.Err() != nil {
			t.Skip("interrupted")
		}
		n := Notes{t}
		err := c(ctx, n)
		if skipped, ok := errors.AsType[SkippedError](err); ok {
			// Checks that a filter leaves out are skipped too, and not told.
			n.attr("skipped", skipped.Error())
			t.Skip(skipped)
		}
		if err != nil {
			t.Error(err)
			name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
			harness.Dump(filepath.Join(*s.out, unsafe.ReplaceAllString(name, "")), namespaces...)
		}
		return ctx
	}
}

// Keep a file in the folder for what explains failures, and return its path.
func (s *Suite) Keep(name string, content []byte) (string, error) {
	path := filepath.Join(*s.out, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return "", fmt.Errorf("cannot keep %s: %w", name, err)
	}
	return path, nil
}

// unsafe is what a folder's name should not hold.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// Feature is a list of checks that share namespaces, which are looked at where one fails.
type Feature struct {
	*features.FeatureBuilder

	suite      *Suite
	namespaces []string
}

// Feature of the suite, without checks.
func (s *Suite) Feature(name string, namespaces ...string) Feature {
	return Feature{features.New(name), s, namespaces}
}

// Quick check, which is always made.
func (f Feature) Quick(name string, c Check) Feature {
	f.Assess(name, f.suite.Assess(c, f.namespaces...))
	return f
}

// Full check, which is made when everything is asked for.
func (f Feature) Full(name string, c Check) Feature {
	if f.suite.Full() {
		f.Quick(name, c)
	}
	return f
}

// Cleared is the feature whose namespaces are removed once all of its checks have passed: a
// node has no room for the pods of all features together.
func (f Feature) Cleared() Feature {
	f.Teardown(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		if *f.suite.keep || t.Failed() || ctx.Err() != nil {
			return ctx
		}
		for _, namespace := range f.namespaces {
			if err := f.suite.Cluster.Sweep(ctx, namespace); err != nil {
				t.Errorf("cannot clear the feature's namespace: %v", err)
			}
		}
		return ctx
	})
	return f
}

// Once holds what was done once, for all checks that need it.
type Once map[string]bool

// Do what has not been done yet.
func (o Once) Do(what string, do func() error) error {
	if o[what] {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	o[what] = true
	return nil
}
