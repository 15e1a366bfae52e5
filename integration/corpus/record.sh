#!/bin/sh
# Records both corpora anew with every Salt in $SALTCLUSTER_VENVS (<dir>/<version>/bin/python), or with the versions named as
# arguments. Takes two minutes each; starts daemons on loopback and stops them.
set -eu
: "${SALTCLUSTER_VENVS:?a directory with one Salt virtualenv per version}"
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- $(cd "$SALTCLUSTER_VENVS" && ls -d */ | tr -d /)
for version in "$@"; do
	for what in minion syndic; do
		PYTHONDONTWRITEBYTECODE=1 "$SALTCLUSTER_VENVS/$version/bin/python" "$here/record.py" "$here/testdata" "$what"
	done
done
