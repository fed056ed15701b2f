#!/usr/bin/env bash
# Pushes this release, packages and images and their signatures, to a registry: with crane if it is on the PATH,
# else with skopeo. Log in first (crane auth login, skopeo login). Flags go to crane push or
# skopeo copy: --insecure or --dest-tls-verify=false for a registry without TLS.
# Usage: ./load.sh HOST/PATH [FLAG…], for example ./load.sh registry.company.com/storeplane
set -euo pipefail
registry=${1:-}
registry=${registry%/}
if [ "${registry#*/}" = "$registry" ]; then
	echo "load: name a registry and a path: ./load.sh registry.company.com/storeplane" >&2
	exit 1
fi
shift
cd "$(dirname "$0")"
if command -v crane >/dev/null; then
	tool=crane
elif command -v skopeo >/dev/null; then
	tool=skopeo
else
	echo "load: neither crane nor skopeo is on the PATH: install one of them" >&2
	exit 1
fi

grep -E ' (images|signatures)/' SHA256SUMS | sha256sum --check --quiet - || {
	echo "load: an image or a signature is not the one of this release: copy the folder again" >&2
	exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Only a signed release has signatures.
shopt -s nullglob
for archive in images/*/*.tar signatures/*/*.tar; do
	tag=${archive##*/}
	to=$registry/$(basename "$(dirname "$archive")"):${tag%.tar}
	echo "load: $to" >&2
	if [ "$tool" = skopeo ]; then
		skopeo copy --quiet --all --preserve-digests "$@" "oci-archive:$archive" "docker://$to"
		continue
	fi
	# crane reads a layout from a folder alone.
	rm -rf "$work/layout"
	mkdir "$work/layout"
	tar -xf "$archive" -C "$work/layout"
	crane push "$@" "$work/layout" "$to" >/dev/null
done
