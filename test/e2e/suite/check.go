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

// Notes collects what a check reports beside its result.
type Notes struct{ t *testing.T }

// Addf adds a note to the line of the check.
func (n Notes) Addf(format string, args ...any) { n.attr("note", fmt.Sprintf(format, args...)) }

func (n Notes) attr(key, text string) { n.t.Attr(key, strings.Join(strings.Fields(text), " ")) }

// Check is one line of the report. It returns an error for all problems that it found.
type Check func(ctx context.Context, n Notes) error

// SkippedError is the error of a check that cannot run in this environment. Such a check has not
// passed either. The text names what the check needs.
type SkippedError string

func (s SkippedError) Error() string { return string(s) }

// Assess turns a check into an assessment. If it fails, the state of the cluster is saved to
// explain the failure, and the checks after it run all the same. An interrupt skips all that
// follow.
func (s *Suite) Assess(c Check, namespaces ...string) features.Func {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		if ctx.Err() != nil {
			t.Skip("interrupted")
		}
		n := Notes{t}
		err := c(ctx, n)
		if skipped, ok := errors.AsType[SkippedError](err); ok {
			// Checks that a filter leaves out are skipped too, but are not reported.
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

// Keep writes a file to the output folder and returns its path.
func (s *Suite) Keep(name string, content []byte) (string, error) {
	path := filepath.Join(*s.out, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return "", fmt.Errorf("cannot keep %s: %w", name, err)
	}
	return path, nil
}

// unsafe matches the characters that the name of an output folder should not contain.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// Feature is a list of checks that share namespaces. The state of these is saved when a check
// fails.
type Feature struct {
	*features.FeatureBuilder

	suite      *Suite
	namespaces []string
}

// Feature returns a feature of the suite without checks.
func (s *Suite) Feature(name string, namespaces ...string) Feature {
	return Feature{features.New(name), s, namespaces}
}

// Quick adds a check that always runs.
func (f Feature) Quick(name string, c Check) Feature {
	f.Assess(name, f.suite.Assess(c, f.namespaces...))
	return f
}

// Full adds a check that runs only in a full run.
func (f Feature) Full(name string, c Check) Feature {
	if f.suite.Full() {
		f.Quick(name, c)
	}
	return f
}

// Cleared removes the feature's namespaces once all of its checks have passed, because a node has
// no room for the pods of all features together.
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

// Once records what was done, so that checks with a common precondition do it once.
type Once map[string]bool

// Do calls do, unless what has already succeeded.
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
