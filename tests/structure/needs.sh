#!/bin/sh
# Plain `make` without a package that it needs names the package, and compiles nothing; and it says why it has no TLS.
# An xxHash whose XXH3 is another hash is refused.
# Usage: needs.sh
set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "needs: $*" >&2; exit 1; }

# A compiler that lacks these headers, and one that has all; and the pkg-config of hiredis 0.14.
cat >"$dir/cc" <<'END'
#!/bin/sh
case "$*" in *-dumpmachine*) echo x86_64-linux-gnu; exit ;; esac
case "$*" in *' -E '*) ! grep -q "$LACKS" ;; *) touch "$0.ran" ;; esac
END
cat >"$dir/pkg-config" <<'END'
#!/bin/sh
case "$*" in --exists*) exit 1 ;; *) echo 0.14.0 ;; esac
END
chmod +x "$dir/cc" "$dir/pkg-config"

# What make says of one target; its exit status is in $status.
say() {
    status=0
    said=$(env -u MAKEFLAGS -u HIBLOOM_TLS PATH="$dir:$PATH" LACKS="$1" \
        make -s --no-print-directory BUILD="$dir/build" CC="$dir/cc" "$2" 2>&1) || status=$?
}

say 'xxhash\|zlib' "$dir/build/lib/base/error.o"
[ "$status" != 0 ] || fail "it goes on"
[ "$said" != "${said#*sudo apt-get install libxxhash-dev zlib1g-dev}" ] || fail "no line for apt: $said"
[ ! -e "$dir/cc.ran" ] || fail "it compiles first"
say 'nothing' "$dir/build/lib/base/error.o"
[ "$status$said" = 0 ] || fail "$said"
[ -e "$dir/cc.ran" ] || fail "it does not compile"
say 'nothing' "$dir/build/.tls"
[ "$said" = 'TLS: no (hiredis 0.14.0)' ] || fail "of TLS: $said"
say 'nothing' "$dir/build/.tls"
[ "$said" = '' ] || fail "it says so again: $said"

echo '#define XXH_VERSION_NUMBER 703' >"$dir/xxhash.h"
if said=$(cc -E -I"$dir" -Iinclude -Ilib lib/hash/hash.c 2>&1 >"$dir/hash.i"); then
    fail "xxHash 0.7.3 is taken"
fi
[ "$said" != "${said#*xxHash 0.8 or later}" ] || fail "of xxHash 0.7.3: $said"
