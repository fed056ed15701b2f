#!/usr/bin/env bash
# Fails when `make generate` changes anything: what is committed must be what
# the types make.
set -euo pipefail
cd "$(dirname "$0")/.."
sum() { find apis docs package/provider/crds -name 'zz_generated*' -o -name definition.yaml -o -name "*.md" -o -path '*/crds/*.yaml' | sort | xargs sha256sum; }
before=$(sum)
go generate ./apis/...
if [ "$before" != "$(sum)" ]; then
	echo "generated files were not up to date: commit what make generate wrote" >&2
	exit 1
fi
