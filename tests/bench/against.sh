#!/bin/sh
# Builds the library of another commit, and lets it and the one built here take turns (kinds.c).
# Usage: against.sh COMMIT BUILD; the commit's files go to BUILD/against
set -eu

commit=$(git rev-parse --short "${1:?BASE=COMMIT is missing}^{commit}") build=$2
here=$(dirname "$0") base=$build/against/$commit

mkdir -p "$base"
git archive "$commit" | tar -x -C "$base"
make -s -C "$base" -j"$(nproc)" BUILD=build build/libhibloom.so
BENCH_LIBRARIES="$base/build/libhibloom.so $build/libhibloom.so" "$build/tests/bench/bench" kinds >"$build/against/kinds.tsv"
awk -f "$here/tables.awk" -f "$here/against.awk" "$build/against/kinds.tsv"
