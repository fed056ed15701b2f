//go:build e2e

package core

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// restricted checks every pod that there ever was, including those of Jobs.
func restricted(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	if err := cluster.AuditRestricted(ctx, dev.namespace); err != nil {
		return err
	}
	var errs []error
	pods := 0
	for _, k := range dev.world.Keys() {
		if k.Kind != "Pod" {
			continue
		}
		pods++
		h := dev.world.History(k.Kind, k.Name)
		for _, c := range harness.WritableRoots(h[0].Object) {
			errs = append(errs, fmt.Errorf("the root file system of %s can be written", c))
		}
	}
	n.Addf("%d pods", pods)
	return errors.Join(errs...)
}

// cacheIsClosed checks that the cache opens no connection, whatever runs in it.
func cacheIsClosed(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	apiServer, err := cluster.APIServer(ctx)
	if err != nil {
		return err
	}
	cache := slices.IndexFunc(dev.pods(), func(p string) bool { return strings.HasPrefix(p, cacheName+"-") })
	if cache < 0 {
		return errors.New("the cache has no pod")
	}
	targets := map[string]int{apiServer: 443, harness.Field(dev.world.Get("Service", frontendWeb), "spec", "clusterIP"): port}
	var errs []error
	for host, port := range targets {
		open, err := dev.client.Reaches(ctx, host, port)
		errs = append(errs, err)
		if err == nil && !open {
			errs = append(errs, fmt.Errorf("a pod that may does not reach port %d of %s", port, host))
		}
		open, err = cluster.Reaches(ctx, dev.namespace, dev.pods()[cache], "redis", host, port)
		errs = append(errs, err)
		if open {
			errs = append(errs, fmt.Errorf("the cache reaches port %d of %s: does this cluster's network enforce NetworkPolicies?", port, host))
		}
	}
	n.Addf("%d addresses", len(targets))
	return errors.Join(errs...)
}

// cacheEncrypts checks that Redis answers no client without TLS, and that the backend is a client.
func cacheEncrypts(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	if _, err := dev.order(ctx, "with-an-encrypted-cache-01"); err != nil {
		return err
	}
	pods := dev.pods()
	cache := slices.IndexFunc(pods, func(p string) bool { return strings.HasPrefix(p, cacheName+"-") })
	if cache < 0 {
		return errors.New("the cache has no pod")
	}
	pod := pods[cache]
	if out, err := cluster.Exec(ctx, dev.namespace, pod, "redis", nil, "redis-cli", "ping"); err == nil && (strings.Contains(out, "PONG") || strings.Contains(out, "NOAUTH")) {
		return fmt.Errorf("the cache answers without TLS: %s", strings.TrimSpace(out))
	}
	secrets, err := passwords(dev.world)
	if err != nil {
		return err
	}
	own := slices.IndexFunc(secrets, func(p password) bool { return p.where == cacheName+"/password" })
	if own < 0 {
		return errors.New("the cache has no password")
	}
	ask := "read -r REDISCLI_AUTH && export REDISCLI_AUTH && redis-cli --tls --insecure client list"
	out, err := cluster.Exec(ctx, dev.namespace, pod, "redis", strings.NewReader(secrets[own].value+"\n"), "sh", "-c", ask)
	if err != nil {
		return err
	}
	if !strings.Contains(out, "name=shop-backend ") {
		return fmt.Errorf("the backend is no client of the cache: %s", out)
	}
	metrics, err := cluster.PodMetrics(ctx, dev.namespace, pod, "9121")
	if err != nil {
		return err
	}
	if up, most := metrics.Sum("redis_up", nil), metrics.Sum("redis_memory_max_bytes", nil); up != 1 || most == 0 {
		return fmt.Errorf("the cache's metrics say that it is up %v, with at most %v bytes", up, most)
	}
	n.Addf("%d connections of the backend", strings.Count(out, "name=shop-backend "))
	return nil
}

// password is a password and the Secret and key that contain it.
type password struct{ where, value string }

// passwords returns the passwords in the Secrets of a namespace.
func passwords(w *harness.World) ([]password, error) {
	var out []password
	for _, s := range w.List("Secret") {
		data, _ := s.Object["data"].(map[string]any)
		for key, v := range data {
			if !strings.Contains(key, "password") {
				continue
			}
			raw, err := base64.StdEncoding.DecodeString(fmt.Sprint(v))
			if err != nil {
				return nil, fmt.Errorf("cannot decode Secret %s: %w", s.GetName(), err)
			}
			out = append(out, password{s.GetName() + "/" + key, string(raw)})
		}
	}
	return out, nil
}

// noPasswords searches for passwords in every version of every object except Secrets, in events,
// and in the logs of Crossplane, its functions and the shop.
func noPasswords(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	secrets, err := passwords(dev.world)
	if err != nil {
		return err
	}
	if len(secrets) < 5 {
		return fmt.Errorf("there are only %d passwords: this test looks for the wrong ones", len(secrets))
	}
	var errs []error
	places := 0
	search := func(where, text string) {
		places++
		for _, s := range secrets {
			if strings.Contains(text, s.value) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(s.value))) {
				errs = append(errs, fmt.Errorf("the password of Secret %s shows in %s", s.where, where))
			}
		}
	}
	for _, k := range dev.world.Keys() {
		if k.Kind == "Secret" {
			continue
		}
		for _, v := range dev.world.History(k.Kind, k.Name) {
			raw, err := json.Marshal(v.Object)
			if err != nil {
				return fmt.Errorf("cannot encode %s: %w", k, err)
			}
			search(k.String(), string(raw))
		}
	}
	events, err := cluster.Kube.CoreV1().Events(dev.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list events: %w", err)
	}
	for _, e := range events.Items {
		search("event "+e.Reason+" of "+e.InvolvedObject.Kind, e.Message)
	}
	for _, ns := range []string{systemNamespace, dev.namespace} {
		logs, err := cluster.Logs(ctx, ns)
		if err != nil {
			return err
		}
		for pod, text := range logs {
			search("the log of "+pod, text)
		}
	}
	n.Addf("%d passwords, %d places", len(secrets), places)
	return errors.Join(errs...)
}
