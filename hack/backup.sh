#!/usr/bin/env bash
# Builds the program that backs up, verifies and restores into DIR/<flavour>, the
# contexts of the images backup, and for mongodb its tools and throw-away server
# beside it. Usage: hack/backup.sh DIR
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
mkdir -p "$out"/{postgresql,mysql,mongodb}
CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$out/postgresql/backup" ./cmd/backup
for flavour in mysql mongodb; do
	cmp -s "$out/postgresql/backup" "$out/$flavour/backup" || cp "$out/postgresql/backup" "$out/$flavour/backup"
done
go -C test/stores run . mongodump mongorestore ferretdb | while read -r tool; do
	cmp -s "$tool" "$out/mongodb/$(basename "$tool")" || cp "$tool" "$out/mongodb/"
done
