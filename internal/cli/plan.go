package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/internal/xrd"
)

// clusterFlags select a cluster.
type clusterFlags struct {
	Kubeconfig string `help:"Kubeconfig file. By default KUBECONFIG, then ~/.kube/config." placeholder:"FILE"`
	Context    string `help:"Context of the kubeconfig."`
}

func (c *clusterFlags) config() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context})
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("no kubeconfig names one")
	}
	if err != nil {
		return nil, "", fmt.Errorf("cannot find a cluster: %w: set KUBECONFIG or use --kubeconfig", err)
	}
	namespace, _, err := loader.Namespace()
	return config, namespace, err
}

// namespaceFlags select a namespace or all of them.
type namespaceFlags struct {
	Namespace     string `help:"Namespace of the claims. By default the kubeconfig's." short:"n" xor:"namespace"`
	AllNamespaces bool   `help:"Claims of all namespaces."                             short:"A" xor:"namespace"`
}

// of returns the namespace of the flags, or else that of the kubeconfig, or "" for all.
func (n *namespaceFlags) of(kubeconfig string) string {
	switch {
	case n.AllNamespaces:
		return ""
	case n.Namespace != "":
		return n.Namespace
	}
	return kubeconfig
}

type planCmd struct {
	clusterFlags
	images.Flags

	Claims []string `arg:"" help:"YAML files with claims, folders of such files, or - for the standard input." name:"file" optional:"" predictor:"file"`

	From     string `help:"Plan from the objects of a file or folder, as storeplane export prints them, and not from a cluster." placeholder:"FILE" xor:"state"`
	Offline  bool   `help:"Plan from an empty cluster."                                                                          xor:"state"`
	Settings string `help:"YAML file with the installation's EnvironmentConfig storeplane, in place of the cluster's."          placeholder:"FILE" short:"s"`

	Namespace string `help:"Namespace of claims that name none." short:"n"`
	Delete    bool   `help:"Plan the deletion of the claims."                                                                               xor:"what"`
	Fleet     bool   `help:"Plan what this release, its images and its settings change of the claims that there are, of all namespaces or of -n." xor:"what"`

	ServerDryRun bool `help:"Also apply the claims and what changes of them in a dry run on the API server, so that its admission policies, webhooks and quotas count. Requires the right to patch." xor:"state,what"`

	Replace bool   `help:"Claims take the place of those that there are, as kubectl replace does it, and are not merged into them."`
	Output  string `default:"text" enum:"text,json,markdown" help:"text, json or markdown."                                       short:"o"`
	Details bool   `help:"Print the fields that change of each object."                                                           short:"d"`
	Prices  string `help:"YAML file with the prices of CPUs, memory and storage, for what the plan costs." placeholder:"FILE"`

	dryRun plan.DryRun
}

// Help returns the help of the command beside its flags.
func (*planCmd) Help() string {
	return `Exit codes: 0 nothing changes, 1 the command failed, 2 a claim is refused, 3 something
changes, 4 the application is interrupted or data is lost.

It only gets and lists, but for --server-dry-run, which stores nothing either. Without rights to read Secrets what is generated counts as unchanged.`
}

// Run runs the command.
func (c *planCmd) Run(ctx context.Context, s streams) error {
	if c.Fleet == (len(c.Claims) > 0) {
		return errors.New("cannot plan: name files with claims, or use --fleet for the claims that there are")
	}
	planner, err := c.planner(s)
	if err != nil {
		return err
	}
	if c.Fleet {
		return c.fleet(ctx, planner, s)
	}
	claims, namespaces, err := c.claims(planner.Schemas, s)
	if err != nil {
		return err
	}
	planner.Namespaces = namespaces
	plans := make([]plan.Claim, 0, len(claims))
	for _, claim := range claims {
		planned := planner.Plan
		if c.Delete {
			planned = planner.Deletion
		}
		p, err := planned(ctx, claim)
		if err != nil {
			return err
		}
		plans = append(plans, *p)
	}
	report := plan.NewReport(plans)
	if err := c.print(s, report); err != nil {
		return err
	}
	return ending(report.Summary.Verdict())
}

