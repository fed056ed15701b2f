#!/usr/bin/env bash
# Shows that Crossplane refuses packages whose signature is missing or of another key, and installs
# them once they are signed, by the manifests of a release: verification.yaml, trust-root.yaml and
# trust-root-patch.yaml. The packages are small Configurations of their own. Crossplane restarts
# with --enable-signature-verification, and again as it was. All of it is removed again, also what
# a run left that was killed. Usage: hack/sign-test.sh REGISTRY, with KUBECONFIG set, kubectl on
# the PATH, and the images of make images in REGISTRY.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${1:-}" ]; then
	echo "sign-test: name the registry and path that make images has pushed to: hack/sign-test.sh REGISTRY" >&2
	exit 1
fi
registry_of_images=$1
registry=$1-signature-test
image=$registry/signature-test
package=configuration.pkg.crossplane.io/signature-test
namespace=crossplane-system
start=$(date +%s)
step() { echo "sign-test: $* ($(($(date +%s) - start))s)" >&2; }
fail() {
	echo "sign-test: $*" >&2
	# It only explains the failure, and may not exist.
	kubectl get "$package" -o yaml >&2 || true
	exit 1
}
system() { kubectl -n "$namespace" "$@"; }
crossplane_restarted() {
	system rollout status deployment/crossplane --timeout=5m >&2 || {
		# It only explains why: there are no logs of a pod that never ran.
		system logs deployment/crossplane --tail=20 >&2 || true
		echo "sign-test: Crossplane did not start" >&2
		return 1
	}
}

# restore what Crossplane's Deployment was, by the copy that is made before it is changed.
# What a run did not get to is not there: the rest is restored all the same.
restore() {
	kubectl delete "$package" --ignore-not-found --timeout=2m >&2 || true
	kubectl delete configurationrevisions.pkg.crossplane.io -l pkg.crossplane.io/package=signature-test --timeout=2m >&2 || true
	kubectl delete imageconfigs.pkg.crossplane.io signature-test --ignore-not-found >&2 || true
	template=$(system get configmap signature-test -o jsonpath='{.data.template}' --ignore-not-found)
	if [ -n "$template" ]; then
		system patch deployment crossplane --type=json -p "[{\"op\": \"replace\", \"path\": \"/spec/template\", \"value\": $template}]" >&2
		crossplane_restarted
		system delete configmap signature-test >&2
	fi
	system delete secret/signature-test configmap/signature-test-root --ignore-not-found >&2
}

# named is a manifest of the release under names of this test, so that it replaces nothing.
named() {
	sed "s#REGISTRY/redis:8-VERSION#$registry_of_images/redis:8#; s#REGISTRY#$registry#; s#storeplane-trust-root#signature-test-root#; s#storeplane-verification#signature-test#; s#storeplane-cosign#signature-test#" "$1"
}
# reports waits until the package is unhealthy with a message that has this text.
reports() {
	for ((i = 0; i < 120; i++)); do
		message=$(kubectl get "$package" -o jsonpath='{.status.conditions[?(@.type=="Healthy")].message}')
		case "$message" in *"$1"*) return ;; esac
		sleep 2
	done
	fail "the package does not report \"$1\", but \"$message\""
}
# installed waits until a version is installed.
installed() {
	kubectl wait --for=jsonpath='{.status.resolvedPackage}'="$image:$1" "$package" --timeout=5m >&2 || fail "$1 was not installed"
	kubectl wait --for=condition=Healthy "$package" --timeout=5m >&2 || fail "$1 did not become healthy"
	revision=$(kubectl get "$package" -o jsonpath='{.status.currentRevision}')
	kubectl wait --for=condition=RevisionHealthy "configurationrevision.pkg.crossplane.io/$revision" --timeout=2m >&2 || fail "revision $revision did not become healthy"
}
apply() {
	kubectl apply -f - >&2 <<-YAML
		apiVersion: pkg.crossplane.io/v1
		kind: Configuration
		metadata:
		  name: signature-test
		spec:
		  package: $image:$1
	YAML
}

tools=$(hack/crossplane.sh)
eval "$tools"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
restore
if system get deployment crossplane -o jsonpath='{.spec.template.spec.containers[0].args}' | grep -q enable-signature-verification; then
	echo "sign-test: skipped, for Crossplane verifies signatures already, with a trust root that this test would replace" >&2
	exit 0
fi
trap 'restore; rm -rf "$work"' EXIT

# The password is made up, and is in no argument.
COSIGN_PASSWORD=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export COSIGN_PASSWORD
sign=$work/sign
go -C hack/sign build -o "$sign" .
for owner in ours theirs; do
	mkdir "$work/$owner"
	"$sign" key-pair --out "$work/$owner"
done
for version in v0.1.0 v0.2.0; do
	mkdir "$work/$version"
	cat >"$work/$version/crossplane.yaml" <<-YAML
		apiVersion: meta.pkg.crossplane.io/v1
		kind: Configuration
		metadata:
		  name: signature-test
		  annotations:
		    meta.crossplane.io/description: $version of a package that is signed in a test, $(date +%s)
		spec: {}
	YAML
	"$CROSSPLANE_CLI" xpkg build -f "$work/$version" -o "$work/$version.xpkg" >&2
	"$CROSSPLANE_CLI" xpkg push -f "$work/$version.xpkg" "$image:$version" >&2
done
# The trust root of our key. What is signed here is another image than those below.
"$CROSSPLANE_CLI" xpkg push -f "$work/v0.1.0.xpkg" "$registry/another:v0.1.0" >&2
"$sign" images --key "$work/ours/cosign.key" --trust "$work" "$registry/another:v0.1.0"
step "pushed two packages, unsigned"

system get deployment crossplane -o jsonpath='{.spec.template}' >"$work/template"
system create configmap signature-test --from-file="$work/template" >&2
system create secret generic signature-test --from-file="$work/cosign.pub" >&2
named "$work/trust-root.yaml" | kubectl apply -f - >&2
named package/release/verification.yaml | kubectl apply -f - >&2
named package/release/trust-root-patch.yaml >"$work/patch.yaml"
system patch deployment crossplane --patch-file "$work/patch.yaml" >&2
system patch deployment crossplane --type=json -p '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--enable-signature-verification"}]' >&2
crossplane_restarted
step "Crossplane verifies signatures"

apply v0.1.0
reports "signature verification failed with no signatures found"
[ -z "$(kubectl get configurationrevisions.pkg.crossplane.io -l pkg.crossplane.io/package=signature-test -o name)" ] || fail "an unsigned package has a revision"
step "an unsigned package is refused: $message"
"$sign" images --key "$work/ours/cosign.key" "$image:v0.1.0"
installed v0.1.0
step "it is installed once it is signed"

before=$(kubectl get "$package" -o jsonpath='{.status.currentRevision}')
"$sign" images --key "$work/theirs/cosign.key" "$image:v0.2.0"
apply v0.2.0
reports "signature verification failed with no matching signatures"
active=$(kubectl get configurationrevisions.pkg.crossplane.io -l pkg.crossplane.io/package=signature-test -o jsonpath='{range .items[?(@.spec.desiredState=="Active")]}{.metadata.name}{end}')
[ "$active" = "$before" ] || fail "the active revision is $active instead of $before"
step "an upgrade that another key has signed is refused, and the version before stays: $message"
"$sign" images --key "$work/ours/cosign.key" "$image:v0.2.0"
installed v0.2.0
step "it is installed once our key has signed it too"
