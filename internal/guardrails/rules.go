package guardrails

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/profile"
	"github.com/storeplane/storeplane/internal/settings"
)

// Names of the rules.
const (
	ApprovedRegistries   = "approved-registries"
	NoLatestInProduction = "no-latest-in-production"
	LimitsInProduction   = "limits-in-production"
	ReplicaCap           = "replica-cap"

	AllowedIngressHosts       = "allowed-ingress-hosts"
	AllowedIngressAnnotations = "allowed-ingress-annotations"
	AllowedIngressClasses     = "allowed-ingress-classes"
	AllowedTolerations        = "allowed-tolerations"
	AllowedNodeSelectors      = "allowed-node-selectors"
	AllowedPriorityClasses    = "allowed-priority-classes"
	AllowedPodLabels          = "allowed-pod-labels"
	AllowedPodAnnotations     = "allowed-pod-annotations"
)

// rules are in the order in which they are reported. Each judges the fields that it finds, and
// returns nothing for a claim without any.
var rules = []struct {
	name  string
	judge func(s *Subject, p settings.Policy) []Verdict
}{
	{ApprovedRegistries, approvedRegistries},
	{NoLatestInProduction, noLatest},
	{LimitsInProduction, limits},
	{ReplicaCap, replicaCap},
	{AllowedIngressHosts, allowance{
		func(s *Subject) []asked { return s.hosts }, func(p settings.Policy) []string { return p.AllowedIngressHosts }, below,
	}.judge},
	{AllowedIngressAnnotations, allowance{
		func(s *Subject) []asked { return s.annotations }, func(p settings.Policy) []string { return p.AllowedIngressAnnotations }, prefixed,
	}.judge},
	{AllowedIngressClasses, allowance{
		func(s *Subject) []asked { return s.classes }, func(p settings.Policy) []string { return p.AllowedIngressClasses }, same,
	}.judge},
	{AllowedTolerations, allowance{
		func(s *Subject) []asked { return s.tolerations }, func(p settings.Policy) []string { return p.AllowedTolerations }, same,
	}.judge},
	{AllowedNodeSelectors, allowance{
		func(s *Subject) []asked { return s.selectors }, func(p settings.Policy) []string { return p.AllowedNodeSelectors }, labelled,
	}.judge},
	{AllowedPriorityClasses, allowance{
		func(s *Subject) []asked { return s.priorities }, func(p settings.Policy) []string { return p.AllowedPriorityClasses }, same,
	}.judge},
	{AllowedPodLabels, allowance{
		func(s *Subject) []asked { return s.podLabels }, func(p settings.Policy) []string { return p.AllowedPodLabels }, prefixed,
	}.judge},
	{AllowedPodAnnotations, allowance{
		func(s *Subject) []asked { return s.podAnnotations }, func(p settings.Policy) []string { return p.AllowedPodAnnotations }, prefixed,
	}.judge},
}

// Check checks a claim against all rules. The order is the same each time: by rule, then by field
// as the claim's kind lists them.
func Check(s Subject, p settings.Policy) []Verdict {
	var out []Verdict
	for _, r := range rules {
		for _, v := range r.judge(&s, p) {
			v.Rule = r.name
			if v.Field != "" {
				v.Field = "spec." + v.Field
			}
			out = append(out, v)
		}
	}
	return out
}

func skip(reason string) []Verdict { return []Verdict{{Result: Skip, Message: reason}} }

// onlyProduction is the reason why a rule of production skips a claim.
const onlyProduction = "only claims for production are bound"

// verdict returns a verdict whose message begins with the field.
func verdict(result Result, path, format string, args ...any) Verdict {
	return Verdict{Field: path, Result: result, Message: path + " " + fmt.Sprintf(format, args...)}
}

func approvedRegistries(s *Subject, p settings.Policy) []Verdict {
	switch {
	case len(s.images) == 0:
		return nil
	case len(p.ApprovedRegistries) == 0:
		return skip("the installation's settings name no approved registries")
	}
	out := make([]Verdict, 0, len(s.images))
	for _, i := range s.images {
		ref := qualified(i.value)
		if r := holder(ref, p.ApprovedRegistries); r != "" {
			out = append(out, verdict(Pass, i.path, "is %s, from %s", ref, r))
			continue
		}
		out = append(out, verdict(Fail, i.path, "is %s, which is from no approved registry: use an image from %s", ref, strings.Join(p.ApprovedRegistries, " or ")))
	}
	return out
}

func noLatest(s *Subject, _ settings.Policy) []Verdict {
	switch {
	case len(s.images) == 0:
		return nil
	case s.environment != appsv1.Production:
		return skip(onlyProduction)
	}
	out := make([]Verdict, 0, len(s.images))
	for _, i := range s.images {
		if isLatest(i.value) {
			out = append(out, verdict(Fail, i.path, "is %s, which means the latest: name a version or a digest in production", i.value))
			continue
		}
		out = append(out, verdict(Pass, i.path, "is %s, which names a version", i.value))
	}
	return out
}

func limits(s *Subject, _ settings.Policy) []Verdict {
	switch {
	case len(s.resources) == 0:
		return nil
	case s.environment != appsv1.Production:
		return skip(onlyProduction)
	}
	out := make([]Verdict, 0, len(s.resources))
	for _, r := range s.resources {
		if r.value == nil {
			out = append(out, verdict(Pass, r.path, "is defaulted by production"))
			continue
		}
		// A limit of zero means none, too.
		if m, ok := r.value.Limits[corev1.ResourceMemory]; ok && m.Sign() > 0 {
			out = append(out, verdict(Pass, r.path, "has limits.memory %s", m.String()))
			continue
		}
		out = append(out, verdict(Fail, r.path, "has no limits.memory: set it in production, or leave out resources for the default"))
	}
	return out
}

func replicaCap(s *Subject, _ settings.Policy) []Verdict {
	switch {
	case len(s.replicas) == 0:
		return nil
	case s.capped == "":
		return skip(onlyProduction)
	}
	most := profile.Of(appsv1.Production).MaxReplicas
	out := make([]Verdict, 0, len(s.replicas))
	for _, r := range s.replicas {
		switch {
		case r.value == nil:
			out = append(out, verdict(Pass, r.path, "is left to its default, of at most %d", most))
		case *r.value > most:
			out = append(out, verdict(Fail, r.path, "is %d: ask for at most %d %s", *r.value, most, s.capped))
		default:
			out = append(out, verdict(Pass, r.path, "is %d, of at most %d", *r.value, most))
		}
	}
	return out
}
