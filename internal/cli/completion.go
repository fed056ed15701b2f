package cli

import (
	"context"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/storeplane/storeplane/internal/plan/state"
)

// completeWithin is how long a shell waits for the names of claims.
const completeWithin = 2 * time.Second

// registerCompletion completes a command line and exits, if a shell sets the variable COMP_LINE.
func registerCompletion(parser *kong.Kong, exit func(int)) {
	kongcompletion.Register(parser,
		kongcompletion.WithExitFunc(exit),
		kongcompletion.WithPredictor("claim", complete.PredictFunc(claimNames)),
		kongcompletion.WithPredictor("file", complete.PredictOr(complete.PredictFiles("*.yaml"), complete.PredictFiles("*.yml"))))
}

// claimNames returns the claims in the kubeconfig's namespace as KIND/NAME, or the kinds where
// there are none or the cluster cannot be reached.
func claimNames(a complete.Args) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completeWithin)
	defer cancel()
	names, err := claimsOf(ctx, a)
	if err != nil || len(names) == 0 {
		for _, k := range kindNames {
			names = append(names, strings.ToLower(k.kind)+"/")
		}
	}
	return names
}

func claimsOf(ctx context.Context, a complete.Args) ([]string, error) {
	flags := clusterFlags{Kubeconfig: flagOf(a.All, "--kubeconfig"), Context: flagOf(a.All, "--context")}
	config, namespace, err := flags.config()
	if err != nil {
		return nil, err
	}
	if n := flagOf(a.All, "-n", "--namespace"); n != "" {
		namespace = n
	}
	config.Timeout = completeWithin
	live, err := state.NewLive(config)
	if err != nil {
		return nil, err
	}
	kinds := make([]schema.GroupVersionKind, 0, len(kindNames))
	for _, k := range kindNames {
		kinds = append(kinds, schema.FromAPIVersionAndKind(k.String(), k.kind))
	}
	claims, err := live.Claims(ctx, kinds, namespace)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(claims))
	for _, u := range claims {
		out = append(out, strings.ToLower(u.GetKind())+"/"+u.GetName())
	}
	return out, nil
}

// flagOf returns the value of a flag, by one of its names, or "".
func flagOf(args []string, names ...string) string {
	for i, a := range args {
		for _, n := range names {
			if a == n && i+1 < len(args) {
				return args[i+1]
			}
			if v, ok := strings.CutPrefix(a, n+"="); ok {
				return v
			}
		}
	}
	return ""
}
