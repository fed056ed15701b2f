#!/usr/bin/env bash
# Prints a shell line that puts helm and crane on the PATH, built unless they are cached.
# Where both are there already it prints nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v helm >/dev/null && command -v crane >/dev/null; then
	exit
fi
helm=$(go run ./test/cluster tools helm)
printf 'export PATH=%q:$PATH\n' "$(dirname "$helm")"
