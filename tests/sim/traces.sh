#!/bin/bash
# traces.sh: a seed gives one world, or no failure could be told again. Its trace is the same, byte for byte: once more,
# behind other worlds in one process, and as another compiler makes the program.
#
#   traces.sh SIM OTHER_SIM [SEEDS]

sim=$1 other=$2 seeds=${3:-200} failed=0
sums=$(mktemp -d)
trap 'rm -rf "$sums"' EXIT

one_by_one() {
    for seed in $(seq "$seeds"); do "$1" -t "$seed"; done
}

# One line for each seed.
note() {
    awk '/^world seed=/ { close("md5sum") } { print | "md5sum" }' | nl >"$sums/$1"
}

compare() {
    cmp -s "$sums"/first "$sums/$1" && return
    echo "Traces differ $2: of seeds $(diff "$sums"/first "$sums/$1" | awk '/^</ { print $2 }' | head -5 | paste -sd' ')"
    failed=1
}

one_by_one "$sim" | note first
one_by_one "$sim" | note again
one_by_one "$other" | note other
"$sim" -t $(seq "$seeds") | note together
compare again 'from one run to the next'
compare other 'from one compiler to the other'
compare together 'where one process runs all worlds'
[ "$(wc -l <"$sums"/first)" = "$seeds" ] || failed=1
[ $failed = 0 ] && echo "$seeds traces are the same"
exit $failed
