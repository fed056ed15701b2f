#!/usr/bin/env bash
# Pushes this release, packages and images and their signatures, to a registry: with crane if it is on the PATH,
# else with skopeo. Log in first (crane auth login, skopeo login). Flags go to crane push or
# skopeo copy: --insecure or --dest-tls-verify=false for a registry without TLS. For
# localhost no flag is needed.
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
	# crane falls back to plain HTTP there by itself.
	case "${registry%%/*}" in
	localhost | localhost:* | 127.0.0.1 | 127.0.0.1:*) set -- --dest-tls-verify=false "$@" ;;
	esac
else
	echo "load: neither crane nor skopeo is on the PATH: install one of them" >&2
	exit 1
fi

# macOS before 15 has shasum alone.
if command -v sha256sum >/dev/null; then
	sums=(sha256sum)
elif command -v shasum >/dev/null; then
	sums=(shasum -a 256)
else
	echo "load: neither sha256sum nor shasum is on the PATH: install one of them" >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# No long options and no standard input: not all of these programs have them.
{ grep -E ' (images|signatures)/' SHA256SUMS >"$work/sums" && "${sums[@]}" -c "$work/sums" >"$work/checked"; } || {
	grep -sv ': OK$' "$work/checked" >&2 || true
	echo "load: an image or a signature is not the one of this release: copy the folder again" >&2
	exit 1
}
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
