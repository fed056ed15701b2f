#!/usr/bin/env bash
# Runs suites of end-to-end tests on the cluster of KUBECONFIG, all of them even
# if one fails. Usage: hack/with-cluster.sh hack/e2e.sh [--full] SUITE…
set -euo pipefail
cd "$(dirname "$0")/.."
flags=()
if [ "${1:-}" = --full ]; then
	flags+=(--full)
	shift
fi
failed=0
for suite in "$@"; do
	go run ./test/e2e/run --suite "$suite" "${flags[@]}" || failed=1
done
exit "$failed"
