//go:build e2e

package plan

import (
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

func webApp() types.Feature {
	g := newGround("e2e-plan-webapp", "plan/webapp.yaml", "WebApp", "web")
	f := tests.Feature("an edit of a WebApp does what its plan says", g.namespace).
		Quick("WebApp: as it is", g.isUnchanged).
		Quick("WebApp: image", g.comesTrue(spec("image", registry("shop-frontend:v2")))).
		Quick("WebApp: Ingress that a quota refuses", g.isRejected(spec("ingress", map[string]any{"host": "web.example.com"}))).
		Full("WebApp: tolerations", g.comesTrue(spec("tolerations", []any{toleration}))).
		Full("WebApp: more replicas", g.comesTrue(spec("replicas", 3))).
		Full("WebApp: fewer replicas", g.comesTrue(spec("replicas", 2))).
		Full("WebApp: env", g.comesTrue(spec("env", []any{env("BACKEND_URL", "http://web-backend:8080"), env("A", "b")}))).
		Full("WebApp: env removed", g.comesTrue(spec("env", []any{env("BACKEND_URL", "http://web-backend:8080")}))).
		Full("WebApp: requests", g.comesTrue(spec("resources", map[string]any{"requests": map[string]any{"memory": "80Mi"}}))).
		Full("WebApp: path of the probe", g.comesTrue(spec("probe", map[string]any{"path": "/healthz"}))).
		Full("WebApp: annotations of pods", g.comesTrue(spec("podAnnotations", map[string]any{"example.com/a": "b"}))).
		Full("WebApp: labels of pods", g.comesTrue(spec("podLabels", map[string]any{"tier": "b"}))).
		Full("WebApp: nodeSelector", g.comesTrue(spec("nodeSelector", map[string]any{"kubernetes.io/os": "linux"}))).
		Full("WebApp: CronJob", g.comesTrue(spec("cronJobs", []any{map[string]any{"name": "tidy", "schedule": "0 4 * * *", "args": []any{"prune"}}}))).
		Full("WebApp: CronJob removed", g.comesTrue(spec("cronJobs", nil))).
		Full("WebApp: Ingress", g.comesTrue(spec("ingress", map[string]any{"host": "web.example.com"}))).
		Full("WebApp: Ingress removed", g.comesTrue(spec("ingress", nil))).
		Full("WebApp: grace period", g.comesTrue(spec("terminationGracePeriodSeconds", 20))).
		Full("WebApp: args", g.comesTrue(spec("args", []any{}))).
		Full("WebApp: environment", g.comesTrue(spec("environment", "staging"))).
		Full("WebApp: port", g.comesTrue(spec("port", 9090))).
		Full("WebApp: label of the claim", g.comesTrue(harness.Patch{"metadata": harness.Patch{"labels": harness.Patch{"team": "b"}}}))
	return f.Feature()
}

func database() types.Feature {
	g := newGround("e2e-plan-database", "plan/database.yaml", "DatabaseCluster", "data")
	f := tests.Feature("an edit of a DatabaseCluster does what its plan says", g.namespace).
		Quick("DatabaseCluster: as it is", g.isUnchanged).
		Full("DatabaseCluster: parameter that is reloaded", g.comesTrue(parameter("work_mem", "8MB"))).
		Quick("DatabaseCluster: parameter that needs a restart", g.comesTrue(parameter("max_connections", "120"))).
		Full("DatabaseCluster: both kinds of parameters", g.comesTrue(spec("parameters", map[string]any{"work_mem": "6MB", "max_connections": "110"}))).
		Full("DatabaseCluster: tolerations", g.comesTrue(spec("tolerations", []any{toleration}))).
		Full("DatabaseCluster: requests", g.comesTrue(spec("resources", map[string]any{"requests": map[string]any{"memory": "280Mi"}}))).
		Full("DatabaseCluster: one more server", g.comesTrue(spec("size", 3))).
		Full("DatabaseCluster: one server less", g.comesTrue(spec("size", 2))).
		Full("DatabaseCluster: larger volumes", g.comesTrue(spec("storageSize", "2Gi"))).
		Full("DatabaseCluster: a database", g.comesTrue(spec("databases", []any{map[string]any{"name": "more"}}))).
		Full("DatabaseCluster: synchronous", g.comesTrue(spec("synchronous", true))).
		Full("DatabaseCluster: annotations of pods", g.comesTrue(spec("podAnnotations", map[string]any{"example.com/a": "b"}))).
		Full("DatabaseCluster: without metrics", g.comesTrue(spec("monitoring", map[string]any{"enabled": false}))).
		Full("DatabaseCluster: plain connections", g.comesTrue(spec("tls", map[string]any{"required": false}))).
		Full("DatabaseCluster: clients", g.comesTrue(spec("clients", map[string]any{"app": "x"}))).
		Full("DatabaseCluster: protection", g.comesTrue(spec("deletionProtection", true))).
		Full("DatabaseCluster: no protection", g.comesTrue(spec("deletionProtection", false))).
		Full("DatabaseCluster: hibernated", g.comesTrue(spec("hibernated", true))).
		Full("DatabaseCluster: woken", g.comesTrue(spec("hibernated", false))).
		Full("DatabaseCluster: one server", g.comesTrue(harness.Patch{"spec": harness.Patch{"synchronous": false, "size": 1}})).
		Full("DatabaseCluster: requests of one server", g.comesTrue(spec("resources", map[string]any{"requests": map[string]any{"memory": "300Mi"}}))).
		Full("DatabaseCluster: two servers and other requests", g.comesTrue(harness.Patch{"spec": harness.Patch{"size": 2, "resources": map[string]any{"requests": map[string]any{"memory": "310Mi"}}}})).
		Full("DatabaseCluster: sleeps", g.comesTrue(spec("hibernated", true))).
		Full("DatabaseCluster: wakes with another parameter", g.comesTrue(harness.Patch{"spec": harness.Patch{"hibernated": false, "parameters": harness.Patch{"max_connections": "130"}}}))
	return f.Feature()
}

func group() types.Feature {
	g := newGround("e2e-plan-mysql", "plan/mysql.yaml", "DatabaseCluster", "ledger")
	f := tests.Feature("an edit of a DatabaseCluster of engine mysql does what its plan says", g.namespace).
		Full("MySQL: as it is", g.isUnchanged).
		Full("MySQL: parameter that is set", g.comesTrue(parameter("max_connections", "120"))).
		Full("MySQL: parameter that needs a start", g.comesTrue(parameter("thread_stack", "1M"))).
		Full("MySQL: requests", g.comesTrue(spec("resources", map[string]any{"requests": map[string]any{"memory": "280Mi"}}))).
		Full("MySQL: larger volumes", g.comesTrue(spec("storageSize", "2Gi"))).
		Full("MySQL: a database", g.comesTrue(spec("databases", []any{map[string]any{"name": "more"}}))).
		Full("MySQL: hibernated", g.comesTrue(spec("hibernated", true))).
		Full("MySQL: woken", g.comesTrue(spec("hibernated", false))).
		Full("MySQL: one server", g.comesTrue(spec("size", 1))).
		Full("MySQL: three servers", g.comesTrue(spec("size", 3)))
	return f.Feature()
}

func shop() types.Feature {
	g := newGround("e2e-plan-shop", "shop/store.yaml", "EcommercePlatform", "store")
	f := tests.Feature("an edit of a shop does what its plan says", g.namespace).
		Full("shop: as it is", g.isUnchanged).
		Full("shop: image of the frontend", g.comesTrue(tier("frontend", "image", registry("shop-frontend:v2")))).
		Full("shop: image of the backend", g.comesTrue(tier("backend", "image", registry("shop-backend:v2")))).
		Full("shop: replicas of the frontend", g.comesTrue(tier("frontend", "replicas", 2))).
		Full("shop: replicas of the backend", g.comesTrue(tier("backend", "replicas", 2))).
		Full("shop: replicas of both", g.comesTrue(harness.Patch{"spec": harness.Patch{"frontend": harness.Patch{"replicas": 1}, "backend": harness.Patch{"replicas": 1}}})).
		Full("shop: env of the backend", g.comesTrue(tier("backend", "env", []any{env("A", "b")}))).
		Full("shop: memory of the cache", g.comesTrue(tier("cache", "memory", "80Mi"))).
		Full("shop: eviction policy of the cache", g.comesTrue(tier("cache", "evictionPolicy", "noeviction"))).
		Full("shop: configuration", g.comesTrue(spec("config", map[string]any{"LOG_LEVEL": "debug"}))).
		Full("shop: host of the Ingress", g.comesTrue(tier("ingress", "host", "other.example.com"))).
		Full("shop: storage of the database", g.comesTrue(tier("database", "storage", "2Gi"))).
		Full("shop: without CronJobs", g.comesTrue(tier("backend", "cronJobs", nil))).
		Full("shop: without metrics", g.comesTrue(spec("monitoring", map[string]any{"enabled": false}))).
		Full("shop: without the cache", g.comesTrue(tier("cache", "enabled", false))).
		Full("shop: with the cache", g.comesTrue(tier("cache", "enabled", true))).
		Full("shop: a server more", g.comesTrue(tier("database", "size", 2))).
		Full("shop: port of the frontend", g.comesTrue(tier("frontend", "port", 9090)))
	return f.Feature()
}

// spec returns a patch that sets a field of the spec, or removes it if value is nil.
func spec(field string, value any) harness.Patch {
	return harness.Patch{"spec": harness.Patch{field: value}}
}

var toleration = map[string]any{"key": "example.com/spot", "operator": "Exists"}

func env(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }

func tier(name, field string, value any) harness.Patch {
	return spec(name, harness.Patch{field: value})
}

func parameter(name, value string) harness.Patch {
	return spec("parameters", harness.Patch{name: value})
}

// registry is an image without the name of the cluster's registry, which is known only once the
// suite runs.
type registry string
