package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/gitops/states"
)

const root = "../../package/gitops"

// kinds are the kinds that are tested, named like Argo CD's folders.
var kinds = []string{
	"platform.example.com/EcommercePlatform", "apps.example.com/DatabaseCluster", "apps.example.com/WebApp",
	"backup.example.com/Backup", "backup.example.com/Restore", "config.example.com/AppConfig",
}

func kindOf(o *unstructured.Unstructured) string {
	return o.GroupVersionKind().Group + "/" + o.GetKind()
}

func read(t testing.TB, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// run runs a script as Argo CD runs one of its ConfigMap: of Lua's libraries only those for
// tables and packages and the basic functions are loaded, and a simulated os.date
// (https://github.com/argoproj/argo-cd/blob/37ee0097cf851bc2dd7665fc081bbce61a7e836e/util/lua/lua.go#L139-L203).
func run(t testing.TB, script string, o *unstructured.Unstructured) any {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.PreloadModule(lua.OsLibName, func(l *lua.LState) int {
		l.Push(l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{"date": func(l *lua.LState) int {
			l.Push(lua.LString("date " + l.CheckString(1)))
			return 1
		}}))
		return 1
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", toLua(l, o.Object))
	if err := l.DoString(script); err != nil {
		t.Fatalf("%v\n%v", err, o)
	}
	return fromLua(l.Get(-1))
}

func toLua(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		out := l.CreateTable(len(v), 0)
		for _, e := range v {
			out.Append(toLua(l, e))
		}
		return out
	case map[string]any:
		out := l.CreateTable(0, len(v))
		for k, e := range v {
			out.RawSetString(k, toLua(l, e))
		}
		return out
	case nil:
		return lua.LNil
	}
	panic(fmt.Sprintf("there is no JSON of type %T", v))
}

// fromLua converts a value of Lua. A table with elements 1 to n becomes a list, and any other
// table, also an empty one, a map: Lua has one type for both.
func fromLua(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LBool:
		return bool(v)
	case lua.LNumber:
		if i := int64(v); lua.LNumber(i) == v {
			return i
		}
		return float64(v)
	case *lua.LTable:
		if v.Len() > 0 {
			out := make([]any, 0, v.Len())
			v.ForEach(func(_, e lua.LValue) { out = append(out, fromLua(e)) })
			return out
		}
		out := map[string]any{}
		v.ForEach(func(k, e lua.LValue) { out[k.String()] = fromLua(e) })
		return out
	}
	return nil
}

// argo returns the health that Argo CD shows for an object, and its message.
func argo(t testing.TB, o *unstructured.Unstructured) (health, message string) {
	t.Helper()
	out, _ := run(t, read(t, "argocd", kindOf(o), "health.lua"), o).(map[string]any)
	health, _ = out["status"].(string)
	message, _ = out["message"].(string)
	return health, message
}

// expressions are the health check expressions of a kind in Flux's format.
type expressions struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Current    string `json:"current"`
	Failed     string `json:"failed"`
	InProgress string `json:"inProgress"`
}

type kustomization struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Path             string              `json:"path"`
		DependsOn        []map[string]string `json:"dependsOn"`
		Wait             bool                `json:"wait"`
		HealthCheckExprs []expressions       `json:"healthCheckExprs"`
	} `json:"spec"`
}

// fluxExpressions returns the shipped expressions by kind.
func fluxExpressions(t testing.TB) map[string]expressions {
	t.Helper()
	var k kustomization
	if err := yaml.UnmarshalStrict([]byte(read(t, "flux", "health-checks.yaml")), &struct {
		*kustomization

		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}{kustomization: &k}); err != nil {
		t.Fatal(err)
	}
	out := map[string]expressions{}
	for _, e := range k.Spec.HealthCheckExprs {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(e.APIVersion)
		o.SetKind(e.Kind)
		out[kindOf(o)] = e
	}
	return out
}

// flux evaluates a kind's expressions as Flux does. An object for which an expression cannot be
// evaluated is Unknown, and Flux waits for it
// (https://github.com/fluxcd/pkg/blob/e2cfd1a2d1815a81b3e77ef750e6528282ccccd6/runtime/cel/status_evaluator.go#L78-L139).
func flux(t testing.TB, e expressions, o *unstructured.Unstructured) status.Status {
	t.Helper()
	if at, ok, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); err == nil && ok && at != o.GetGeneration() {
		return status.InProgressStatus
	}
	for _, x := range []struct {
		text string
		is   status.Status
	}{{e.InProgress, status.InProgressStatus}, {e.Failed, status.FailedStatus}, {e.Current, status.CurrentStatus}} {
		env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
		if err != nil {
			t.Fatal(err)
		}
		ast, issues := env.Parse(x.text)
		if issues != nil {
			t.Fatal(issues)
		}
		program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := program.Eval(o.Object)
		if err != nil {
			return status.UnknownStatus
		}
		if v.Value() == true {
			return x.is
		}
	}
	return status.InProgressStatus
}

// verdict is the status of an object according to each tool.
type verdict struct {
	Kstatus, Flux status.Status
	Argo          string
}

func judge(t testing.TB, exprs map[string]expressions, o *unstructured.Unstructured) verdict {
	t.Helper()
	v := verdict{Kstatus: states.Kstatus(t, o), Flux: flux(t, exprs[kindOf(o)], o)}
	v.Argo, _ = argo(t, o)
	return v
}

// kubectl reports whether kubectl wait returns for a condition: it must be True and its
// observedGeneration, or if it has none that of the status, must not be older than the object's
// generation
// (https://github.com/kubernetes/kubectl/blob/dee3483a3d6a64c07fdf746caf80af446dee99ac/pkg/cmd/wait/condition.go#L53-L83).
func kubectl(o *unstructured.Unstructured, typ string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		if c["type"] != typ {
			continue
		}
		observed, found, _ := unstructured.NestedInt64(c, "observedGeneration")
		if !found {
			observed, found, _ = unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		}
		return c["status"] == "True" && (!found || observed >= o.GetGeneration())
	}
	return false
}

// wrong names the first tool whose verdict none of the expectations allows, or returns "".
func (v verdict) wrong(expected ...states.Expectation) string {
	words := map[states.Expectation]string{
		states.Done: "Healthy", states.Working: "Progressing", states.Failed: "Degraded",
		states.Degraded: "Degraded", states.Held: "Suspended", states.Deleting: "Progressing",
	}
	var kstatus, flux, argo bool
	for _, e := range expected {
		kstatus = kstatus || e.Allows(v.Kstatus)
		// Flux detects a deletion by kstatus before it evaluates expressions.
		flux = flux || e == states.Deleting || e.Allows(v.Flux)
		argo = argo || v.Argo == words[e]
	}
	switch {
	case !kstatus:
		return "kstatus calls it " + string(v.Kstatus)
	case !flux:
		return "Flux calls it " + string(v.Flux)
	case !argo:
		return "Argo CD calls it " + v.Argo
	}
	return ""
}
