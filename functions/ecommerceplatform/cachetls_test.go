package ecommerceplatform_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/compose"
)

// clock is a source whose time only changes when the test sets it.
type clock struct {
	compose.SystemSource

	now time.Time
}

func (c *clock) Now() time.Time { return c.now }

// TestCacheTLS: Redis accepts connections with TLS only, and the backend has the authority that
// verifies them.
func TestCacheTLS(t *testing.T) {
	clk := &clock{now: functionstest.NewYear}
	c := simulate(t, functionstest.BigShop, functions.WithSource(clk))
	c.Settle()
	conf := c.SecretValue("cache-secret", "redis.conf")
	if !strings.Contains(conf, "\nport 0\ntls-port 6379\n") {
		t.Error("Redis admits connections without TLS")
	}
	authority := c.SecretValue("cache-tls", "ca.crt")
	if authority == "" || c.SecretValue("cache-secret", "ca.crt") != authority {
		t.Error("Clients have another authority than the cache's")
	}
	pod := func() corev1.PodTemplateSpec {
		return functionstest.As[k8sappsv1.Deployment](t, c.Observed["cache-server"]).Spec.Template
	}
	mounted := []string{}
	for _, v := range pod().Spec.Volumes {
		if v.Secret != nil {
			for _, item := range v.Secret.Items {
				mounted = append(mounted, v.Secret.SecretName+"/"+item.Key)
			}
		}
	}
	if diff := cmp.Diff([]string{"store-cache/redis.conf", "store-cache/metrics.conf", "store-cache-tls/tls.crt", "store-cache-tls/tls.key"}, mounted); diff != "" {
		t.Errorf("The authority's key is nothing for Redis: -want, +got:\n%s", diff)
	}
	backend := func() (volumes []string, version string) {
		spec := functionstest.As[appsv1.WebApp](t, c.Observed["backend"]).Spec
		for _, v := range spec.Volumes {
			volumes = append(volumes, v.Name+" "+v.MountPath)
		}
		for _, e := range spec.Env {
			if e.Name == "REDIS_URL_VERSION" {
				version = e.Value
			}
		}
		return volumes, version
	}
	volumes, version := backend()
	if want := "cache-authority /etc/storeplane/store-cache"; !slices.Contains(volumes, want) {
		t.Errorf("want a volume %s, got %v", want, volumes)
	}

	// A year later Redis has a new certificate of the same authority.
	before, certificate := pod().Annotations, c.SecretValue("cache-tls", "tls.crt")
	clk.now = clk.now.Add(340 * 24 * time.Hour)
	c.Settle()
	_, after := backend()
	if c.SecretValue("cache-tls", "tls.crt") == certificate || cmp.Equal(before, pod().Annotations) {
		t.Error("The certificate is not renewed, or Redis goes on with the old one")
	}
	if c.SecretValue("cache-secret", "ca.crt") != authority || after != version {
		t.Error("The backend is replaced for a certificate that it does not read")
	}

	c.Edit(false, "cache", "tls", "enabled")
	c.Settle()
	volumes, _ = backend()
	if slices.ContainsFunc(volumes, func(v string) bool { return strings.HasPrefix(v, "cache-authority") }) || c.Observed["cache-tls"] != nil {
		t.Errorf("Without TLS there is nothing to verify: got volumes %v", volumes)
	}
	if uri, conf := c.SecretValue("cache-secret", "uri"), c.SecretValue("cache-secret", "redis.conf"); !strings.HasPrefix(uri, "redis://") || !strings.Contains(conf, "\nport 6379\n") {
		t.Error("A client without TLS is not admitted")
	}
}

// TestCacheTLSRefused: the certificate of a claim that is refused is renewed too, as a mistake may
// stay in a claim for longer than the certificate is valid.
func TestCacheTLSRefused(t *testing.T) {
	clk := &clock{now: functionstest.NewYear}
	c := simulate(t, functionstest.BigShop, functions.WithSource(clk))
	c.Settle()
	state := func() (certificate, version string, rest any) {
		d := functionstest.As[k8sappsv1.Deployment](t, c.Observed["cache-server"])
		version = d.Spec.Template.Annotations["storeplane.example.com/certificate-version"]
		delete(d.Spec.Template.Annotations, "storeplane.example.com/certificate-version")
		return c.SecretValue("cache-tls", "tls.crt"), version, d.Spec
	}
	certificate, version, rest := state()
	c.Edit("eight", "cache", "memory")
	c.Reconcile()
	if got, gotVersion, _ := state(); got != certificate || gotVersion != version {
		t.Error("A certificate that holds is renewed")
	}
	clk.now = clk.now.Add(340 * 24 * time.Hour)
	c.Reconcile()
	c.Reconcile()
	got, gotVersion, gotRest := state()
	if got == certificate || gotVersion == version {
		t.Errorf("A claim that is refused keeps a certificate that expires: %s", c.Message())
	}
	if diff := cmp.Diff(rest, gotRest); diff != "" {
		t.Errorf("Something else changes with it: -want, +got:\n%s", diff)
	}
	if status, _ := c.Condition("Accepted"); status != "False" {
		t.Errorf("The claim is accepted: %s", c.Message())
	}
}

