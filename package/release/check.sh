#!/usr/bin/env bash
# Checks that Storeplane VERSION runs on the cluster that kubectl reaches: Kubernetes
# KUBERNETES_VERSION or later, with Crossplane CROSSPLANE_VERSION or later.
set -euo pipefail

fail() {
	echo "check: $1" >&2
	exit 1
}
# minor version of a line: 1.36 of v1.36.3-eks-1.
minor() { sed -nE 's/^v?([0-9]+\.[0-9]+)([^0-9].*)?$/\1/p' <<<"$1"; }
older() { [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

command -v kubectl >/dev/null || fail "kubectl is not on the PATH: install it"
answer=$(kubectl get --raw /version) || fail "no cluster answers: set KUBECONFIG"
version=$(sed -nE 's/.*"gitVersion": *"([^"]*)".*/\1/p' <<<"$answer")
kubernetes=$(minor "$version")
[ -n "$kubernetes" ] || fail "the cluster reports the version \"$version\", which cannot be compared with KUBERNETES_VERSION"
if older "$kubernetes" KUBERNETES_VERSION; then
	fail "Kubernetes is $version, and Storeplane VERSION needs KUBERNETES_VERSION or later: upgrade the cluster"
fi

for kind in functions providers configurations imageconfigs deploymentruntimeconfigs; do
	kubectl get "crd/$kind.pkg.crossplane.io" -o name >/dev/null ||
		fail "Crossplane is not installed: install CROSSPLANE_VERSION or later with its Helm chart"
done
# The chart labels the Deployments with Crossplane's version.
versions=$(kubectl get deployments --all-namespaces -l app.kubernetes.io/part-of=crossplane \
	-o jsonpath='{range .items[*]}{.metadata.labels.app\.kubernetes\.io/version}{"\n"}{end}')
crossplane=$(minor "${versions%%$'\n'*}")
if [ -z "$crossplane" ]; then
	echo "check: no Deployment has Crossplane's version as a label: make sure that it is CROSSPLANE_VERSION or later" >&2
	exit
fi
if older "$crossplane" CROSSPLANE_VERSION; then
	fail "Crossplane is ${versions%%$'\n'*}, and Storeplane VERSION needs CROSSPLANE_VERSION or later: upgrade Crossplane"
fi
echo "check: Kubernetes $version and Crossplane ${versions%%$'\n'*} can run Storeplane VERSION" >&2
