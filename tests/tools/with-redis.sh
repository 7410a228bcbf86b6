#!/bin/sh
# Runs a command with a Redis of its own, on a Unix socket in a temporary
# directory: it meets no other server's data and needs no free port. Server,
# directory and whatever the command left running are gone however it ends.
# Usage: with-redis.sh COMMAND [ARGUMENT...]
# The command sees: HIBLOOM_URL, REDIS_SOCKET, and SCRATCH, a directory.
set -eu

SCRATCH=$(mktemp -d)
REDIS_SOCKET=$SCRATCH/redis.sock
HIBLOOM_URL=unix://$REDIS_SOCKET
export SCRATCH REDIS_SOCKET HIBLOOM_URL

server='' command=''
cleanup() {
    trap '' INT TERM HUP # a second ^C must not stop this
    [ -z "$command" ] || kill -TERM "-$command" 2>/dev/null || :
    [ -z "$server" ] || kill "$server" 2>/dev/null || :
    wait
    rm -rf "$SCRATCH"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# setpriv: should this script be killed with -9, the server still ends.
setpriv --pdeathsig TERM redis-server --port 0 --unixsocket "$REDIS_SOCKET" \
    --dir "$SCRATCH" --save '' --appendonly no >"$SCRATCH/redis.log" 2>&1 &
server=$!

tries=100
until redis-cli -s "$REDIS_SOCKET" ping >/dev/null 2>&1; do
    tries=$((tries - 1))
    if [ $tries = 0 ] || ! kill -0 "$server" 2>/dev/null; then
        echo "redis-server did not start:" >&2
        cat "$SCRATCH/redis.log" >&2
        exit 1
    fi
    sleep 0.1
done

# A process group of its own, to be killed as one; and in the background, since
# a shell takes signals while it waits but not while it runs a command.
status=0
setsid "$@" &
command=$!
wait "$command" || status=$?
command=''
exit $status
