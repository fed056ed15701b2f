#!/usr/bin/env bash
# Prints which series of MySQL images can be made for here, and from which SUITES of Debian, for
# eval. It says on stderr if none can: a release takes MySQL from its vendor, which is not set up
# yet, and sid is for tests. Usage: hack/mysql.sh VERSION
set -euo pipefail
if [ "$1" = dev ]; then
	echo "SERIES='9.7' SUITES='sid'"
else
	echo "mysql: MySQL is left out of a release: only Debian sid has it here, which is none for production" >&2
	echo "SERIES='' SUITES=''"
fi
