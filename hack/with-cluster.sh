#!/usr/bin/env bash
# Runs a command with the cluster of KUBECONFIG, else with the embedded one,
# which it starts, fills with the packages of this tree (in all ways, if it has
# none yet), and leaves running. Usage: hack/with-cluster.sh COMMAND…
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${KUBECONFIG:-}" ]; then
	go run ./test/cluster up
	point=$(go run ./test/cluster env)
	eval "$point"
	make images e2e-images
	hack/install-test.sh "$REGISTRY"
	make install
fi
exec "$@"
