package ecommerceplatform_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
)

func TestWithoutCache(t *testing.T) {
	c := simulate(t, functionstest.SmallShop)
	c.Settle()
	c.Edit(map[string]any{"enabled": false}, "cache")
	c.Settle()
	for _, n := range c.ComponentNames() {
		if strings.HasPrefix(n, "cache") {
			t.Errorf("%s must go with the cache", n)
		}
	}
	for _, e := range functionstest.As[appsv1.WebApp](t, c.Observed["backend"]).Spec.Env {
		if e.Name == "REDIS_URL" {
			t.Errorf("REDIS_URL must go with the cache")
		}
	}
	if status, message := c.Condition("CacheReady"); status != "True" || message != "Not part of this claim" {
		t.Errorf("CacheReady: got %s, %q", status, message)
	}
	if v := functionstest.Get(c.Claim, "status", "endpoints", "cache"); v != nil {
		t.Errorf("There is no endpoint of a cache: got %v", v)
	}
	if status, _ := c.Condition("Pruned"); status != "True" || c.Phase() != "Running" {
		t.Errorf("A cache holds nothing that must be kept: got %s, %s", status, c.Phase())
	}
}

// TestCache: the configuration of Redis has the claim's memory, eviction policy and password.
func TestCache(t *testing.T) {
	c := simulate(t, functionstest.BigShop)
	c.Settle()
	password, conf := c.SecretValue("cache-secret", "password"), c.SecretValue("cache-secret", "redis.conf")
	if !strings.Contains(conf, "requirepass "+password+"\n") {
		t.Errorf("got redis.conf without its password")
	}
	if got := c.SecretValue("cache-secret", "uri"); got != "rediss://:"+password+"@store-cache.team.svc:6379/0" {
		t.Errorf("got uri %s", strings.ReplaceAll(got, password, "PASSWORD"))
	}
	args := func(want ...string) {
		t.Helper()
		got := functionstest.As[k8sappsv1.Deployment](t, c.Observed["cache-server"]).Spec.Template.Spec.Containers[0].Args
		if diff := cmp.Diff(append([]string{"/etc/redis/redis.conf"}, want...), got[:min(len(got), 5)]); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
	args("--maxmemory", "134217728", "--maxmemory-policy", "allkeys-lru")
	c.Edit("256Mi", "cache", "memory")
	c.Edit("volatile-ttl", "cache", "evictionPolicy")
	c.Settle()
	args("--maxmemory", "268435456", "--maxmemory-policy", "volatile-ttl")
	if c.SecretValue("cache-secret", "password") != password || c.SecretValue("cache-secret", "redis.conf") != conf {
		t.Errorf("the password was drawn again, or its file has changed")
	}
}

// TestCacheComesBack: a cache whose node has failed is started on another one after 30 seconds, and
// a change never runs two at once.
func TestCacheComesBack(t *testing.T) {
	c := simulate(t, functionstest.BigShop)
	c.Settle()
	d := functionstest.As[k8sappsv1.Deployment](t, c.Observed["cache-server"])
	got := map[string]int64{}
	for _, tol := range d.Spec.Template.Spec.Tolerations {
		got[tol.Key] = *tol.TolerationSeconds
	}
	if diff := cmp.Diff(map[string]int64{"node.kubernetes.io/not-ready": 30, "node.kubernetes.io/unreachable": 30}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if d.Spec.Strategy.Type != k8sappsv1.RecreateDeploymentStrategyType || *d.Spec.Replicas != 1 {
		t.Errorf("want one at a time, got %v", d.Spec.Strategy)
	}
}

// TestCachePassword: a password that changes in its Secret reaches Redis, which reads it only when
// it starts, and the backend, which has it in its environment.
func TestCachePassword(t *testing.T) {
	set := func(value string) func(*functionstest.Crossplane) {
		return func(c *functionstest.Crossplane) {
			functionstest.Set(c.Observed["cache-secret"], base64.StdEncoding.EncodeToString([]byte(value)), "data", "password")
		}
	}
	cases := map[string]struct {
		reason string
		change func(*functionstest.Crossplane)
		same   bool
	}{
		"Nothing": {reason: "At rest nothing changes.", change: func(*functionstest.Crossplane) {}, same: true},
		"Edited":  {reason: "One that a person sets.", change: set("chosen")},
		"Lost": {reason: "One that is taken out is drawn again.", change: func(c *functionstest.Crossplane) {
			delete(functionstest.Fields(c.Observed["cache-secret"], "data"), "password")
		}},
		"Gone": {reason: "So is one whose Secret is deleted.", change: func(c *functionstest.Crossplane) { delete(c.Observed, "cache-secret") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.BigShop)
			c.Settle()
			type versions struct{ Password, Redis, Backend string }
			read := func() versions {
				v := versions{Password: c.SecretValue("cache-secret", "password")}
				v.Redis = functionstest.As[k8sappsv1.Deployment](t, c.Observed["cache-server"]).Spec.Template.Annotations["storeplane.example.com/password-version"]
				for _, e := range functionstest.As[appsv1.WebApp](t, c.Observed["backend"]).Spec.Env {
					if e.Name == "REDIS_URL_VERSION" {
						v.Backend = e.Value
					}
				}
				return v
			}
			before, conf := read(), c.SecretValue("cache-secret", "redis.conf")
			tc.change(c)
			c.Reconcile()
			if v := read(); v.Redis != before.Redis && c.SecretValue("cache-secret", "redis.conf") == conf {
				t.Errorf("%s\nRedis is not replaced before its file has the password", tc.reason)
			}
			c.Reconcile()
			after := read()
			if after.Redis == "" || after.Redis != after.Backend || strings.Contains(after.Password, after.Redis) {
				t.Errorf("%s\nwant one version of both: %+v", tc.reason, after)
			}
			if same := after == before; same != tc.same || !same && after.Redis == before.Redis {
				t.Errorf("%s\nwant the same %t: before %+v, after %+v", tc.reason, tc.same, before, after)
			}
			if conf, uri := c.SecretValue("cache-secret", "redis.conf"), c.SecretValue("cache-secret", "uri"); !strings.Contains(conf, "requirepass "+after.Password+"\n") || !strings.Contains(uri, ":"+after.Password+"@") {
				t.Errorf("%s\nall of the Secret has the password", tc.reason)
			}
		})
	}
}

// TestCacheWaiting: the shop names what keeps its cache from becoming ready.
func TestCacheWaiting(t *testing.T) {
	const (
		image = `{apiVersion: v1, kind: Pod, metadata: {name: shop-cache-1, namespace: team, labels: {app.kubernetes.io/instance: store, app.kubernetes.io/component: cache}}, status: {containerStatuses: [{name: redis, image: 'r.example.com/redis:8', state: {waiting: {reason: ErrImagePull, message: 'redis:8: not found'}}}]}}`
		quota = `{observedGeneration: 2, unavailableReplicas: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "shop-cache-5d4-x7" is forbidden: exceeded quota: small, requested: limits.memory=64Mi, used: limits.memory=4, limited: limits.memory=4'}]}`
	)
	cases := map[string]struct {
		status, want string
		pods         []string
	}{
		"Image": {status: `{observedGeneration: 2, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1}`, pods: []string{image}, want: "shop-cache-1: cannot pull image r.example.com/redis:8: not found"},
		"Quota": {status: quota, want: "cannot create pods: exceeded quota: small, requested: limits.memory=64Mi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.SmallShop)
			c.Settle()
			c.SetStatus("cache-server", tc.status)
			for _, p := range tc.pods {
				c.Add(p)
			}
			c.Reconcile()
			if want := "Waiting for cache (" + tc.want + ")"; c.Message() != want {
				t.Errorf("got  %q\nwant %q", c.Message(), want)
			}
			if got := functionstest.Get(c.Claim, "status", "podFailure").GetStringValue(); got != tc.want {
				t.Errorf("podFailure: got %q, want %q", got, tc.want)
			}
		})
	}
}
