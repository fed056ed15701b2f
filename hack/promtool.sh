#!/usr/bin/env bash
# Prints a shell line that puts promtool on the PATH. Where there is none, it is
# taken out of Debian's package, which is not installed, into the cache; where
# that cannot be had, the tests that want promtool are skipped.
set -euo pipefail
if command -v promtool >/dev/null; then
	exit
fi
dir=${XDG_CACHE_HOME:-$HOME/.cache}/storeplane/tools/promtool
if [ ! -x "$dir/promtool" ]; then
	for tool in apt-get dpkg-deb; do
		if ! command -v "$tool" >/dev/null; then
			echo "promtool.sh: there is neither promtool nor $tool: alerts are not tried on series" >&2
			exit
		fi
	done
	# It has a package of its own from Debian 13 on.
	package=prometheus
	if apt-cache show promtool >/dev/null 2>&1; then
		package=promtool
	fi
	mkdir -p "$dir"
	work=$(mktemp -d "$dir/XXXXXX")
	trap 'rm -rf "$work"' EXIT
	if ! (cd "$work" && apt-get download "$package" >&2); then
		echo "promtool.sh: cannot download Debian's package $package: alerts are not tried on series" >&2
		exit
	fi
	dpkg-deb --fsys-tarfile "$work/$package"_*.deb | tar -x -C "$work" ./usr/bin/promtool
	mv "$work/usr/bin/promtool" "$dir/promtool"
fi
printf 'export PATH=%q:$PATH\n' "$dir"
