#!/bin/sh
# Compiles and runs the README's C example, the first ```c block, so that what
# a newcomer copies works. It names a server by a redis:// URI; here that is
# replaced by the URI of our own one. Then runs the lines of its section on the
# command, one after the other, as they stand, on the same server; but for those that want another
# server, and bench, which is a test of its own.
# Usage: with-redis.sh readme.sh README LIBRARY...
set -eu
readme=$1
shift

awk '/^```/ { if (inside) exit; inside = $0 == "```c"; next } inside' "$readme" |
    sed "s|\"redis://[^\"]*\"|\"$HIBLOOM_URL\"|" >"$SCRATCH/example.c"
[ -s "$SCRATCH/example.c" ] || { echo "$readme has no C example" >&2; exit 1; }

${CC:-cc} ${CFLAGS-} -std=c11 -Wall -Wextra -Werror -Iinclude -o "$SCRATCH/example" "$SCRATCH/example.c" "$@"
"$SCRATCH/example"

hibloom=$(cd "$(dirname "$1")" && pwd)/hibloom
awk '/^## / { inside = $0 == "## On the command line" } inside && sub(/^    /, "")' "$readme" |
    grep -v '^hibloom bench\|redis://other' >"$SCRATCH/lines"
lines=$(wc -l <"$SCRATCH/lines")
[ "$lines" -ge 15 ] || { echo "$readme has only $lines lines on the command" >&2; exit 1; }
cd "$SCRATCH"
mkdir bin
ln -s "$hibloom" bin/hibloom
PATH=$SCRATCH/bin:$PATH
printf 'https://example.org/%s\n' 1 2 3 | tee urls a_million_urls >all_urls
redis-cli -s "$REDIS_SOCKET" setbit uids 1 1 >/dev/null # as PHP fills it
while IFS= read -r line; do
    status=0
    sh -ec "$line" </dev/null >said 2>&1 || status=$?
    case $status/$line in
    0/* | 1/'hibloom check '*) ;;
    *) echo "$readme: $line: exit $status: $(cat said)" >&2; exit 1 ;;
    esac
done <lines
