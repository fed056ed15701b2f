#!/usr/bin/env bash
# Prints shell lines that say where kwok is, which simulates nodes
# (https://kwok.sigs.k8s.io), built unless it is cached, and where its module has the
# stages that its nodes and pods go through.
set -euo pipefail
cd "$(dirname "$0")/.."
kwok=$(go run ./test/cluster tools kwok)
module=$(cd test/cluster/tools/kwok && go mod download sigs.k8s.io/kwok >&2 && GOWORK=off go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
stages=$module/kustomize/stage
files=
for f in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
	files+=${files:+,}$stages/$f.yaml
done
printf 'export KWOK=%q KWOK_STAGES=%q\n' "$kwok" "$files"
