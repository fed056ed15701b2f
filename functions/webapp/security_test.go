package webapp_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestPodSecurity: all pods of an application meet the standard that the claim requests, and run as
// the user that it sets.
func TestPodSecurity(t *testing.T) {
	cases := map[string]struct {
		reason, fields string
		baseline       bool
		user           int64
	}{
		"Default":  {reason: "Without a word pods are restricted, and the user is the image's."},
		"Named":    {reason: "So they are where that is said.", fields: "  podSecurity: restricted\n"},
		"Baseline": {reason: "An image that needs root has it, and a root file system that it may write to.", fields: "  podSecurity: baseline\n", baseline: true},
		"User":     {reason: "A user is that of all containers.", fields: "  runAsUser: 101\n", user: 101},
		"Both":     {reason: "Also where pods are not restricted.", fields: "  podSecurity: baseline\n  runAsUser: 101\n", baseline: true, user: 101},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := webAppPods(t, strings.Replace(functionstest.FullApp, "\nspec:\n", "\nspec:\n"+tc.fields, 1))
			if len(pods) < 4 {
				t.Fatalf("want the pods of the application, its workers, jobs and migration: got %d", len(pods))
			}
			for component, pod := range pods {
				s := pod.SecurityContext
				if root := s.RunAsNonRoot == nil || !*s.RunAsNonRoot; root != tc.baseline {
					t.Errorf("%s\n%s: may be root: want %t, got %t", tc.reason, component, tc.baseline, root)
				}
				if (s.RunAsUser != nil) != (tc.user != 0) || s.RunAsUser != nil && *s.RunAsUser != tc.user {
					t.Errorf("%s\n%s: want user %d, got %v", tc.reason, component, tc.user, s.RunAsUser)
				}
				if s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
					t.Errorf("%s\n%s: want the runtime's seccomp profile either way", tc.reason, component)
				}
				for _, c := range append(pod.InitContainers, pod.Containers...) {
					s := c.SecurityContext
					if writable := s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem; writable != tc.baseline {
						t.Errorf("%s\n%s, %s: may write to its root: want %t, got %t", tc.reason, component, c.Name, tc.baseline, writable)
					}
					if all := s.Capabilities.Drop[0] == "ALL"; all == tc.baseline {
						t.Errorf("%s\n%s, %s: drops %v", tc.reason, component, c.Name, s.Capabilities.Drop)
					}
					if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
						t.Errorf("%s\n%s, %s: no standard needs escalation", tc.reason, component, c.Name)
					}
				}
			}
		})
	}
}

// TestPodSecurityRefused: a lower standard than restricted is refused where it is not allowed, with
// what to do.
func TestPodSecurityRefused(t *testing.T) {
	const otherImage = "use an image that runs as a user other than root"
	namespace := func(name, enforce string) string {
		return "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + ", labels: {pod-security.kubernetes.io/enforce: " + enforce + "}}}"
	}
	cases := map[string]struct {
		reason, spec string
		others       []string
		want         string
	}{
		"Development": {reason: "Where nothing forbids it, it is what the claim asks for.", spec: "podSecurity: baseline"},
		"Enforced":    {reason: "A namespace of a standard that allows it.", spec: "podSecurity: baseline", others: []string{namespace("team", "baseline")}},
		"Production":  {reason: "Production has no root.", spec: "podSecurity: baseline, environment: production", want: "podSecurity may be baseline only where environment is not production: " + otherImage},
		"Namespace":   {reason: "The API server would refuse its pods.", spec: "podSecurity: baseline", others: []string{namespace("team", "restricted")}, want: "podSecurity may not be baseline in namespace team, whose label pod-security.kubernetes.io/enforce is restricted: " + otherImage + ", or another namespace"},
		"Other":       {reason: "Another namespace says nothing.", spec: "podSecurity: baseline", others: []string{namespace("other", "restricted")}},
		"Restricted":  {reason: "What is restricted is so everywhere.", spec: "environment: production", others: []string{namespace("team", "restricted")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, "{image: 'r.example.com/shop:1', "+tc.spec+"}")
			for _, o := range tc.others {
				c.Add(o)
			}
			c.Reconcile()
			if got := c.Message(); tc.want != "" && !strings.Contains(got, tc.want) {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if applied := c.Observed["account"] != nil; applied != (tc.want == "") {
				t.Errorf("%s\nwant it refused: %t, got objects: %t", tc.reason, tc.want != "", applied)
			}
		})
	}
}
