package golden

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/render"
)

func TestMain(m *testing.M) {
	// A check of an EcommercePlatform takes a tenth of a second. The flag can be set higher by
	// hand.
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// TestAnyClaimConverges: each random claim that its definition accepts either becomes ready, or
// is rejected itself. No claim that it composes is rejected: what an intent accepts, the intents
// of its composed claims must accept too.
func TestAnyClaimConverges(t *testing.T) {
	r := renderer(t)
	kinds := map[string]*rapid.Generator[map[string]any]{
		"EcommercePlatform": shops(),
		"DatabaseCluster":   databases(),
		"WebApp":            webApps(),
	}
	for kind, specs := range kinds {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				claim := claimOf(kind, specs.Draw(rt, "spec"))
				if err := r.Schemas.Validate(claim); err != nil {
					rt.Fatalf("The generator draws only what the definition accepts: %v", err)
				}
				result, err := r.Run(t.Context(), render.Input{Claim: claim})
				if refused, ok := errors.AsType[*converge.RefusedError](err); ok {
					if refused.Claim.Kind != kind {
						rt.Fatalf("%s accepts what its %s refuses: %v", kind, refused.Claim, err)
					}
					return
				}
				if err != nil {
					rt.Fatal(err)
				}
				if !result.Ready {
					rt.Fatalf("%s does not get ready: %v", kind, result.Claim.Object["status"])
				}
			})
		})
	}
}

func claimOf(kind string, spec map[string]any) *unstructured.Unstructured {
	group := "apps.example.com/v1"
	if kind == "EcommercePlatform" {
		group = "platform.example.com/v1"
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group, "kind": kind, "spec": spec}}
	u.SetNamespace("team")
	u.SetName("thing")
	return u
}

// fields are the generators of an object's fields. draw generates an object with the required
// fields and some of the others.
type fields map[string]*rapid.Generator[any]

func (f fields) draw(t *rapid.T, must ...string) map[string]any {
	out := map[string]any{}
	required := map[string]bool{}
	for _, k := range must {
		required[k] = true
	}
	// The fields are sorted so that a failure can be replayed.
	for _, k := range sorted(f) {
		if required[k] || rapid.Bool().Draw(t, "has "+k) {
			out[k] = f[k].Draw(t, k)
		}
	}
	return out
}

func object(f fields, must ...string) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any { return f.draw(t, must...) })
}

func specOf(f fields, must ...string) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any { return f.draw(t, must...) })
}

func oneOf(values ...any) *rapid.Generator[any] { return rapid.SampledFrom(values) }

func number(from, to int64) *rapid.Generator[any] {
	return rapid.Map(rapid.Int64Range(from, to), func(i int64) any { return i })
}

func flagValue() *rapid.Generator[any] { return oneOf(true, false) }

func environment() *rapid.Generator[any] { return oneOf("development", "staging", "production") }

func stringMap() *rapid.Generator[any] {
	return rapid.Map(rapid.IntRange(0, 3), func(n int) any {
		out := map[string]any{}
		for i := range n {
			out[fmt.Sprintf("KEY_%d", i)] = fmt.Sprintf("a \"value\"\n%d: $(x)", i)
		}
		return out
	})
}

