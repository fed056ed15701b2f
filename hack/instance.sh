#!/usr/bin/env bash
# Builds the program that runs in the pods of a DatabaseCluster into DIR, the
# context of the PostgreSQL image, and lays the patches of Patroni beside it. Usage:
# hack/instance.sh DIR
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$out/instance" ./cmd/instance
rm -rf "$out/patroni"
mkdir "$out/patroni"
cp package/images/postgresql/patroni/*.patch package/images/postgresql/patroni/*.py "$out/patroni"
