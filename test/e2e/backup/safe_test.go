//go:build e2e

package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// isSafe checks every pod that ever worked for a Backup or Restore of the namespace, and searches
// all objects and logs for what may be only in Secrets.
func (g *ground) isSafe(ctx context.Context, n notes) error {
	if err := g.pair(engines[0], backupv1.S3)(ctx, n); err != nil && !strings.Contains(err.Error(), "already exists") {
		return err
	}
	secrets := []string{password, secretKey, accountKey, "AGE-SECRET-KEY-"}
	uri := g.uri(engines[0], engines[0].source())
	if _, after, ok := strings.Cut(uri, "://"); ok {
		_, pass, _ := strings.Cut(after, ":")
		pass, _, _ = strings.Cut(pass, "@")
		secrets = append(secrets, pass)
	}
	var errs []error
	pods := 0
	for _, k := range g.world.Keys() {
		for _, v := range g.world.History(k.Kind, k.Name) {
			// Secrets may contain it.
			if k.Kind == "Secret" {
				continue
			}
			raw, err := json.Marshal(v.Object)
			if err != nil {
				return fmt.Errorf("cannot encode %s: %w", k, err)
			}
			for _, s := range secrets {
				if s != "" && strings.Contains(string(raw), s) {
					errs = append(errs, fmt.Errorf("%s has a secret in it", k))
				}
			}
		}
		if k.Kind == "Pod" && ofBackup(g.world.History(k.Kind, k.Name)[0].Object) {
			pods++
			errs = append(errs, careful(ctx, g.world.History(k.Kind, k.Name)[0].Object))
		}
	}
	n.Addf("%d pods", pods)
	if pods == 0 {
		errs = append(errs, errors.New("no pod was seen"))
	}
	logs, err := cluster.Logs(ctx, g.namespace)
	if err != nil {
		return err
	}
	for pod, log := range logs {
		if slices.ContainsFunc(secrets, func(s string) bool { return s != "" && strings.Contains(log, s) }) {
			errs = append(errs, fmt.Errorf("the log of %s has a secret in it", pod))
		}
	}
	return errors.Join(append(errs, cluster.AuditRestricted(ctx, g.namespace))...)
}

func ofBackup(u *unstructured.Unstructured) bool { return u.GetLabels()[backupv1.ActionLabel] != "" }

// careful checks that a pod cannot write to its root file systems, has no token, has limits of
// memory, and has no Secret in its environment.
func careful(_ context.Context, u *unstructured.Unstructured) error {
	var errs []error
	if roots := harness.WritableRoots(u); len(roots) > 0 {
		errs = append(errs, fmt.Errorf("containers %v can write to their root", roots))
	}
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &p); err != nil {
		return fmt.Errorf("cannot read pod %s: %w", u.GetName(), err)
	}
	if p.Spec.AutomountServiceAccountToken == nil || *p.Spec.AutomountServiceAccountToken {
		errs = append(errs, fmt.Errorf("pod %s has a token of the cluster", p.Name))
	}
	for _, c := range p.Spec.Containers {
		if c.Resources.Limits.Memory().IsZero() {
			errs = append(errs, fmt.Errorf("container %s of pod %s may take all memory", c.Name, p.Name))
		}
		for _, v := range c.Env {
			if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
				errs = append(errs, fmt.Errorf("pod %s has a secret in its environment", p.Name))
			}
		}
	}
	return errors.Join(errs...)
}
