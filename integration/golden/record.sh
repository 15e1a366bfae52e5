#!/bin/sh
# Records the golden vectors anew with every Salt in $SALTCLUSTER_VENVS (<dir>/<version>/bin/python), or with the versions
# named as arguments. Takes one to two minutes each; starts daemons on loopback under a temporary directory and stops them.
set -eu
: "${SALTCLUSTER_VENVS:?a directory with one Salt virtualenv per version}"
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
[ $# -gt 0 ] || set -- $(ls "$SALTCLUSTER_VENVS")
for version in "$@"; do
	PYTHONDONTWRITEBYTECODE=1 "$SALTCLUSTER_VENVS/$version/bin/python" "$here/record.py" "$out"
	PYTHONDONTWRITEBYTECODE=1 "$SALTCLUSTER_VENVS/$version/bin/python" "$here/recordtcp.py" "$out"
	case $version in
	3008.*) PYTHONDONTWRITEBYTECODE=1 "$SALTCLUSTER_VENVS/$version/bin/python" "$here/mmapkeys.py" "$out" ;;
	esac
done
if [ -d "$out/mmapkeys" ]; then
	rm -rf "$here/../../fsync/mmapkeys/testdata/golden"
	mkdir -p "$here/../../fsync/mmapkeys/testdata"
	cp -r "$out/mmapkeys" "$here/../../fsync/mmapkeys/testdata/golden"
fi
mkdir -p "$here/../../sidecar/saltwire/tcpframe/testdata/golden"
cp "$out"/tcpframe/*.json "$here/../../sidecar/saltwire/tcpframe/testdata/golden/"
for package in saltwire saltcrypt; do
	mkdir -p "$here/../../sidecar/$package/testdata/golden"
	cp "$out/$package"/*.json "$here/../../sidecar/$package/testdata/golden/"
done
