package guardrails

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report is a PolicyReport of the Kubernetes Policy Working Group, as far as it is
// used here. It has no times: the same claim gives the same report.
type Report struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Scope is the claim.
	Scope corev1.ObjectReference `json:"scope"`

	Summary Summary        `json:"summary"`
	Results []ReportResult `json:"results"`
}

// Summary counts a report's results.
type Summary struct {
	Pass  int `json:"pass"`
	Fail  int `json:"fail"`
	Warn  int `json:"warn"`
	Error int `json:"error"`
	Skip  int `json:"skip"`
}

// ReportResult is a Verdict in the format of a report.
type ReportResult struct {
	Source     string            `json:"source"`
	Policy     string            `json:"policy"`
	Rule       string            `json:"rule"`
	Result     Result            `json:"result"`
	Scored     bool              `json:"scored"`
	Message    string            `json:"message"`
	Properties map[string]string `json:"properties,omitempty"`
}

// source is the source of all results, and guardrails the policy of all rules.
const (
	source     = "storeplane"
	guardrails = "storeplane-guardrails"
)

// NewReport returns a report of the verdicts on a claim.
func NewReport(scope corev1.ObjectReference, verdicts []Verdict) *Report {
	out := &Report{
		TypeMeta:   metav1.TypeMeta{APIVersion: "wgpolicyk8s.io/v1alpha2", Kind: "PolicyReport"},
		ObjectMeta: metav1.ObjectMeta{Name: scope.Name + "-guardrails", Namespace: scope.Namespace},
		Scope:      scope,
		Results:    make([]ReportResult, 0, len(verdicts)),
	}
	for _, v := range verdicts {
		r := ReportResult{Source: source, Policy: guardrails, Rule: v.Rule, Result: v.Result, Scored: true, Message: v.Message}
		if v.Field != "" {
			r.Properties = map[string]string{"field": v.Field}
		}
		out.Results = append(out.Results, r)
		switch v.Result {
		case Pass:
			out.Summary.Pass++
		case Fail:
			out.Summary.Fail++
		case Skip:
			out.Summary.Skip++
		}
	}
	return out
}
