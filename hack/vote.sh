#!/usr/bin/env bash
# Builds the vote app into DIR. Usage: hack/vote.sh DIR
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../examples/vote/app"
CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$out/vote" .
