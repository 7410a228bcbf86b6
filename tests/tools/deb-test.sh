#!/bin/sh
# Installs the Debian packages in a folder on this very machine, uses them as anyone
# would, and removes them again. For a machine that is thrown away; needs root.
# Usage: deb-test.sh FOLDER
set -eu

packages=$(cd "$1" && pwd)
tests=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

fail() { echo "deb-test: $*" >&2; exit 1; }
apt() {
    env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q "$@" >"$dir/log" 2>&1 ||
        fail "$(cat "$dir/log")"
}

find "$packages" -name '*.deb' ! -name '*-dbgsym_*' >"$dir/packages"
[ "$(wc -l <"$dir/packages")" = 3 ] || fail "not three packages in $packages"
apt install -y --no-install-recommends $(cat "$dir/packages")

# The command, on a server. Outside the tree, which nothing may be found in.
cd "$dir"
printf '%s\n' a b a >lines
printf '%s\n' a b >expected
"$tests/tools/with-redis.sh" sh -c 'hibloom uniq deb-test -n 1000 -p 0.001 <lines' >unique
cmp unique expected || fail "hibloom uniq printed: $(cat unique)"

# Programs, with the library where every compiler looks.
warnings='-Wall -Wextra -Werror'
cc -std=c11 $warnings -o c "$tests/install/outside.c" $(pkg-config --cflags --libs hibloom)
c++ -std=c++17 $warnings -o cxx "$tests/install/outside.cpp" $(pkg-config --cflags --libs hibloom)
version=$(pkg-config --modversion hibloom)
cmake -S "$tests/install" -B cmake -DWANTED="${version%.*}" >cmake.log && cmake --build cmake >>cmake.log 2>&1 ||
    fail "$(cat cmake.log)"
for program in ./c ./cxx cmake/c_shared cmake/c_static cmake/cxx_shared; do
    $program || fail "$program"
done
for page in man1/hibloom.1 man3/hibloom.3 man3/hibloom_add.3 man5/hibloom-spec.5; do
    # A fresh machine may leave manual pages out, but the packages have them.
    dpkg -L hibloom libhibloom-dev | grep -qx "/usr/share/man/$page.gz" || fail "no $page"
done

names=$(sed 's|.*/||; s|_.*||' packages)
apt purge -y $names
left=$(find /usr -name '*hibloom*' -not -path "$tests/*")
[ -z "$left" ] || fail "left after the purge:" $left
echo "deb-test: installed, used in C, C++, CMake and on the command line, and removed: ok"
