#!/bin/sh
# Installs into a temporary directory as a package is made (staged under
# DESTDIR, then put in place), and from outside the tree, knowing it only by
# pkg-config, builds a C and a C++ program on it, dynamically and statically.
# Usage: install-test.sh BUILD
set -eu

build=$1
outside=$(cd "$(dirname "$0")/../install" && pwd)/outside.c
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
prefix=$dir/prefix

fail() { echo "install-test: $*" >&2; exit 1; }

# MAKEFLAGS would hand down a job server that is not open here.
MAKEFLAGS='' make -s install BUILD="$build" DESTDIR="$dir/stage" PREFIX="$prefix"
mv "$dir/stage$prefix" "$prefix"

foreign() { awk 'NF == 3 && $3 !~ /^hibloom_/ { print $3 }'; }
shared=$(nm -D --defined-only "$prefix/lib/libhibloom.so" | foreign)
static=$(nm -g --defined-only "$prefix/lib/libhibloom.a" | foreign)
[ -z "$shared$static" ] || fail "exported, but not named hibloom_:" $shared $static

cd "$dir"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
warnings='-Wall -Wextra -Wpedantic -Werror'
c="${CC:-cc} -std=c11 $warnings -x c $outside -x none"
cxx="${CXX:-c++} -std=c++11 $warnings -x c++ $outside -x none"

for compile in "$c" "$cxx"; do
    $compile -o dynamic $(pkg-config --cflags --libs hibloom)
    LD_LIBRARY_PATH="$prefix/lib" ./dynamic
    # Nothing but .a files, so that Libs.private and Requires.private must be
    # whole. The linker's remark on getaddrinfo in a static program is glibc's.
    $compile -static -o static $(pkg-config --static --cflags --libs hibloom) 2>static.log || fail "$(cat static.log)"
    ./static
done

version=$(pkg-config --modversion hibloom)
case $("$prefix/bin/hibloom" --version) in
*"$version"*) ;;
*) fail "the command's version is not hibloom.pc's, $version" ;;
esac

cd - >/dev/null
MAKEFLAGS='' make -s uninstall PREFIX="$prefix"
left=$(find "$prefix" ! -type d)
[ -z "$left" ] || fail "uninstall left" $left
echo "install-test: C and C++, dynamic and static, by pkg-config: ok"
