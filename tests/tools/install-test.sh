#!/bin/sh
# Installs into a temporary directory as a package is made (staged under
# DESTDIR, then put in place), and from outside the tree, knowing it only by
# pkg-config, builds a C and a C++ program on it, dynamically and statically; then
# the same by CMake's find_package, where the tree was moved, and by a link to one that has
# the library in a folder of the machine's kind, as Debian has it; and what is for C++ alone: its header and example.
# Usage: with-redis.sh install-test.sh BUILD
set -eu

build=$1
tests=$(cd "$(dirname "$0")/.." && pwd)
outside=$tests/install/outside.c
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
prefix=$dir/prefix

fail() { echo "install-test: $*" >&2; exit 1; }

# Whatever umask root has, others can use what is installed. No older library of the soname stays.
soname=$(readelf -d "$build/libhibloom.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
mkdir -p "$dir/stage$prefix/lib"
touch "$dir/stage$prefix/lib/$soname.0.0-rc0"
# MAKEFLAGS would hand down a job server that is not open here.
(umask 077 && MAKEFLAGS='' make -s install BUILD="$build" DESTDIR="$dir/stage" PREFIX="$prefix")
mv "$dir/stage$prefix" "$prefix"
hidden=$(find "$prefix" ! -type l ! -perm -o+r)
[ -z "$hidden" ] || fail "unreadable to others:" $hidden
[ ! -e "$prefix/lib/$soname.0.0-rc0" ] || fail "an older library is still there"

foreign() { awk 'NF == 3 && $3 !~ /^hibloom_/ { print $3 }'; }
shared=$(nm -D --defined-only "$prefix/lib/libhibloom.so" | foreign)
static=$(nm -g --defined-only "$prefix/lib/libhibloom.a" | foreign)
[ -z "$shared$static" ] || fail "exported, but not named hibloom_:" $shared $static

for name in $(nm -D --defined-only "$prefix/lib/libhibloom.so" | awk 'NF == 3 { print $3 }'); do
    [ -e "$prefix/share/man/man3/$name.3" ] || fail "no man page for $name"
done
for name in hibloom_status hibloom_setup hibloom_plan hibloom_info hibloom_stats hibloom_comparison hibloom_loop; do
    [ -e "$prefix/share/man/man3/$name.3" ] || fail "no man page for the type $name"
done

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

# That it works is shown where CMake builds it.
for standard in 17 20; do
    ${CXX:-c++} -std=c++$standard $warnings -fsyntax-only "$tests/install/outside.cpp" $(pkg-config --cflags hibloom)
done

if ${CXX:-c++} -std=c++14 -fsyntax-only -Wfatal-errors "$tests/install/outside.cpp" $(pkg-config --cflags hibloom) 2>old.log; then
    fail "hibloom.hpp is compiled as C++14"
fi
grep -q 'hibloom.hpp needs C++17' old.log || fail "hibloom.hpp as C++14: $(cat old.log)"

# Its example prints a line that no run has printed before.
${CXX:-c++} -std=c++17 $warnings -o unique "$tests/../examples/unique.cpp" $(pkg-config --cflags --libs hibloom)
unique() { LD_LIBRARY_PATH="$prefix/lib" ./unique "$HIBLOOM_URL" install-test; }
first=$(printf '%s\n' a b a | unique) second=$(printf '%s\n' b c | unique)
[ "$first/$second" = "a
b/c" ] || fail "examples/unique printed '$first', then '$second'"

version=$(pkg-config --modversion hibloom)
case $("$prefix/bin/hibloom" --version) in
*"$version"*) ;;
*) fail "the command's version is not hibloom.pc's, $version" ;;
esac

# by_cmake PREFIX LANGUAGES PROGRAM...: a project of these languages finds the tree there, and its programs run. None of
# the tree's files names another place.
by_cmake() {
    rm -rf cmake
    { cmake -S "$tests/install" -B cmake -DCMAKE_PREFIX_PATH="$1" -DWANTED="${version%.*}" -DLANGUAGES="$2" &&
        cmake --build cmake; } >cmake.log 2>&1 || fail "$1: $2: $(cat cmake.log)"
    place=$1
    shift 2
    for program; do
        "cmake/$program" || fail "$place: $program"
    done
    ldd cmake/c_static | grep -q libhibloom && fail "hibloom::hibloom_static is shared"
    grep -F "$dir" $(find "$place/" -name '*.cmake') && fail "CMake's files name a place"
    return 0
}

mv "$prefix" "$dir/moved"
prefix=$dir/moved
by_cmake "$prefix" 'C;CXX' c_shared c_static cxx_shared cxx11_shared
case $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --define-prefix --libs --cflags hibloom) in
*"-I$prefix/include"*"-L$prefix/lib "*) ;;
*) fail "hibloom.pc does not move along: $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --define-prefix --libs --cflags hibloom)" ;;
esac
cd - >/dev/null
MAKEFLAGS='' make -s install BUILD="$build" DESTDIR="$dir/deb" PREFIX=/usr LIBDIR=/usr/lib/x86_64-linux-gnu
cd "$dir"
grep -qxF 'libdir=${prefix}/lib/x86_64-linux-gnu' deb/usr/lib/x86_64-linux-gnu/pkgconfig/hibloom.pc ||
    fail "$(cat deb/usr/lib/x86_64-linux-gnu/pkgconfig/hibloom.pc)"
ln -s deb/usr link
by_cmake "$dir/link" C c_shared c_static

cd - >/dev/null
MAKEFLAGS='' make -s uninstall PREFIX="$prefix"
left=$(find "$prefix" ! -type d)
[ -z "$left" ] || fail "uninstall left" $left
echo "install-test: C and C++, dynamic and static, by pkg-config and by find_package, moved, too; C++17 and 20: ok"
