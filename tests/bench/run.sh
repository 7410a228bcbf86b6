#!/bin/sh
# Runs all parts of the benchmark one after the other, and makes results.md and
# its pictures of what they print, so that every figure there is of one run.
# Usage: run.sh BENCH RAW RESULTS
#   BENCH    the program
#   RAW      the directory for what it prints, PART.tsv
#   RESULTS  the directory for results.md and the pictures
# Environment:
#   BENCH_SCALE      above 0 and up to 1, shortens a trial
#   BENCH_ELSEWHERE  a directory with machine.tsv and crossing.tsv of another system
#                    on this machine, which are reported too
set -eu

bench=$1 raw=$2 results=$3
here=$(dirname "$0")
parts='machine throughput growth segments memory stalls async near calls bitfield crossing merges module kinds'

mkdir -p "$raw"
rm -f "$raw"/*.tsv "$raw"/*.dat
begin=$(date +%s)
for part in $parts; do
    printf '%s ... ' $part
    part_begin=$(date +%s)
    "$bench" $part >"$raw/$part.tsv"
    echo "$(($(date +%s) - part_begin)) s"
done

for part in ${BENCH_ELSEWHERE:+machine crossing}; do
    cp "$BENCH_ELSEWHERE/$part.tsv" "$raw/elsewhere-$part.tsv"
    parts="$parts elsewhere-$part"
done
tables=$(for part in $parts; do echo "$raw/$part.tsv"; done)
awk -f "$here/tables.awk" -f "$here/ways.awk" -f "$here/report.awk" $tables >"$raw/results.md"
awk -v out="$raw" -f "$here/tables.awk" -f "$here/pictures.awk" $tables
gnuplot -e "data='$raw'; out='$results'" "$here/pictures.gp"
mv "$raw/results.md" "$results/results.md"
echo "$results/results.md, in $(($(date +%s) - begin)) s; targets:"
sed -n '/^## Targets/,/^## Throughput/ s/^| \(.*\) |$/\1/p' "$results/results.md"
