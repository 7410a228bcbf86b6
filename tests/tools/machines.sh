#!/bin/sh
# Runs the unit tests, and the command, on a 32-bit machine (i386) and on one whose words begin with
# their high byte (s390x): who shares a filter with this machine may be either. They
# are compiled here, by Debian's cross compilers, and run here: s390x by qemu, and i386 as
# it is, or by qemu where this machine's kernel does not run it.
# The libraries that they need come from the archive that this machine's apt uses. They
# are unpacked beside the objects; apt keeps what it knows of them there, too, so this
# machine's own packages and lists stay as they are.
# Usage: machines.sh BUILD TEST...      (each TEST as tests/unit/NAME)
set -eu

build=$1
shift

# unpack ARCHITECTURE DIR: the libraries, into DIR
unpack() {
    [ ! -d "$2" ] || return 0
    work=$2.part
    rm -rf "$work"
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
    work=$(cd "$work" && pwd)
    : >"$work/status"
    # A source that has nothing for this architecture matters only if a package is then missing.
    (
        cd "$work"
        apt() {
            apt-get -q -o APT::Architecture="$1" -o APT::Architectures="$1" -o APT::Sandbox::User=root \
                -o Acquire::Languages=none -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" \
                -o Dir::Cache="$work/cache" "$2" $3 >>"$work/log" 2>&1
        }
        apt "$1" update '' || :
        apt "$1" download 'libcmocka-dev libcmocka0 libhiredis-dev zlib1g-dev libxxhash-dev' || { cat log >&2; exit 1; }
        for package in *.deb; do
            dpkg-deb -x "$package" root
        done
    )
    mv "$work/root" "$2"
    rm -rf "$work"
}

# run_on ARCHITECTURE COMPILER LOADER RUNNER TEST...
run_on() {
    there=$build-$1 root=$build-$1/root lib=$build-$1/root/usr/lib/$1-linux-gnu compiler=$2
    loader="$4 /usr/$2/lib/$3 --library-path /usr/$2/lib:$lib"
    echo "$1:"
    unpack "$1" "$root"
    shift 4
    programs=
    for test in "$@"; do
        programs="$programs $there/$test"
    done
    # MAKEFLAGS would hand on the BUILD of the make that called this.
    MAKEFLAGS='' make -s -j2 BUILD="$there" HIBLOOM_TLS= CC="$compiler-gcc" LD="$compiler-ld" AR="$compiler-ar" \
        OBJCOPY="$compiler-objcopy" CFLAGS='-O1 -g -Werror' LDFLAGS="-L$lib" \
        CPPFLAGS="-isystem $root/usr/include -isystem $root/usr/include/$(basename "$lib")" $programs "$there/hibloom"
    TEST_UNDER="$loader" tests/tools/run-tests.sh $programs
    [ "$($loader "$there/hibloom" -u memory: uniq a -n 100 -p 0.1 <"$0" | head -n 1)" = '#!/bin/sh' ]
}

runner=
env /usr/i686-linux-gnu/lib/ld-linux.so.2 --version >/dev/null 2>&1 || runner=qemu-i386-static
run_on i386 i686-linux-gnu ld-linux.so.2 "$runner" "$@"
run_on s390x s390x-linux-gnu ld64.so.1 qemu-s390x-static "$@"