// TestCacheTLSTurns: Redis and the backend are each replaced once when TLS is turned on or off, and
// only when the Secret that their pods read has the new values.
func TestCacheTLSTurns(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(strconv.FormatBool(on), func(t *testing.T) {
			c := simulate(t, functionstest.BigShop)
			c.Edit(!on, "cache", "tls", "enabled")
			c.Settle()
			states := map[string][]any{}
			look := func() {
				for name, spec := range map[string]any{
					"cache":   functionstest.As[k8sappsv1.Deployment](t, c.Observed["cache-server"]).Spec.Template,
					"backend": functionstest.As[appsv1.WebApp](t, c.Observed["backend"]).Spec,
				} {
					if last := len(states[name]) - 1; last < 0 || !cmp.Equal(states[name][last], spec) {
						states[name] = append(states[name], spec)
					}
				}
			}
			look()
			c.Edit(on, "cache", "tls", "enabled")
			for range 5 {
				c.Reconcile()
				look()
			}
			for name, seen := range states {
				if len(seen) != 2 {
					t.Errorf("want one change of the %s, got %d", name, len(seen)-1)
				}
			}
			if has := c.Observed["cache-tls"] != nil; has != on {
				t.Errorf("there is a certificate: %t", has)
			}
		})
	}
}

// TestVerifiesCache: a backend that connects to a cache with TLS has the authority mounted to
// verify it.
func TestVerifiesCache(t *testing.T) {
	volumes := func(n int) string {
		out := &strings.Builder{}
		for i := range n {
			fmt.Fprintf(out, "{name: v%d, mountPath: /v%d, emptyDir: {}},", i, i)
		}
		return out.String()
	}
	const room = "backend.volumes leave no room for volume cache-authority at /etc/storeplane/store-cache, by which the backend verifies the cache: remove or move one, or set cache.tls.enabled to false"
	cases := map[string]struct {
		reason, backend, cache string
		mounted                bool
		refused                string
	}{
		"Default":  {reason: "It is mounted.", mounted: true},
		"Eighteen": {reason: "Beside the database's own, to the last.", backend: "volumes: [" + volumes(18) + "]", mounted: true},
		"Nineteen": {reason: "With no room for it, the backend could not connect.", backend: "volumes: [" + volumes(19) + "]", refused: room},
		"Parent":   {reason: "Nor where another volume hides it.", backend: "volumes: [{name: v, mountPath: /etc/storeplane, emptyDir: {}}]", refused: room},
		"Name":     {reason: "Nor where one has its name.", backend: "volumes: [{name: cache-authority, mountPath: /v, emptyDir: {}}]", refused: room},
		"Off":      {reason: "Without TLS there is nothing to mount.", backend: "volumes: [" + volumes(19) + "]", cache: "tls: {enabled: false}"},
		"Own":      {reason: "Nor where the claim has another cache.", backend: "env: [{name: REDIS_URL, value: mine}]"},
		"Named":    {reason: "A claim that names the Secret itself uses this cache.", backend: "env: [{name: REDIS_URL, valueFrom: {secretKeyRef: {name: store-cache, key: uri}}}]", mounted: true},
		"Env":      {reason: "What a WebApp takes in all.", backend: "env: [" + strings.Repeat("{name: A, value: b},", 97) + "]", refused: "backend.env may have at most 96 entries beside the shop's own, has 97"},
		"EnvOff":   {reason: "Without TLS there is one fewer.", backend: "env: [" + strings.Repeat("{name: A, value: b},", 97) + "]", cache: "tls: {enabled: false}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := "{frontend: {image: f}, backend: {image: b, " + tc.backend + "}, cache: {" + tc.cache + "}}"
			if tc.refused != "" {
				if got := functionstest.Refused(t, functionstest.EcommercePlatform(spec)); got != tc.refused {
					t.Errorf("%s\nwant %q\ngot  %q", tc.reason, tc.refused, got)
				}
				return
			}
			c := simulate(t, spec)
			c.Settle()
			backend := functionstest.As[appsv1.WebApp](t, c.Observed["backend"]).Spec
			volume := slices.ContainsFunc(backend.Volumes, func(v appsv1.Volume) bool { return v.Name == "cache-authority" })
			file := slices.ContainsFunc(backend.Env, func(e corev1.EnvVar) bool { return e.Name == "REDIS_CA_FILE" })
			if volume != tc.mounted || file != tc.mounted || len(backend.Env) > 100 || len(backend.Volumes) > 20 {
				t.Errorf("%s\nmounted: %t, named: %t, of %d variables and %d volumes", tc.reason, volume, file, len(backend.Env), len(backend.Volumes))
			}
		})
	}
}
