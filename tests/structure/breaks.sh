#!/bin/sh
# Each broken rule in tests/sim/breaks still applies to the source that it breaks: else `make sim-breaks` could not try it.
# Usage: breaks.sh PATCHES LIB
set -eu
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$2" "$copy/lib"

wrong=0 count=0
for patch in "$1"/*.patch; do
    count=$((count + 1))
    patch -s -p1 --fuzz=0 --dry-run -d "$copy" <"$patch" || { echo "$patch does not apply"; wrong=1; }
done
[ "$count" -ge 40 ] || { echo "$1 has $count patches"; wrong=1; }
exit "$wrong"
