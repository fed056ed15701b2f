#!/usr/bin/env bash
# Builds the sample shop's two programs into DIR/backend and DIR/frontend.
# Usage: hack/shop.sh DIR
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../examples/shop"
for tier in backend frontend; do
	mkdir -p "$out/$tier"
	CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$out/$tier/$tier" "./cmd/$tier"
done
