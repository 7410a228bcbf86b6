#!/bin/sh
# The main job on real input: two processes pass one half each of 58,644 URLs
# through `hibloom uniq`, sharing one filter, and what they let through is held
# against the exact answer. Exits 1 if it is not within what a Bloom filter
# promises: no line twice, and no more lines lost than the error rate explains.
# Usage: with-redis.sh demo.sh HIBLOOM
set -eu
export LC_ALL=C

hibloom=$1
urls=$(dirname "$0")/../data/homepages.txt
capacity=30000
error_rate=0.001

redis() { redis-cli -s "$REDIS_SOCKET" "$@"; }
count() { wc -l | tr -d ' '; }

awk -v half="$SCRATCH/half" '{ print > (half (NR % 2)) }' "$urls"
"$hibloom" create demo -n $capacity -p $error_rate >/dev/null

begin=$(date +%s%N)
"$hibloom" uniq demo <"$SCRATCH/half0" >"$SCRATCH/out0" &
first=$!
"$hibloom" uniq demo <"$SCRATCH/half1" >"$SCRATCH/out1"
wait $first
end=$(date +%s%N)

lines_in=$(count <"$urls")
lines_out=$(cat "$SCRATCH/out0" "$SCRATCH/out1" | count)
distinct=$(sort -u "$urls" | count)
distinct_out=$(sort -u "$SCRATCH/out0" "$SCRATCH/out1" | count)
lost=$((distinct - lines_out))

"$hibloom" info demo --json >"$SCRATCH/info"
info() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" "$SCRATCH/info"; }

# A real SET of the same lines, in Redis' own protocol: any byte may be in them.
awk '{ printf "*3\r\n$4\r\nSADD\r\n$3\r\nset\r\n$%d\r\n%s\r\n", length($0), $0 }' "$urls" |
    redis --pipe >/dev/null
set_bytes=$(redis memory usage set samples 0)
[ "$(redis scard set)" = "$distinct" ] || { echo "demo: the SET for comparison is not whole" >&2; exit 1; }

# Chance allows for about capacity * error_rate at most; ten times that is no
# longer chance.
allowed=$(awk "BEGIN { print int($distinct * $error_rate * 10) }")

row() { printf '%-44s %12s%s\n' "$1" "$2" "${3:+  $3}"; }
row 'lines in, one half to each process' "$lines_in"
row 'lines out, from both' "$lines_out"
row 'distinct lines, exactly (sort -u)' "$distinct"
row 'lost: new, but taken for seen' "$lost" "(at an error rate of $error_rate; up to $allowed allowed here)"
row 'bits set' "$(info bits_set)"
row 'items, estimated from the bits' "$(info estimated_items | awk '{ printf "%.0f", $1 }')"
row 'bytes of the filter' "$(info bytes)"
row 'bytes of a Redis SET of the same lines' "$set_bytes"
row 'seconds' "$(awk "BEGIN { printf \"%.2f\", ($end - $begin) / 1e9 }")"

if [ "$lines_out" -gt "$distinct" ] || [ "$distinct_out" != "$lines_out" ]; then
    echo "demo: FAILED, a line came out twice" >&2
    exit 1
fi
if [ $lost -gt "$allowed" ]; then
    echo "demo: FAILED, more lines lost than the error rate explains" >&2
    exit 1
fi
