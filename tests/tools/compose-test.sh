#!/bin/sh
# What docker-compose.yml promises, as docker-compose itself reads it; no Docker
# engine is needed. Ports are published on loopback only. Nothing is stored in a
# volume, and the checkout is read-only, so that tests leave nothing behind. The
# tests use no server with a published port.
# Usage: compose-test.sh [docker-compose.yml]
set -eu

file=${1:-$(dirname "$0")/../../docker-compose.yml}
# Version 2 prints the same in another form, which this does not read.
case $(docker-compose version --short 2>/dev/null) in
1.*) ;;
*)
    echo "compose-test: skipped, there is no docker-compose 1"
    exit 0
    ;;
esac
fail() { echo "compose-test: $*" >&2; exit 1; }

config=$(docker-compose -f "$file" --profile try config)
# The items of each service's list of that name, one on a line as SERVICE: ITEM.
list() {
    echo "$config" | awk -v list="$1:" '
        /^[a-z]/ { top = $1 }
        /^  [^ -]/ { service = $1; inside = 0 }
        /^    [^ -]/ { inside = $1 == list }
        top == "services:" && inside && $1 != list { sub(/^ *(- )?/, ""); print service " " $0 }'
}

one_line() { sort | tr '\n' ' '; }

# Only on loopback, and not by the tests.
ports=$(list ports | one_line)
[ "$ports" = "redis: 127.0.0.1:6379:6379/tcp " ] || fail "not one port on loopback, of the server to try: $ports"
[ "$(list profiles | one_line)" = "redis: try " ] || fail "the tests start the server that has a port"

# The checkout is read-only, and there is no other volume.
volumes=$(list volumes | one_line)
case $volumes in
"test: "*/checkout:ro\ ) ;;
*) fail "not only the checkout, read-only: $volumes" ;;
esac
! echo "$config" | grep -q '^volumes:' || fail "a named volume would outlive the tests"

# The image of Redis declares a volume; only a tmpfs in its place leaves none.
[ "$(list tmpfs | one_line)" = "redis: /data test-redis: /data " ] || fail "a server without a tmpfs for /data"
echo "$config" | grep -q 'HIBLOOM_TEST_URL: redis://test-redis:6379' || fail "the tests do not use their own server"
echo "compose-test: loopback only, and no volumes: ok"