func autoscaling() *rapid.Generator[any] {
	return object(fields{
		"minReplicas": number(1, 3), "maxReplicas": number(3, 10), "targetCPUUtilization": number(1, 100), "targetMemoryUtilization": number(1, 1000),
		"metrics": oneOf([]any{}, []any{
			map[string]any{"type": "Pods", "name": "rps", "averageValue": "100"},
			map[string]any{"type": "External", "name": "queue", "averageValue": "500m", "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}},
		}),
	}, "maxReplicas")
}

func ingress() *rapid.Generator[any] {
	return object(fields{
		"host": oneOf("shop.example.com", "a.b"), "className": oneOf("nginx"),
		"tls":         object(fields{"secretName": oneOf("tls"), "issuer": oneOf("letsencrypt")}, "issuer"),
		"annotations": oneOf(map[string]any{"example.com/a": "b"}, map[string]any{}),
	}, "host")
}

func gateway() *rapid.Generator[any] {
	return object(fields{
		"host":        oneOf("shop.example.com", "a.b"),
		"annotations": oneOf(map[string]any{"example.com/a": "b"}, map[string]any{}),
		"gateway":     object(fields{"name": oneOf("public"), "namespace": oneOf("infra"), "sectionName": oneOf("http", "https")}, "name"),
	}, "host", "gateway")
}

func cronJobs() *rapid.Generator[any] {
	return rapid.Map(rapid.IntRange(0, 2), func(n int) any {
		out := []any{}
		for i := range n {
			out = append(out, map[string]any{"name": fmt.Sprintf("job-%d", i), "schedule": "*/5 0-3 1,2 * mon-fri", "args": []any{"run"}, "suspend": i == 1, "failedJobsHistoryLimit": int64(i)})
		}
		return out
	})
}

func workers() *rapid.Generator[any] {
	return oneOf([]any{}, []any{map[string]any{"name": "w"}}, []any{
		map[string]any{"name": "w", "args": []any{"work"}, "replicas": int64(2), "probe": map[string]any{"command": []any{"alive"}}},
		map[string]any{"name": "w-autoscaler", "autoscaling": map[string]any{"maxReplicas": int64(3)}},
	})
}

func volumes() *rapid.Generator[any] {
	empty := map[string]any{"name": "a", "mountPath": "/a", "emptyDir": map[string]any{}}
	return oneOf([]any{}, []any{empty}, []any{
		empty,
		map[string]any{"name": "b", "mountPath": "/a/b", "configMap": map[string]any{"name": "c"}},
		map[string]any{"name": "c", "mountPath": "/c", "secret": map[string]any{"secretName": "s"}},
		map[string]any{"name": "d", "mountPath": "/d", "readOnly": true, "persistentVolumeClaim": map[string]any{"claimName": "d"}},
	}, []any{map[string]any{"name": "c", "mountPath": "/c", "secret": map[string]any{}}})
}

func sidecars() *rapid.Generator[any] {
	return oneOf([]any{}, []any{map[string]any{"name": "proxy", "image": "proxy", "port": int64(6432)}, map[string]any{"name": "logs"}})
}

func workload() fields {
	return fields{
		"image":       oneOf("nginx", "nginx:1.25", "registry.example.com:5000/a/b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
		"replicas":    number(1, 10),
		"port":        number(1, 65535),
		"command":     oneOf([]any{"serve"}, []any{}),
		"args":        oneOf([]any{"--port", "80"}),
		"env":         oneOf([]any{map[string]any{"name": "A", "value": "b"}}, []any{}),
		"envFrom":     oneOf([]any{map[string]any{"secretRef": map[string]any{"name": "s"}}}),
		"resources":   oneOf(map[string]any{"requests": map[string]any{"cpu": "100m", "memory": int64(1 << 28)}, "limits": map[string]any{"memory": "512Mi"}}, map[string]any{}),
		"autoscaling": autoscaling(),
		"probe": object(fields{
			"path": oneOf("/readyz"), "port": number(1, 65535), "liveness": object(fields{"path": oneOf("/livez")}, "path"), "startup": object(fields{"seconds": number(1, 3600)}, "seconds"),
		}),
		"volumes":        volumes(),
		"initContainers": oneOf([]any{map[string]any{"name": "warm-up", "args": []any{"warm"}}}),
		"sidecars":       sidecars(),
		"metrics":        object(fields{"port": oneOf(int64(6432), int64(9090)), "path": oneOf("/m")}),

		"terminationGracePeriodSeconds": number(1, 3600),
	}
}

func migration() *rapid.Generator[any] {
	return oneOf(map[string]any{"args": []any{"migrate"}}, map[string]any{"args": []any{"migrate"}, "backoffLimit": int64(0), "activeDeadlineSeconds": int64(60)})
}

func webApps() *rapid.Generator[map[string]any] {
	f := workload()
	f["environment"] = environment()
	f["ingress"] = rapid.OneOf(ingress(), gateway())
	f["workers"] = workers()
	f["config"] = stringMap()
	f["migration"] = migration()
	f["cronJobs"] = cronJobs()
	f["clients"] = oneOf(map[string]any{"app": "frontend"}, map[string]any{})
	return specOf(f, "image")
}

func databases() *rapid.Generator[map[string]any] {
	return specOf(fields{
		"size":               number(1, 10),
		"version":            oneOf("17", "17.2", "17.2.0", "14"),
		"engine":             oneOf("postgresql", "mysql"),
		"environment":        environment(),
		"storageSize":        oneOf("1Gi", "20Gi", "1.5Ti", "100000000000"),
		"storageClassName":   oneOf("fast"),
		"resources":          oneOf(map[string]any{"requests": map[string]any{"cpu": "1"}}),
		"parameters":         oneOf(map[string]any{"work_mem": "16MB"}, map[string]any{}),
		"synchronous":        flagValue(),
		"databases":          oneOf([]any{map[string]any{"name": "shop", "extensions": []any{"pg_trgm"}}}),
		"users":              oneOf([]any{map[string]any{"name": "reader"}}, []any{map[string]any{"name": "a_b"}, map[string]any{"name": "_c"}}),
		"backup":             object(fields{"enabled": flagValue(), "schedule": oneOf("@daily", "0 2 * * *"), "retention": oneOf("30d", "4w")}),
		"monitoring":         object(fields{"enabled": flagValue()}),
		"synchronousMode":    oneOf("quorum", "strict"),
		"tls":                object(fields{"required": flagValue()}),
		"hibernated":         flagValue(),
		"deletionProtection": flagValue(),
		"clients":            oneOf(map[string]any{"app": "backend"}),
	}, "size", "version")
}

func shops() *rapid.Generator[map[string]any] {
	backend := workload()
	backend["migration"] = migration()
	backend["cronJobs"] = cronJobs()
	backend["workers"] = workers()
	return specOf(fields{
		"environment": environment(),
		"frontend":    object(workload(), "image"),
		"backend":     object(backend, "image"),
		"database": object(fields{
			"type": oneOf("postgresql", "mysql"), "version": oneOf("14", "17", "18.1"),
			"storage": oneOf("10Gi", "500Gi"), "size": number(1, 10),
			"parameters": oneOf(map[string]any{"work_mem": "16MB"}), "synchronous": flagValue(), "storageClassName": oneOf("fast"),
			"users": oneOf([]any{map[string]any{"name": "reader"}}), "backup": object(fields{"enabled": flagValue(), "retention": oneOf("30d")}),
		}),
		"cache":      object(fields{"enabled": flagValue(), "memory": oneOf("16Mi", "1Gi"), "evictionPolicy": oneOf("noeviction", "volatile-ttl")}),
		"monitoring": object(fields{"enabled": flagValue()}),
		"ingress":    rapid.OneOf(ingress(), gateway()),
		"config":     stringMap(),

		"deletionProtection": flagValue(),
	}, "frontend", "backend")
}