// fleet plans all existing claims.
func (c *planCmd) fleet(ctx context.Context, planner *plan.Planner, s streams) error {
	claims, err := planner.State.Claims(ctx, planner.Schemas.Kinds(), c.Namespace)
	if err != nil {
		return err
	}
	var made atomic.Int64
	plans, err := planner.Fleet(ctx, claims, func(*plan.Claim) {
		if n := made.Add(1); n%progressStep == 0 {
			fmt.Fprintf(s.err, "planned %d of %d claims\n", n, len(claims))
		}
	})
	if err != nil {
		return err
	}
	report := plan.NewReport(plans)
	if c.Output == "text" {
		err = report.FleetText(s.out, c.Details)
	} else {
		err = c.print(s, report)
	}
	if err != nil {
		return err
	}
	return ending(report.Summary.Verdict())
}

// progressStep is after how many claims of a fleet the progress is printed.
const progressStep = 100

func ending(v plan.Verdict) error {
	switch v {
	case plan.Refused:
		return &exitError{code: ExitRefused}
	case plan.Interrupts:
		return &exitError{code: ExitInterrupts}
	case plan.Changes:
		return &exitError{code: ExitChanges}
	case plan.NoChange:
	}
	return nil
}

func (c *planCmd) print(s streams, r *plan.Report) error {
	switch c.Output {
	case "json":
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r)
	case "markdown":
		return r.Markdown(s.out)
	}
	return r.Text(s.out, c.Details)
}

func (c *planCmd) planner(s streams) (*plan.Planner, error) {
	of, err := c.state(s)
	if err != nil {
		return nil, err
	}
	p, err := plan.New(of)
	if err != nil {
		return nil, err
	}
	p.Replace, p.DryRun = c.Replace, c.dryRun
	if c.ImageRegistry != "" || c.Images != "" {
		own, err := c.Set()
		if err != nil {
			return nil, err
		}
		p.Images = &own
	}
	if c.Prices != "" {
		if p.Prices, err = plan.ReadPrices(c.Prices); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (c *planCmd) state(s streams) (plan.State, error) {
	settings, err := load(c.Settings, s.in)
	if err != nil {
		return nil, err
	}
	if c.Offline {
		return state.NewSaved(settings), nil
	}
	if c.From != "" {
		saved, err := load(c.From, s.in)
		if err != nil {
			return nil, err
		}
		return state.WithSettings(state.NewSaved(saved), settings), nil
	}
	config, namespace, err := c.config()
	if err != nil {
		err = fmt.Errorf("%w, or plan without a cluster by --from or --offline", err)
		return nil, err
	}
	if c.Namespace == "" && !c.Fleet {
		c.Namespace = namespace
	}
	live, err := state.NewLive(config)
	if err != nil {
		return nil, err
	}
	if c.ServerDryRun {
		c.dryRun = live.DryRun
	}
	return state.WithSettings(live, settings), nil
}

// claims returns the claims in the files, in their order, and the names of the namespaces in them.
// Objects that are no claims are counted, and are not part of the plan.
func (c *planCmd) claims(schemas xrd.Schemas, s streams) (claims []*unstructured.Unstructured, namespaces []string, err error) {
	other := 0
	for _, path := range c.Claims {
		all, err := load(path, s.in)
		if err != nil {
			return nil, nil, err
		}
		for _, u := range all {
			if !schemas.Has(u.GroupVersionKind()) {
				other++
				if u.GetAPIVersion() == "v1" && u.GetKind() == "Namespace" {
					namespaces = append(namespaces, u.GetName())
				}
				continue
			}
			if u.GetNamespace() == "" && c.Namespace != "" {
				u.SetNamespace(c.Namespace)
			}
			claims = append(claims, u)
		}
	}
	if len(claims) == 0 {
		return nil, nil, errors.New("cannot plan: no claim is in " + strings.Join(c.Claims, ", ") + ": claims are of kind EcommercePlatform, DatabaseCluster or WebApp")
	}
	if other > 0 {
		fmt.Fprintf(s.err, "note: objects that are no claims were left out: %d\n", other)
	}
	return claims, namespaces, nil
}
