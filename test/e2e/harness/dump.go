package harness

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// dumps are the kubectl commands that show the state of a failed namespace, by file name. Secrets
// are not included.
var dumps = map[string][]string{
	"claims.txt":          {"get", "ecp,dbc,wa,backups,restores,appconfigs", "-o", "wide"},
	"claims-describe.txt": {"describe", "ecp,dbc,wa,backups,restores,appconfigs"},
	"objects.txt":         {"get", "deployments,statefulsets,daemonsets,replicasets,jobs,cronjobs,pods,services,ingresses,persistentvolumeclaims", "-o", "wide"},
	"pods-describe.txt":   {"describe", "pods"},
	"configmaps.txt":      {"get", "configmaps", "-o", "yaml"},
	"pods-logs.txt":       {"logs", "--selector=app.kubernetes.io/managed-by=storeplane", "--all-containers", "--prefix", "--tail=300", "--max-log-requests=30", "--ignore-errors"},
	"backup-logs.txt":     {"logs", "--selector=backup.example.com/action", "--all-containers", "--prefix", "--tail=300", "--max-log-requests=30", "--ignore-errors"},
	"events.txt":          {"get", "events", "--sort-by=.lastTimestamp"},
}

// systemDumps are the kubectl commands that show the state of Crossplane and the nodes, by file
// name.
var systemDumps = map[string][]string{
	"packages.txt":            {"get", "pkg", "-o", "wide"},
	"crossplane-pods.txt":     {"get", "pods", "--namespace=crossplane-system", "-o", "wide"},
	"crossplane-log.txt":      {"logs", "--namespace=crossplane-system", "--selector=app=crossplane", "--tail=2000", "--prefix"},
	"function-log.txt":        {"logs", "--namespace=crossplane-system", "--selector=pkg.crossplane.io/function", "--tail=2000", "--prefix", "--max-log-requests=20"},
	"provider-log.txt":        {"logs", "--namespace=crossplane-system", "--selector=pkg.crossplane.io/provider", "--tail=2000", "--prefix", "--max-log-requests=20"},
	"crossplane-describe.txt": {"describe", "pods", "--namespace=crossplane-system"},
	"nodes.txt":               {"describe", "nodes"},
}

// Dump writes the output of these commands into a folder, and the error in place of what cannot be
// read.
func Dump(folder string, namespaces ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for file, args := range systemDumps {
		dump(ctx, filepath.Join(folder, file), args)
	}
	for _, ns := range namespaces {
		for file, args := range dumps {
			dump(ctx, filepath.Join(folder, ns, file), slices.Concat(args, []string{"--namespace=" + ns}))
		}
	}
}

func dump(ctx context.Context, file string, args []string) {
	out, err := Kubectl(ctx, args...)
	if err != nil {
		out += "\n" + err.Error() + "\n"
	}
	_ = os.MkdirAll(filepath.Dir(file), 0o755)
	_ = os.WriteFile(file, []byte(out), 0o644)
}
