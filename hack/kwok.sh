#!/usr/bin/env bash
# Prints a shell line that says where kwok is, which simulates nodes
# (https://kwok.sigs.k8s.io), built unless it is cached.
set -euo pipefail
cd "$(dirname "$0")/.."
printf 'export KWOK=%q\n' "$(go run ./test/cluster tools kwok)"
