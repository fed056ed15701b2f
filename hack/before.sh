#!/usr/bin/env bash
# Builds the release before from its commit, pushes its packages to REGISTRY and its images to
# REGISTRY-before, and writes what it is installed by to OUT, for suite upgrade.
# Usage: hack/before.sh COMMIT OUT, with REGISTRY set
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$1
out=$(realpath -m "$2")
images=$REGISTRY-before
rm -rf "$out"
mkdir -p "$out/tree"
git archive "$commit" | tar -x -C "$out/tree"
tools=$(hack/crossplane.sh)
eval "$tools"
cd "$out/tree"
make images REGISTRY="$images" >&2
# A version of its own: the one that is tested is named after its content.
go run ./hack/packages --registry "$REGISTRY" --images "$images" --version v0.0.1 --crossplane "$CROSSPLANE_CLI" --out "$out/packages" --push >&2
