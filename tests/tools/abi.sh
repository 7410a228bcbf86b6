#!/bin/sh
# Compares the binary interface of the library that was built with that of the last
# version, tests/data/libhibloom-VERSION.abi, by abidiff. While the major number is the
# same, no program needs to be compiled again. So functions and values of enums may come,
# and fields at the end of the structs that have a size. Anything else is refused. A new
# major number may change it all, and has a soname of its own.
# Usage: abi.sh check|write BUILD
#   write   makes the file anew, when a version is released
set -eu

what=$1 library=$2/libhibloom.so
version=$(sed -n 's/^#define HIBLOOM_VERSION "\(.*\)"/\1/p' include/hibloom/hibloom.h)
last=$(ls tests/data/libhibloom-*.abi)

new=$(mktemp) may_grow=$(mktemp)
trap 'rm -f "$new" "$may_grow"' EXIT
# What only the library knows, such as struct hibloom, is left out.
abidw --header-file include/hibloom/hibloom.h --header-file include/hibloom/async.h --drop-private-types \
    --exported-interfaces-only --no-elf-needed --no-show-locs --no-corpus-path --no-comp-dir-path \
    --out-file "$new" "$library"

if [ "$what" = write ]; then
    rm -f "$last"
    cat "$new" >"tests/data/libhibloom-$version.abi"
    exit 0
fi

major() { echo "${1%%.*}"; }
last_version=$(basename "${last#tests/data/libhibloom-}" .abi)
# hiredis' own structs are of whatever version of it is installed.
cat >"$may_grow" <<'END'
[suppress_type]
  name_regexp = ^hibloom_(setup|loop|info|comparison|plan|stats)$
  type_kind = struct
  has_data_member_inserted_at = end
[suppress_type]
  name_regexp = ^(redis.*|dict|timeval)$
END

status=0
abidiff --no-added-syms --no-architecture --suppressions "$may_grow" "$last" "$new" || status=$?
# 4: something is different; 8: what was compiled before may fail. Other bits: abidiff itself failed.
[ $((status & ~12)) = 0 ] || exit "$status"
soname=$(readelf -d "$library" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
[ "$soname" = "libhibloom.so.$(major "$version")" ] || { echo "abi: the soname is $soname in $version" >&2; exit 1; }
if [ "$(major "$version")" != "$(major "$last_version")" ]; then
    echo "abi: $version after $last_version: another major version, which may change everything; soname $soname"
    exit 0
fi
[ $status = 0 ] || { echo "abi: $version changes what programs compiled with $last_version rely on" >&2; exit 1; }
echo "abi: programs compiled with $last_version run with $version"
