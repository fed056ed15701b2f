package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const webApp = `apiVersion: apps.example.com/v1
kind: WebApp
metadata:
  name: web
  namespace: shop
spec:
  image: registry.example.com/shop/web:v1
`

// ran is the result of a command.
type ran struct {
	Code     int
	Out, Err string
}

func runs(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	var out, err bytes.Buffer
	code := run(t.Context(), "storeplane", args, streams{in: strings.NewReader(stdin), out: &out, err: &err})
	return ran{Code: code, Out: out.String(), Err: err.String()}
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPlan(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	cases := map[string]struct {
		reason string
		stdin  string
		args   []string
		want   ran
	}{
		"New": {
			reason: "A claim that does not exist creates its objects.",
			stdin:  webApp, args: []string{"plan", "--offline", "-"},
			want: ran{Code: ExitChanges, Out: `+ WebApp web in namespace shop is created

  objects
  + Deployment web-web
  + NetworkPolicy web-web
  + Service web-web
  + ServiceAccount web-web

  guardrails   1 passed, 0 broken

Plan: 4 to create, 0 to change, 0 to delete. Pods that end or restart: 0. Interruptions: 0. Irreversible: 0. Data lost: 0.
`},
		},
		"Refused": {
			reason: "A claim that is refused has its own exit code.",
			stdin:  strings.Replace(webApp, "  image:", "  replicas: 99\n  image:", 1), args: []string{"plan", "--offline", "-"},
			want: ran{Code: ExitRefused, Out: `! WebApp web in namespace shop is created

  refused
  ! WebApp "web" is invalid: spec: replicas may be at most 10 (more only where environment is development or staging)

Plan: 1 claim refused: nothing changes.
`},
		},
		"NoCluster": {
			reason: "Without a cluster there are two ways out.",
			stdin:  webApp, args: []string{"plan", "-"},
			want: ran{Code: ExitError, Err: "storeplane: error: cannot find a cluster: no kubeconfig names one: set KUBECONFIG or use --kubeconfig, or plan without a cluster by --from or --offline\n"},
		},
		"NoClusterExplain": {
			reason: "Other commands have one: they name no flags that they do not have.",
			args:   []string{"explain", "wa/web"},
			want:   ran{Code: ExitError, Err: "storeplane: error: cannot find a cluster: no kubeconfig names one: set KUBECONFIG or use --kubeconfig\n"},
		},
		"NoClaim": {
			reason: "Files without claims are a mistake.",
			stdin:  "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", args: []string{"plan", "--offline", "-"},
			want: ran{Code: ExitError, Err: "storeplane: error: cannot plan: no claim is in -: claims are of kind EcommercePlatform, DatabaseCluster or WebApp\n"},
		},
		"NoFile": {
			reason: "A file that does not exist is named.",
			args:   []string{"plan", "--offline", "no-such-file.yaml"},
			want:   ran{Code: ExitError, Err: "storeplane: error: cannot read no-such-file.yaml: no such file or directory\n"},
		},
		"Unknown": {
			reason: "An unknown flag is an error, and nothing is planned.",
			args:   []string{"plan", "--offlin", "-"},
			want:   ran{Code: ExitError, Err: "storeplane: error: unknown flag --offlin, did you mean \"--offline\"?\n"},
		},
		"Prices": {
			reason: "A price file without a currency says what to add.",
			stdin:  webApp, args: []string{"plan", "--offline", "--prices", file(t, "prices.yaml", "cpu: 10\n"), "-"},
			want: ran{Code: ExitError, Err: "storeplane: error: cannot read prices: FILE names no currency: add one, like currency: EUR\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := runs(t, tc.stdin, tc.args...)
			for _, a := range tc.args {
				if strings.HasPrefix(a, os.TempDir()) {
					got.Err = strings.ReplaceAll(got.Err, a, "FILE")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n%v: -want, +got:\n%s", tc.reason, tc.args, diff)
			}
		})
	}
}

// TestPlanFrom: plan --from plans from saved objects.
func TestPlanFrom(t *testing.T) {
	saved := runs(t, "", "converge", file(t, "web.yaml", webApp))
	if saved.Code != ExitOK {
		t.Fatal(saved)
	}
	// converge does not print the claim itself, so these objects are those that an earlier claim of
	// the same name left behind.
	got := runs(t, webApp, "plan", "--from", file(t, "saved.yaml", strings.ReplaceAll(saved.Out, "ownerReferences", "ignored")), "-")
	if got.Code != ExitChanges || !strings.Contains(got.Out, "> Deployment web-web\n") {
		t.Errorf("want the objects to be adopted, got: %+v", got)
	}
}

func TestPlanOutputs(t *testing.T) {
	prices := file(t, "prices.yaml", "currency: EUR\ncpu: 10\nmemory: 4\nstorage: 0.1\n")
	for output, want := range map[string]string{
		"json":     `"apiVersion": "plan.storeplane.example.com/v1"`,
		"markdown": "<!-- storeplane-plan -->\n### Plan: 4 to create",
		"text":     "EUR a month",
	} {
		t.Run(output, func(t *testing.T) {
			got := runs(t, webApp, "plan", "--offline", "--prices", prices, "-o", output, "-")
			if got.Code != ExitChanges || !strings.Contains(got.Out, want) {
				t.Errorf("want %q in: %+v", want, got)
			}
		})
	}
}

func TestPolicyAndConverge(t *testing.T) {
	path := file(t, "web.yaml", webApp)
	if got := runs(t, "", "policy", path); got.Code != ExitOK || !strings.Contains(got.Out, "kind: PolicyReport") {
		t.Errorf("want a report, got: %+v", got)
	}
	if got := runs(t, "", "converge", path); got.Code != ExitOK || !strings.Contains(got.Out, "kind: Deployment") {
		t.Errorf("want objects, got: %+v", got)
	}
}

// TestCompletion: shell completion returns commands, flags and kinds, and runs nothing else.
func TestCompletion(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for line, want := range map[string]string{
		"storeplane ex":           "explain\nexport\n",
		"storeplane plan --off":   "--offline\n",
		"storeplane explain ":     "ecommerceplatform/\ndatabasecluster/\nwebapp/\nbackup/\nrestore/\nappconfig/\n",
		"storeplane explain back": "backup/\n",
	} {
		t.Setenv("COMP_LINE", line)
		var out, errs bytes.Buffer
		if code := run(t.Context(), "storeplane", nil, streams{in: strings.NewReader(""), out: &out, err: &errs}); code != ExitOK || errs.Len() > 0 {
			t.Errorf("%q: exit code %d, %s", line, code, errs.String())
		}
		got, wanted := strings.Split(out.String(), "\n"), strings.Split(want, "\n")
		slices.Sort(got)
		slices.Sort(wanted)
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", line, diff)
		}
	}
}

// TestKindNames: the names of kinds are those of their definitions.
func TestKindNames(t *testing.T) {
	type names struct{ Group, Kind, Plural, Short string }
	got, want := map[string]names{}, map[string]names{}
	for _, k := range kindNames {
		got[k.kind] = names{k.Group, k.kind, k.plural, k.short}
	}
	files, err := filepath.Glob("../../apis/*/definition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds, err := filepath.Glob("../../package/provider/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, crds...) {
		var d struct {
			Spec struct {
				Group string
				Names struct {
					Kind, Plural string
					ShortNames   []string
				}
			}
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(b, &d); err != nil {
			t.Fatal(err)
		}
		n := names{d.Spec.Group, d.Spec.Names.Kind, d.Spec.Names.Plural, strings.Join(d.Spec.Names.ShortNames, ",")}
		if _, ok := got[n.Kind]; ok {
			want[n.Kind] = n
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-definitions +kindNames:\n%s", diff)
	}
}

// TestExplainArguments: arguments that cannot be explained are refused with a message, before a
// request to a cluster.
func TestExplainArguments(t *testing.T) {
	for args, want := range map[string]string{
		"dbc":         `cannot explain "dbc": name it by KIND/NAME, or KIND NAME`,
		"dbc/":        `cannot explain "" of kind "dbc": it must have a name, and be of kind EcommercePlatform, DatabaseCluster, WebApp, Backup, Restore, AppConfig`,
		"pod/x":       `cannot explain "x" of kind "pod": it must have a name, and be of kind EcommercePlatform, DatabaseCluster, WebApp, Backup, Restore, AppConfig`,
		"dbc/a/b":     `cannot explain "a/b" of kind "dbc": it must have a name, and be of kind EcommercePlatform, DatabaseCluster, WebApp, Backup, Restore, AppConfig`,
		"DBC/a wa/b":  "",
		"webapps a b": "",
	} {
		_, err := parseObjects("explain", strings.Fields(args), "shop")
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
