package guardrails

import (
	"strings"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/settings"
)

// Result of a rule, in the words of policy reports.
type Result string

// The results of a rule.
const (
	// Pass is what a claim may ask for.
	Pass Result = "pass"
	// Fail is what it may not.
	Fail Result = "fail"
	// Skip says that the rule does not bind the claim.
	Skip Result = "skip"
)

// Verdict of one rule on one field.
type Verdict struct {
	// Rule by its name.
	Rule string

	// Field is the path of what was judged, like spec.frontend.image. A rule
	// that does not bind the claim has none.
	Field string

	Result Result

	// Message says what was found, and of a failure what to change.
	Message string
}

// Enforce returns an error of the claim that names all failures, or nil.
func Enforce(s Subject, p settings.Policy) error {
	var failures []string
	for _, v := range Check(s, p) {
		if v.Result == Fail {
			failures = append(failures, v.Message)
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return compose.Invalidf("%s", strings.Join(failures, "; "))
}
