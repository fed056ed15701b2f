package report

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// Pods returns the problems of pods, given the problems before: Kubernetes alternates between
// the cause and only that it retries, so a message with the cause is kept.
func Pods(pods []*corev1.Pod, before []instance.Problem) []instance.Problem {
	var problems []instance.Problem
	for _, pod := range pods {
		failure := podfailure.Of(pod)
		if failure == nil {
			continue
		}
		p := instance.Problem{Subject: instance.SubjectPod, Name: pod.Name, Message: pod.Name + ": " + failure.String()}
		i := slices.IndexFunc(before, func(b instance.Problem) bool {
			return b.Subject == p.Subject && b.Name == p.Name && strings.HasPrefix(b.Message, p.Message+": ")
		})
		if i >= 0 {
			p = before[i]
		}
		problems = append(problems, p)
	}
	return problems
}
