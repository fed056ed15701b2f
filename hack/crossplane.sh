#!/usr/bin/env bash
# Prints shell lines that say where the crossplane command line tool and
# Crossplane's own binary are, built unless they are cached.
set -euo pipefail
cd "$(dirname "$0")/.."
go run ./test/cluster tools crossplane crossplane-core | {
	read -r cli
	read -r core
	printf 'export CROSSPLANE_CLI=%q CROSSPLANE_CORE=%q\n' "$cli" "$core"
}
