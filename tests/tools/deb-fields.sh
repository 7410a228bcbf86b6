#!/bin/sh
# The Debian packages in a folder have this version, with the release of this machine, and this maintainer.
# Usage: deb-fields.sh FOLDER VERSION MAINTAINER
set -eu

[ "$(grep -c '^ID=debian$' /etc/os-release)" = 0 ] || release="~deb$(cut -d. -f1 /etc/debian_version)"
for package in "$1"/*.deb; do
    found=$(dpkg-deb -f "$package" Version Maintainer)
    wanted="Version: $2${release-}
Maintainer: $3"
    [ "$found" = "$wanted" ] || { echo "deb-fields: $package: $found" >&2; exit 1; }
done
