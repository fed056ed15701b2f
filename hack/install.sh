#!/usr/bin/env bash
# Installs the packages of DIR on the cluster of KUBECONFIG and waits until they
# are healthy. Usage: hack/install.sh DIR
set -euo pipefail
dir=$1
"$dir/check.sh"
kubectl apply --server-side --force-conflicts -f "$dir/install.yaml" >&2
fail() {
	echo "install: $1" >&2
	kubectl get functions.pkg.crossplane.io,providers.pkg.crossplane.io,configurations.pkg.crossplane.io >&2
	kubectl describe functions.pkg.crossplane.io,providers.pkg.crossplane.io,configurations.pkg.crossplane.io | grep -A20 '^Status' >&2
	exit 1
}
for kind in function provider configuration; do
	name=$(awk -v kind="$kind" 'tolower($0) == "kind: " kind {found = 1} found && $1 == "name:" {print $2; exit}' "$dir/install.yaml")
	want=$(awk -v kind="$kind" 'tolower($0) == "kind: " kind {found = 1} found && $1 == "package:" {print $2; exit}' "$dir/install.yaml")
	kubectl wait --for=jsonpath='{.status.resolvedPackage}'="$want" "$kind.pkg.crossplane.io/$name" --timeout=3m >&2 || fail "$kind $name was not taken up"
	kubectl wait --for=condition=Healthy "$kind.pkg.crossplane.io/$name" --timeout=5m >&2 || fail "$kind $name did not become healthy"
	# Pods of the revision before go on serving for some seconds.
	revision=$(kubectl get "$kind.pkg.crossplane.io/$name" -o jsonpath='{.status.currentRevision}')
	kubectl wait --for=delete pods -n crossplane-system -l "pkg.crossplane.io/$kind=$name,pkg.crossplane.io/revision!=$revision" --timeout=2m >&2 || fail "pods of an older $kind do not go"
done
kubectl wait --for=condition=Established xrd/ecommerceplatforms.platform.example.com xrd/databaseclusters.apps.example.com xrd/webapps.apps.example.com --timeout=2m >&2 || fail "the definitions were not established"
kubectl wait --for=condition=Established crd/backups.backup.example.com crd/restores.backup.example.com crd/restoregrants.backup.example.com --timeout=2m >&2 || fail "the managed resources were not established: is there a ManagedResourceActivationPolicy for them?"
