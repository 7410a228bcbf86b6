#!/bin/sh
# Compiles and runs the README's C example, the first ```c block, so that what
# a newcomer copies works. It names a server by a redis:// URI; here that is
# replaced by the URI of our own one.
# Usage: with-redis.sh readme.sh README LIBRARY...
set -eu
readme=$1
shift

awk '/^```/ { if (inside) exit; inside = $0 == "```c"; next } inside' "$readme" |
    sed "s|\"redis://[^\"]*\"|\"$HIBLOOM_URL\"|" >"$SCRATCH/example.c"
[ -s "$SCRATCH/example.c" ] || { echo "$readme has no C example" >&2; exit 1; }

${CC:-cc} ${CFLAGS-} -std=c11 -Wall -Wextra -Werror -Iinclude -o "$SCRATCH/example" "$SCRATCH/example.c" "$@"
"$SCRATCH/example"
