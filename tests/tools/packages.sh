#!/bin/sh
# Installs the packages that one of the make targets needs and the machine has
# not, so that `make demo` and `make test` are the first two commands anyone
# has to know. Where nothing is missing it takes no rights and touches nothing.
# Usage: packages.sh demo|test|deb|bench|ci
set -eu

demo='gcc make libc6-dev libhiredis-dev libxxhash-dev zlib1g-dev redis-server'
# PHP and Python are the other side of the sharing tests; locales has what a
# test makes a foreign locale of; pkg-config and g++ build on the installed tree.
# openssl makes the certificates. TLS needs libssl-dev and hiredis_ssl, which
# libhiredis-dev has in it from trixie on. sqlite3, curl and libxml2 are for
# examples. The rest are event loops.
# Sentinels are run by redis-server itself. LuaJIT runs the scripts of the simulated server. patch breaks rules for it.
test="$demo libcmocka-dev redis-tools locales php-cli php-redis python3
      python3-redis python3-murmurhash python3-xxhash pkg-config cmake g++ zsh
      openssl groff-base libssl-dev libzstd-dev libevent-dev libuv1-dev libev-dev
      libsqlite3-dev libcurl4-openssl-dev libxml2-dev libluajit-5.1-dev patch"
deb='build-essential debhelper dpkg-dev libhiredis-dev libssl-dev libxxhash-dev pkg-config zlib1g-dev'
bench="$demo gnuplot-nox libevent-dev openssl"
ci="$test $deb $bench lintian clang libclang-rt-dev clang-tidy clang-format cppcheck valgrind docker-compose mmdebstrap git
    gcc-i686-linux-gnu libc6-dev-i386-cross gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static abigail-tools musl-tools"

case ${1-} in
demo) wanted=$demo ;;
test) wanted=$test ;;
deb) wanted=$deb ;;
bench) wanted=$bench ;;
ci) wanted=$ci ;;
*) echo "usage: $0 demo|test|deb|bench|ci" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "This is no Debian or Ubuntu. Install what these of its packages hold, then run" >&2
    echo "the programs of the Makefile's target yourself:" $wanted >&2
    exit 1
fi

missing=
for package in $wanted; do
    case $(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null) in
    installed*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "These packages are missing, and only root can install them:$missing" >&2
        exit 1
    fi
    as_root=sudo
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# What apt-get says matters only if it fails. env, as sudo does not pass the
# environment on. The lock's time-out outlasts the updates of a first boot.
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 ||
        { cat "$log" >&2; exit 1; }
}
echo "Installing:$missing"
apt update
apt install -y --no-install-recommends $missing
