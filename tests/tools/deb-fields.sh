#!/bin/sh
# The Debian packages in a folder have this version, with the release of this machine, and this maintainer.
# Usage: deb-fields.sh FOLDER VERSION MAINTAINER
set -eu

version=$(echo "$2" | sed 's/-/~~/')
[ "$(grep -c '^ID=debian$' /etc/os-release)" = 0 ] || release="~deb$(cut -d. -f1 /etc/debian_version)"
[ "$version" = "$2" ] || dpkg --compare-versions "$version${release-}" lt "${2%%-*}${release-}" ||
    { echo "deb-fields: $version${release-} does not sort before ${2%%-*}${release-}" >&2; exit 1; }
for package in "$1"/*.deb; do
    found=$(dpkg-deb -f "$package" Version Maintainer)
    wanted="Version: $version${release-}
Maintainer: $3"
    [ "$found" = "$wanted" ] || { echo "deb-fields: $package: $found" >&2; exit 1; }
done
