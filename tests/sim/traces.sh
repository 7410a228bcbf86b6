#!/bin/bash
# traces.sh: a seed gives one world, or no failure could be told again. Its trace is the same, byte for byte: once more,
# behind other worlds of one process, and as another compiler makes the program.
#
#   traces.sh SIM OTHER_SIM [SEEDS]

sim=$1 other=$2 seeds=${3:-200} failed=0
sums=$(mktemp -d)
trap 'rm -rf "$sums"' EXIT

# One line for each seed.
note() {
    awk '/^world seed=/ { close("md5sum") } { print | "md5sum" }' | nl >"$sums/$1"
}

compare() {
    cmp -s "$sums"/first "$sums/$1" && return
    echo "Traces differ $2: of seeds $(diff "$sums"/first "$sums/$1" | awk '/^</ { print $2 }' | head -5 | paste -sd' ')"
    failed=1
}

for seed in $(seq "$seeds"); do "$sim" -t "$seed"; done | note first
"$sim" -t $(seq "$seeds") | note together
"$other" -t $(seq "$seeds") | note other
compare together 'where one process runs all worlds'
compare other 'from one compiler to the other'
[ "$(wc -l <"$sums"/first)" = "$seeds" ] || failed=1
[ $failed = 0 ] && echo "$seeds traces are the same"
exit $failed
