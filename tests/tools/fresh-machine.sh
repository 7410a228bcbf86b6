#!/bin/sh
# Proves the README's two commands on a machine that has nothing: mmdebstrap makes
# a minimal Debian with only make in it. It copies the checkout in, and runs
# `make demo` and `make test` there. Where that Debian has Valkey, some tests run on
# it, too. Then `make deb`, whose packages are installed and used.
# The mirror is the one this machine's own apt uses. Needs root.
# Usage: fresh-machine.sh SUITE      (bookworm, trixie, ...)
set -eu

if [ "${1-}" = --inside ]; then # in the namespaces that the rest of this makes
    suite=$2 mirror=$3 root=$4
    # It is thrown away, so nothing in it has to survive a loss of power.
    mmdebstrap --variant=minbase --include=make --dpkgopt=force-unsafe-io "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
        { tail -n 20 "$root.log" >&2; exit 1; }
    mkdir "$root/checkout"
    tar -C "$root/checkout" -xf "$root.tar"
    echo '127.0.0.1 localhost' >"$root/etc/hosts" # as every machine has it
    # What apt needs to reach the mirror from here: a proxy, its time-outs.
    apt-config dump Acquire >"$root/etc/apt/apt.conf.d/00-as-outside"
    # /dev/pts is for the tests that need a terminal.
    mount -t proc proc "$root/proc" 2>/dev/null && mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts" ||
        echo "fresh-machine: going on without /proc and /dev/pts"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root $(env | grep -i '^[a-z]*_proxy=\|^TEST_JOBS=') \
        chroot "$root" sh -c 'cd /checkout && make demo && make test && tests/tools/on-valkey.sh &&
            make deb && tests/tools/deb-test.sh build/deb'
fi

suite=$1
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 'Component: main' | head -n 1
}
mirror=$(mirror)
if [ -z "$mirror" ]; then # apt has no lists yet
    apt-get -qq update
    mirror=$(mirror)
fi
[ -n "$mirror" ] || { echo "fresh-machine: this machine's apt knows no Debian archive" >&2; exit 1; }

dir=$(mktemp -d)
inside=
cleanup() {
    trap '' INT TERM HUP
    # Every process in there dies with the first, and the last of them takes
    # the mounts along; that may be a moment later.
    [ -z "$inside" ] || kill -KILL "-$inside" 2>/dev/null || :
    wait
    for try in 1 2 3 4 5; do
        rm -rf --one-file-system "$dir" 2>/dev/null && return
        sleep 1
    done
    echo "fresh-machine: $dir could not be removed" >&2
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

tools=$(cd "$(dirname "$0")" && pwd)
cd "$tools/../.."
# As committed, or about to be: no build directory, nothing that git ignores.
git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf "$dir/root.tar"

# Own mount and process namespaces: what is mounted and started in there can
# not outlive it nor be seen out here, where rm -rf must never meet a mount.
# Who may not make them, as in most containers, may not mount either.
namespaces='unshare --mount --pid --fork --kill-child --mount-proc'
$namespaces true 2>/dev/null || namespaces=
setsid $namespaces "$tools/fresh-machine.sh" --inside "$suite" "$mirror" "$dir/root" </dev/null &
inside=$!
status=0
wait "$inside" || status=$?
inside=
exit $status
