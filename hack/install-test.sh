#!/usr/bin/env bash
# Proves the second way to install on a cluster without Storeplane: the
# prerequisites, then a bare `crossplane xpkg install configuration` from another
# path of the registry, where the function comes as a dependency. A claim must
# become ready, which it only does if its Composition finds that function. All of
# it is removed again, also what a run left that was killed. On a cluster that has
# Storeplane there is nothing to prove. Usage: hack/install-test.sh REGISTRY, with
# KUBECONFIG set.
set -euo pipefail
cd "$(dirname "$0")/.."
registry=$1/mirror
# Crossplane names a package after its repository's path.
path=${registry#*/}
prefix=${path//\//-}
start=$(date +%s)
step() { echo "install-test: $* ($(($(date +%s) - start))s)" >&2; }

remove() {
	kubectl delete namespace install-test --ignore-not-found --timeout=2m >&2
	kubectl delete configurations.pkg.crossplane.io "$prefix-storeplane" --ignore-not-found --timeout=2m >&2
	kubectl delete functions.pkg.crossplane.io "$prefix-function-storeplane" --ignore-not-found --timeout=2m >&2
	kubectl delete providers.pkg.crossplane.io "$prefix-provider-storeplane" --ignore-not-found --timeout=2m >&2
}
# Definitions of a removed Configuration are gone a moment after it.
gone() {
	kubectl wait --for=delete xrd/ecommerceplatforms.platform.example.com xrd/databaseclusters.apps.example.com xrd/webapps.apps.example.com --timeout=2m >&2
}

remove
installed=$(kubectl get configurations.pkg.crossplane.io -o name | grep -- '-storeplane$' || true)
if [ -n "$installed" ]; then
	echo "install-test: skipped, for a first installation cannot be tested: $installed is installed already" >&2
	exit 0
fi
gone
tools=$(hack/crossplane.sh)
eval "$tools"
out=$(mktemp -d)
cleanup() {
	remove
	gone
	# As the documents say, for namespace storeplane-escrow stays: a policy refuses its deletion.
	kubectl delete --ignore-not-found -f "$out/uninstall.yaml" >&2
	rm -rf "$out"
}
trap cleanup EXIT

go run ./hack/packages --registry "$registry" --images "$1" --crossplane "$CROSSPLANE_CLI" --out "$out" --push
kubectl apply --server-side -f "$out/prerequisites.yaml" >&2
"$CROSSPLANE_CLI" xpkg install configuration "$registry/storeplane:$(cat "$out/version")" --wait=3m >&2
kubectl wait --for=condition=Established xrd/webapps.apps.example.com --timeout=1m >&2
kubectl wait --for=condition=Healthy functions.pkg.crossplane.io,providers.pkg.crossplane.io --all --timeout=2m >&2
step "installed as $(kubectl get configurations.pkg.crossplane.io,functions.pkg.crossplane.io,providers.pkg.crossplane.io -o name | tr '\n' ' ')"

for program in function provider; do
	replicas=$(kubectl get deployments -n crossplane-system -o jsonpath='{range .items[*]}{.metadata.name} {.spec.replicas}{"\n"}{end}' | awk -v program="$program" '$1 ~ program {print $2}')
	if [ "$replicas" != 2 ]; then
		echo "install-test: the $program's runtime configuration did not reach it: $replicas replicas instead of 2" >&2
		exit 1
	fi
done
# The function and the provider were pulled by the digests that the Configuration names.
unpinned=$(kubectl get pods -n crossplane-system -l 'pkg.crossplane.io/revision' -o jsonpath='{range .items[*]}{.metadata.name} {.spec.containers[0].image}{"\n"}{end}' | grep -v '@sha256:' || true)
if [ -n "$unpinned" ]; then
	echo "install-test: images of pods are not named by their digests: $unpinned" >&2
	exit 1
fi
kubectl create namespace install-test >&2
sed "s#namespace: default#namespace: install-test#; s#10.88.0.1:5000/storeplane/#$1/#" examples/webapp/minimal.yaml | kubectl apply -f - >&2
kubectl wait --for=condition=Ready webapp/hello -n install-test --timeout=5m >&2
step "a claim is ready"

# Our own images are looked for where the function came from, which has copies of
# them: by their digests, so that one that is not there would not run.
sed "s#namespace: default#namespace: install-test#" examples/databasecluster/minimal.yaml | kubectl apply -f - >&2
kubectl wait --for=create statefulset/orders-postgresql -n install-test --timeout=1m >&2
image=$(kubectl get statefulset orders-postgresql -n install-test -o jsonpath='{.spec.template.spec.containers[0].image}')
digest=$(awk -F '"' '$2 == "postgresql:17" {print $4}' "$out/images.json")
if [ -z "$digest" ] || [ "$image" != "$registry/postgresql:17@$digest" ]; then
	echo "install-test: the function of $registry composes the image $image, and the release has $digest" >&2
	exit 1
fi
kubectl wait --for=condition=Ready databasecluster/orders -n install-test --timeout=5m >&2
step "our own images come from $registry"
