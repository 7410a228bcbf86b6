#!/bin/sh
# Makes Debian packages of this tree: libhibloomX, libhibloom-dev and hibloom, in
# BUILD/deb. Debian's tools want a folder debian/ at the top; so the tree is copied, and
# the folder made there. Its changelog and its license are those of the tree. The version names the release that
# it is built on, as 1.0.0~deb12, so that an upgrade of the system takes the package of the newer release.
# 1.0.0-rc1 becomes 1.0.0~~rc1~deb12, which dpkg sorts before 1.0.0~deb12.
# $DEBFULLNAME and $DEBEMAIL say who maintains the packages, as for dch; default: the user of this machine.
# Usage: deb.sh BUILD VERSION
set -eu

build=$1 version=$2
soversion=${version%%.*}
there=$build/deb/hibloom-$version
release=$(. /etc/os-release && case $ID in
    debian) echo "~deb${VERSION_ID-}" ;;
    *) echo "~$ID${VERSION_ID-}" ;;
    esac)
user=$(id -un)
maintainer="${DEBFULLNAME:-$user} <${DEBEMAIL:-$user@$(hostname -f 2>/dev/null || hostname)}>"
cd "$(dirname "$0")/.."

rm -rf "$build/deb"
mkdir -p "$there"
cp -a CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md SECURITY.md docs examples include lib packaging programs "$there"
cd "$there"
cp -a packaging/debian .
mv debian/library.install "debian/libhibloom$soversion.install"
awk -v soversion="$soversion" -v maintainer="$maintainer" \
    '{ gsub(/@SOVERSION@/, soversion); sub(/@MAINTAINER@/, maintainer); print }' debian/control >debian/control.new
mv debian/control.new debian/control

[ "$(sed -n 's/^## \([^ ]*\) .*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ] ||
    { echo "deb: CHANGELOG.md does not begin with $version" >&2; exit 1; }

# "## 1.0.0 (2026-11-25)" and what is below it, paragraphs and lists, are an entry. The
# latest is of noon, since two entries may be of one day but not of one second.
awk '
# A line of any length, in lines of at most 78.
function wrap(start, text,    words, n, i, line) {
    n = split(text, words, " ")
    line = start
    for (i = 1; i <= n; i++) {
        if (length(line " " words[i]) > 78) {
            print line
            line = "   "
        }
        line = line " " words[i]
    }
    print line
}
function finish() { if (date != "") printf "\n -- %s  %s\n\n", maintainer, date }
/^## / {
    finish()
    sub(/-/, "~~", $2)
    printf "hibloom (%s) unstable; urgency=medium\n\n", $2 (entries ? "" : release)
    gsub(/[()]/, "", $3)
    command = "date -u -R -d " $3 (entries++ ? "" : "T12:00Z")
    command | getline date
    close(command)
    next
}
date == "" || /^$/ { next }
/^- / { wrap("  *", substr($0, 3)); next }
/^  / { wrap("   ", $0); next }
{ wrap("  *", $0) }
END { finish() }
' maintainer="$maintainer" release="$release" CHANGELOG.md >debian/changelog

license=$(sed '1,/^Copyright/d; 1d' LICENSE | sed '/./,$!d; s/^$/./; s/^/ /')
awk -v text="$license" '/^@LICENSE@$/ { print text; next } { print }' debian/copyright >debian/copyright.new
mv debian/copyright.new debian/copyright

# MAKEFLAGS and BUILD are of the make that called this.
if ! env -u MAKEFLAGS -u BUILD dpkg-buildpackage -us -uc -b >../build.log 2>&1; then
    cat ../build.log >&2
    exit 1
fi
cd ..
ls -1 ./*.deb
