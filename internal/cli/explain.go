package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/internal/explain"
	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
)

// ExitNotReady is the exit code of explain if a claim is not ready.
const ExitNotReady = 2

// A kindName is a kind that commands accept, with the other names that kubectl has for it.
type kindName struct {
	schema.GroupVersion

	kind, plural, short string
	claim               bool
}

// kindNames are the kinds, as in their definitions.
var kindNames = []kindName{
	{platformv1.GroupVersion, platformv1.EcommercePlatformKind, "ecommerceplatforms", "ecp", true},
	{appsv1.GroupVersion, appsv1.DatabaseClusterKind, "databaseclusters", "dbc", true},
	{appsv1.GroupVersion, appsv1.WebAppKind, "webapps", "wa", true},
	{backupv1.GroupVersion, backupv1.BackupKind, "backups", "bak", false},
	{backupv1.GroupVersion, backupv1.RestoreKind, "restores", "", false},
	{configv1.GroupVersion, configv1.AppConfigKind, "appconfigs", "ac", false},
}

func (k kindName) is(name string) bool {
	name = strings.ToLower(name)
	return name != "" && slices.Contains([]string{strings.ToLower(k.kind), k.plural, k.short, k.plural + "." + k.Group, strings.ToLower(k.kind) + "." + k.Group}, name)
}

type explainCmd struct {
	clusterFlags
	namespaceFlags

	Objects []string `arg:"" help:"Claims as KIND/NAME or KIND NAME, as kubectl takes them: dbc/orders, webapp api. Also a Backup, a Restore or an AppConfig. By default all claims of the namespace that are not ready." name:"claim" optional:"" predictor:"claim"`

	Output  string `default:"text" enum:"text,json" help:"text or json."                                           short:"o"`
	Details bool   `help:"List every object of a claim, and not only those that run or are not healthy." short:"d"`
}

// Help returns the help of the command beside its flags.
func (*explainCmd) Help() string {
	return `Exit codes: 0 all are ready, 1 the command failed, 2 one is not ready.

It only gets and lists, and reads logs of containers that have failed. What it may not read it
reports as unknown.`
}

// Run runs the command.
func (c *explainCmd) Run(ctx context.Context, s streams) error {
	config, namespace, err := c.config()
	if err != nil {
		return err
	}
	if c.AllNamespaces && len(c.Objects) > 0 {
		return errors.New("cannot explain: name claims, or use --all-namespaces for those that are not ready")
	}
	namespace = c.of(namespace)
	live, err := state.NewLive(config)
	if err != nil {
		return err
	}
	objects, err := parseObjects("explain", c.Objects, namespace)
	if err != nil {
		return err
	}
	// Secrets are never evidence of a cause.
	live.WithoutSecrets = true
	all := len(objects) == 0
	if all {
		if objects, err = unready(ctx, live, namespace, s); err != nil {
			return err
		}
	}
	now := time.Now()
	reader := explain.NewReader(live, now)
	explanations := make([]explain.Explanation, 0, len(objects))
	for _, o := range objects {
		facts, err := reader.Read(ctx, o)
		switch {
		case err != nil:
			return err
		case len(facts.Tree) > 0:
			explanations = append(explanations, explain.Explain(facts))
		case !all: // A claim that was not named may have been deleted meanwhile.
			return fmt.Errorf("cannot explain %s in namespace %s: it does not exist", o, o.Namespace)
		}
	}
	report := explain.NewReport(explanations)
	if err := c.print(s, report, now); err != nil {
		return err
	}
	if !report.Ready() {
		return &exitError{code: ExitNotReady}
	}
	return nil
}

func (c *explainCmd) print(s streams, r *explain.Report, now time.Time) error {
	if c.Output == "json" {
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	return r.Text(s.out, now, c.Details)
}

// parseObjects parses the arguments of a command: KIND/NAME, or KIND and then names.
func parseObjects(do string, args []string, namespace string) ([]plan.Object, error) {
	var out []plan.Object
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		if len(args) == 1 {
			return nil, fmt.Errorf("cannot %s %q: name it by KIND/NAME, or KIND NAME", do, args[0])
		}
		for _, name := range args[1:] {
			o, err := objectOf(do, args[0], name, namespace)
			if err != nil {
				return nil, err
			}
			out = append(out, o)
		}
		return out, nil
	}
	for _, a := range args {
		kind, name, _ := strings.Cut(a, "/")
		o, err := objectOf(do, kind, name, namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func objectOf(do, kind, name, namespace string) (plan.Object, error) {
	known := make([]string, 0, len(kindNames))
	for _, k := range kindNames {
		if k.is(kind) && name != "" && !strings.Contains(name, "/") {
			return plan.Object{APIVersion: k.String(), Kind: k.kind, Namespace: namespace, Name: name}, nil
		}
		known = append(known, k.kind)
	}
	return plan.Object{}, fmt.Errorf("cannot %s %q of kind %q: it must have a name, and be of kind %s", do, name, kind, strings.Join(known, ", "))
}

// unready returns the claims of a namespace, or of all, that are not ready. It reports on standard
// error if there are no claims, or if all are ready.
func unready(ctx context.Context, live *state.Live, namespace string, s streams) ([]plan.Object, error) {
	claims, err := live.Claims(ctx, claimKinds(), namespace)
	if err != nil {
		return nil, err
	}
	where := "the cluster"
	if namespace != "" {
		where = "namespace " + namespace
	}
	there := len(claims)
	claims = slices.DeleteFunc(claims, func(u *unstructured.Unstructured) bool { return explain.StateOf(u) == explain.Ready })
	switch {
	case there == 0:
		fmt.Fprintf(s.err, "There are no claims in %s.\n", where)
	case len(claims) == 0:
		fmt.Fprintf(s.err, "All claims in %s are ready: %d.\n", where, there)
	}
	out := make([]plan.Object, 0, len(claims))
	for _, u := range claims {
		out = append(out, plan.Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()})
	}
	return out, nil
}
