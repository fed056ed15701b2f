#!/usr/bin/env bash
# Proves that a release's folder is enough: on a cluster that has Crossplane, and not
# Storeplane, it is loaded into another registry path than the one it is named after, and
# installed in each of its three ways. A claim must become ready each time, and after the
# uninstall of its README only what must not be lost may be left. All of it is removed again,
# also what a run left that was killed. On a cluster that has Storeplane there is nothing to
# prove. Usage: hack/release-test.sh REGISTRY [RELEASE], with KUBECONFIG set, and kubectl,
# helm, crossplane and crane on the PATH. Without RELEASE, make release writes one of the
# images in REGISTRY.
set -euo pipefail
cd "$(dirname "$0")/.."
# An installation that a killed run left is removed; any other is left alone.
installed=$(kubectl get configurations.pkg.crossplane.io -o name | grep -- '-storeplane$' || true)
if [ -n "$installed" ] && ! kubectl get namespace release-test -o name >/dev/null 2>&1; then
	echo "release-test: skipped, for a first installation cannot be tested: $installed is installed already" >&2
	exit 0
fi
release=${2:-}
if [ -z "$release" ]; then
	make release REGISTRY="$1" >&2
	release=_out/release/$(cat _out/packages/version)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Nothing of the tree is beside it.
cp -r "$release" "$work/release"
registry=$1-released
cd "$work/release"
version=$(cat version)
chart=$(ls storeplane-*.tgz)
start=$(date +%s)
step() { echo "release-test: $* ($(($(date +%s) - start))s)" >&2; }
fail() {
	echo "release-test: $*" >&2
	exit 1
}

# name of a package, and where it is from by name.
field() { awk -v kind="$1" -v field="$2:" 'tolower($0) == "kind: " kind {found = 1} found && $1 == field {print $2; exit}' manifests/packages.yaml; }
function=function.pkg.crossplane.io/$(field function name)
provider=provider.pkg.crossplane.io/$(field provider name)
configuration=configuration.pkg.crossplane.io/$(field configuration name)
definitions=(xrd/ecommerceplatforms.platform.example.com xrd/databaseclusters.apps.example.com xrd/webapps.apps.example.com)
gone() { kubectl wait --for=delete --timeout=2m "$@" >&2; }

install_kubectl() {
	kubectl apply --server-side -k mirror >&2
	kubectl apply --server-side -f manifests/packages.yaml >&2
}
install_crossplane() {
	kubectl apply --server-side -k mirror >&2
	crossplane xpkg install configuration "$(field configuration package)" >&2
}
install_helm() {
	helm install storeplane "$chart" -n crossplane-system --set registry="$registry" --set settings.ingress.className=none >&2
}
remove_manifests() {
	kubectl delete "$configuration" --ignore-not-found --timeout=2m >&2
	gone "${definitions[@]}"
	kubectl delete "$provider" --ignore-not-found --timeout=2m >&2
	kubectl delete "$function" --ignore-not-found --timeout=2m >&2
	kubectl delete --ignore-not-found -f uninstall.yaml >&2
	kubectl delete imageconfigs.pkg.crossplane.io storeplane-mirror storeplane-verification --ignore-not-found >&2
}
remove_helm() {
	helm uninstall storeplane -n crossplane-system --ignore-not-found >&2
	gone "${definitions[@]}"
	kubectl delete imageconfigs.pkg.crossplane.io storeplane-verification --ignore-not-found >&2
}
remove_claim() {
	# Before the first installation, and after a run that was killed, there is no such kind.
	kubectl delete databaseclusters.apps.example.com --all -n release-test --timeout=3m >&2 2>/dev/null || true
	kubectl delete namespace release-test --ignore-not-found --timeout=2m >&2
}
# stays prints the commands in a column of the README's table of what an uninstall leaves: column 3
# shows it, column 4 removes it.
stays() { sed '1,/^An uninstall leaves these objects/d' README.md | grep '^|' | cut -d '|' -f "$1" | grep -o '`kubectl [^`]*`' | tr -d '`'; }
# What an uninstall leaves, and a test does not: by the README's commands.
remove_rest() {
	stays 4 | while read -r command; do
		case "$command" in
		# Before the first installation there is no namespace to annotate.
		*" annotate "*) $command --overwrite >&2 2>/dev/null || true ;;
		*) $command --ignore-not-found --timeout=2m >&2 ;;
		esac </dev/null
	done
}
remove() {
	remove_claim
	remove_helm
	remove_manifests
	remove_rest
}

