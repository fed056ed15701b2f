package plan

import (
	_ "embed"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// restartParameters are the parameters of PostgreSQL 14 to 18 whose context in pg_settings
// is "postmaster", a line each.
//
//go:embed postmaster.txt
var restartParameters string

// needsRestart holds the parameters that a server reads only at its start.
var needsRestart = func() map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(restartParameters) {
		out[name] = true
	}
	return out
}()

var configMapKind = schema.GroupKind{Kind: "ConfigMap"}
