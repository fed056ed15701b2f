#!/usr/bin/env bash
# Prints which majors of PostgreSQL images can be made for here, and from where those come that
# the images' base, trixie, does not have, for eval: MAJORS, and SUITES of Debian. It says on
# stderr which are left out, and fails for a release that would lack some. Usage: hack/majors.sh VERSION
set -euo pipefail
# What the PostgreSQL project's repository, once it is set up in an image, is read from.
vendor=https://apt.postgresql.org/pub/repos/apt/dists/trixie-pgdg/InRelease
if curl --fail --silent --max-time 10 --output /dev/null "$vendor"; then
	echo "MAJORS='14 15 16 17 18' SUITES=''"
elif [ "$1" = dev ]; then
	echo "majors: PostgreSQL 14 and 16 are left out: the PostgreSQL project's repository does not answer, and no release of Debian has them" >&2
	# Debian's other suites, of which sid is none for production.
	echo "MAJORS='15 17 18' SUITES='bookworm sid'"
else
	echo "majors: cannot make a release: the PostgreSQL project's repository, which has PostgreSQL 14, 15, 16 and 18, does not answer" >&2
	exit 1
fi
