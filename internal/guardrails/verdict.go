package guardrails

import (
	"strings"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/settings"
)

// Result is the result of a rule, as policy reports name it.
type Result string

// Results of a rule.
const (
	// Pass means that a claim may request what it does.
	Pass Result = "pass"
	// Fail means that a claim may not request what it does.
	Fail Result = "fail"
	// Skip means that the rule does not apply to the claim.
	Skip Result = "skip"
)

// Verdict is the result of one rule for one field.
type Verdict struct {
	// Rule is the name of the rule.
	Rule string

	// Field is the path of the field, like spec.frontend.image. It is "" if the rule does not apply
	// to the claim.
	Field string

	Result Result

	// Message describes what was found, and for a failure what to change.
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
