#!/bin/sh
# With musl in place of glibc: lib/ and programs/ compile without a warning, and the command, linked statically, adds,
# loads, counts and saves. Debian has no hiredis for musl. So the headers are Debian's, and so are libhiredis.a and
# libz.a, which need four functions of glibc: musl_fortify.c. Without TLS, as OpenSSL would need more of these.
# Usage: musl.sh BUILD
set -eu

build=$1-musl
fail() { echo "musl: $*" >&2; exit 1; }

# Only these: with all of /usr/include, glibc's headers would be found. musl has no sys/queue.h.
rm -rf "$build/include"
mkdir -p "$build/include/sys"
for header in hiredis xxhash.h xxh3.h zlib.h zconf.h sys/queue.h; do
    for place in /usr/include "/usr/include/$(gcc -print-multiarch)"; do
        [ ! -e "$place/$header" ] || ln -s "$place/$header" "$build/include/$header"
    done
done
make -s --no-print-directory BUILD="$build" CC=musl-gcc HIBLOOM_TLS= CPPFLAGS="-isystem $(realpath "$build/include")" \
    CFLAGS='-O2 -g -Werror' "$build/libhibloom.a" musl-objects

program=$build/hibloom
musl-gcc -O2 -static -o "$program" "$build"/programs/*.o "$build/lib/base/nearest.o" tests/tools/musl_fortify.c \
    "$build/libhibloom.a" "$(gcc -print-file-name=libhiredis.a)" "$(gcc -print-file-name=libz.a)"
readelf -d "$program" | grep -q 'no dynamic section' || fail "it is not static"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
seq 1 20000 >"$dir/lines"
cat >"$dir/run" <<'END'
set -eu
program=$1 dir=$2
$program add seen -n 100k -p 1e-9 a b a
$program load seen <"$dir/lines" | sed 's/ in .*//'
$program info seen | sed -n 's/estimated items *\(199\|200\)[0-9][0-9]$/about 20000/p'
$program save seen - | $program restore other -
$program check other a 1 20000 none || :
$program -u redis://localhost:1 --retry 0 info seen 2>&1 | grep -c refused
END
cat >"$dir/expected" <<'END'
added 3, new 2
loaded 20000
about 20000
maybe	a
maybe	1
maybe	20000
no	none
1
END
tests/tools/with-redis.sh sh "$dir/run" "$program" "$dir" >"$dir/said" 2>&1 || fail "$(cat "$dir/said")"
cmp -s "$dir/said" "$dir/expected" || fail "$(cat "$dir/said")"
echo 'musl: the static command adds, loads, counts, saves and restores'