ready() {
	# The other two may be its dependencies, which are there once it is healthy.
	kubectl wait --for=condition=Healthy --timeout=5m "$configuration" >&2
	kubectl wait --for=condition=Healthy --timeout=5m "$function" "$provider" >&2
	kubectl wait --for=condition=Established --timeout=2m "${definitions[@]}" >&2
	for package in "$function" "$provider"; do
		resolved=$(kubectl get "$package" -o jsonpath='{.status.resolvedPackage}')
		case "$resolved" in
		"$registry"/*) ;;
		*) fail "$package was pulled from $resolved instead of $registry" ;;
		esac
		[[ "$resolved" = *@sha256:* ]] || fail "$package was pulled by its tag, $resolved"
	done
	for program in function provider; do
		replicas=$(kubectl get deployments -n crossplane-system -o jsonpath='{range .items[*]}{.metadata.name} {.spec.replicas}{"\n"}{end}' | awk -v program="$program-storeplane" '$1 ~ program {print $2}')
		[ "$replicas" = 2 ] || fail "the $program's runtime configuration did not reach it: $replicas replicas instead of 2"
	done
}

claim() {
	# The README's own.
	awk '/^apiVersion: apps.example.com/ {inside = 1} inside && /^EOF/ {exit} inside' README.md | kubectl apply -n release-test -f - >&2
	kubectl wait --for=condition=Ready databasecluster/orders -n release-test --timeout=6m >&2
	image=$(kubectl get statefulset orders-postgresql -n release-test -o jsonpath='{.spec.template.spec.containers[0].image}')
	digest=$(awk -F '"' '$2 == "postgresql:17" {print $4}' images.json)
	[ "$image" = "$registry/postgresql:17@$digest" ] || fail "the claim runs $image instead of $registry/postgresql:17@$digest"
}

# found prints what there is of Storeplane in the cluster and in Crossplane's namespace.
found() {
	kubectl get crds,namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,functions.pkg.crossplane.io,providers.pkg.crossplane.io,configurations.pkg.crossplane.io,imageconfigs.pkg.crossplane.io,deploymentruntimeconfigs.pkg.crossplane.io,environmentconfigs.apiextensions.crossplane.io -o name | grep -E 'storeplane|(apps|backup|config|platform).example.com' || true
	kubectl get deployments,pods,services,poddisruptionbudgets,networkpolicies,leases,secrets,configmaps -n crossplane-system -o name | grep storeplane || true
}
# left checks what an uninstall leaves: a copy of a key, what protects it, and nothing that the
# README's table does not list.
left() {
	kubectl get secret release-test -n storeplane-escrow -o name >&2 || fail "the uninstall deleted the copies of keys"
	for ((i = 0; i < 60; i++)); do
		listed=$(stays 3 | while read -r command; do $command --ignore-not-found -o name </dev/null; done)
		[[ "$listed" = *validatingadmissionpolicybinding*/storeplane-escrow* ]] || fail "the uninstall deleted the policy that protects the copies of keys"
		rest=$(found | grep -vxF "$listed" || true)
		[ -n "$rest" ] || return 0
		sleep 2
	done
	fail "the uninstall left $rest, which the README does not list"
}

remove
trap 'remove; rm -rf "$work"' EXIT
sha256sum --check --quiet SHA256SUMS
./check.sh
./load.sh "$registry"
step "loaded $version into $registry"
sed -i "s#^  registry: .*#  registry: $registry#" mirror/registry.yaml

for way in kubectl crossplane helm; do
	# It marks a run that is killed from here on.
	kubectl create namespace release-test >&2
	# No package is pulled from its prefix, so it verifies nothing: they are there to be removed.
	kubectl create secret generic storeplane-cosign -n crossplane-system --from-literal=cosign.pub=none >&2
	kubectl apply -f verification.yaml >&2
	"install_$way"
	ready
	step "installed with $way"
	claim
	step "a claim is ready"
	kubectl create secret generic release-test -n storeplane-escrow >&2
	remove_claim
	if [ "$way" = helm ]; then
		remove_helm
		kubectl get environmentconfigs.apiextensions.crossplane.io storeplane -o name >&2 || fail "helm uninstall deleted the settings"
	else
		remove_manifests
	fi
	left
	remove_rest
	rest=$(found)
	[ -z "$rest" ] || fail "the README's commands left $rest"
	step "uninstalled, what must not be lost was left, and then removed"
done
