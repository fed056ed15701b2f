#!/usr/bin/env bash
# Builds the programs of the images that only the end-to-end tests need into
# DIR/<image>, their contexts. Usage: hack/e2e-images.sh DIR
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
mkdir -p "$out"/{stores,azurite,bench,traefik}
go -C test/stores run . versitygw fake-gcs-server data | while read -r program; do
	cmp -s "$program" "$out/stores/$(basename "$program")" || cp "$program" "$out/stores/"
done
cmp -s "$out/stores/data" "$out/bench/data" || cp "$out/stores/data" "$out/bench/data"
traefik=$(go -C test/stores run . traefik)
cmp -s "$traefik" "$out/traefik/traefik" || cp "$traefik" "$out/traefik/"
# The archive is named after what it holds in a file beside it, so that it is
# made only when that changes.
azurite=$(go -C test/stores run . azurite)
folder=${azurite%/node_modules/*}
if [ "$(cat "$out/azurite.of" 2>/dev/null)" != "$folder" ] || [ ! -s "$out/azurite/azurite.tar" ]; then
	tar --create --file "$out/azurite/azurite.tar" --directory "$folder" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
		--exclude='*.map' --exclude='*.ts' --exclude='*.md' node_modules
	echo "$folder" >"$out/azurite.of"
fi
