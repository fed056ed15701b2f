//go:build e2e

package core

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// notes are what a check tells beside its verdict.
type notes struct{ t *testing.T }

// Addf adds a note to the check's line.
func (n notes) Addf(format string, args ...any) {
	n.t.Attr("note", strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// check is one line of the report. It returns all that it found wrong.
type check func(ctx context.Context, n notes) error

// assess makes a check an assessment: when it fails, what explains the failure
// is kept, and the checks after it run all the same. An interrupt ends them all.
func assess(c check, namespaces ...string) features.Func {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		if ctx.Err() != nil {
			t.Skip("interrupted")
		}
		if err := c(ctx, notes{t}); err != nil {
			t.Error(err)
			name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
			harness.Dump(filepath.Join(*out, unsafe.ReplaceAllString(name, "")), namespaces...)
		}
		return ctx
	}
}

// unsafe is what a folder's name should not hold.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9_-]`)
