#!/bin/sh
# Runs some tests that `make test` has built on Valkey in place of Redis, if this machine's
# Debian has it; says so where it has not. Needs root.
set -eu

cd "$(dirname "$0")/../.."
if ! command -v valkey-server >/dev/null; then
    if [ -z "$(apt-cache search --names-only '^valkey-server$')" ]; then
        echo "on-valkey: this Debian has no valkey-server; nothing was run"
        exit 0
    fi
    apt-get -qq install -y --no-install-recommends valkey-server >/dev/null
fi
valkey-server --version
HIBLOOM_TEST_SERVER=valkey-server HIBLOOM_PROGRAM=$PWD/build/hibloom exec tests/tools/run-tests.sh \
    build/tests/redis/items build/tests/redis/life build/tests/redis/merge \
    build/tests/redis/connecting build/tests/fault/permissions build/tests/fault/acl build/tests/cluster/filter
