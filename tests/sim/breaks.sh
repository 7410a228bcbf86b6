#!/bin/bash
# breaks.sh: does the simulator find what is broken? Each patch in tests/sim/breaks breaks one rule of the protocol.
#
#   breaks.sh BUILD/tests/sim CC CPPFLAGS CFLAGS LINK
#
# BREAKS names some of the patches; without it, each is tried. BREAK_SECONDS is the most that one may take.
# BREAK_SEED is the first world: with another one than before, it shows what was tuned to a few seeds only.
# A seed that fails without the patch, too, does not count. A break that no world finds in time may be found by a kept
# case: the line says so, and the last line counts these.

sim=$1 cc=$2 cppflags=$3 cflags=$4 link=$5
build=${sim%/tests/sim} patches=tests/sim/breaks most=${BREAK_SECONDS:-300} step=2
out=$build/breaks
objects= # of the sources that there are: those of removed ones may still lie in the build
for source in lib/*/*.c lib/*/*/*.c tests/sim/*.c; do
    case $source in
    */fidelity.c | */serve.c) ;;
    *) objects="$objects $build/${source%.c}.o" ;;
    esac
done

# Builds the simulator with one patch. Lines of context must agree, and may have moved.
make_broken() {
    local name=$1 dir=$out/$1 all=$objects file object
    rm -rf "$dir" && mkdir -p "$dir" && cp -r lib "$dir" || return 1
    patch -s -p1 --fuzz=0 -d "$dir" < $patches/"$name".patch >"$dir"/log 2>&1 || return 1
    for file in $(sed -n 's|^+++ b/\(lib/[^[:space:]]*\)\.c.*|\1|p' $patches/"$name".patch); do
        object=$dir/${file//\//-}.o
        $cc -I"$dir"/lib $cppflags $cflags -w -c "$dir/$file.c" -o "$object" 2>>"$dir"/log || return 1
        all=${all/"$build/$file.o"/$object}
    done
    $cc -o "$dir"/sim $all $link 2>>"$dir"/log
}

# The seconds of CPU of all processes that have ended by now.
note_cpu() {
    times > "$out"/times.$$
    cpu=$(tail -1 "$out"/times.$$ | tr 'ms' '  ' | awk '{ printf "%.1f", 60 * $1 + $2 + 60 * $3 + $4 }')
}

# Runs worlds until one of them fails. Leaves in `found` what the oracle says, and in `took` and `used` the seconds.
search() {
    local dir=$out/$1 begin=$EPOCHREALTIME seed=${BREAK_SEED:-1} line
    note_cpu
    used=$cpu worlds=0 found= took=0
    while [ -z "$found" ] && [ "${took%.*}" -lt "$most" ]; do
        SIM_GO_ON=1 "$dir"/sim $step $seed >"$dir"/run 2>&1
        worlds=$((worlds + $(sed -n 's/^worlds \([0-9]*\),.*/\1/p' "$dir"/run)))
        while read -r line && [ -z "$found" ]; do
            line=${line#seed }
            "$sim"/sim -t "${line%%:*}" 2>&1 | tail -1 | grep -q ': ok$' && found="seed $line"
        done < <(grep '^seed' "$dir"/run)
        seed=$((seed + 1000000))
        took=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $begin }")
    done
    note_cpu
    used=$(awk "BEGIN { printf \"%.1f\", $cpu - $used }")
}

# A kept case that fails with the patch, or ends the process. The case is known to pass without.
find_case() {
    "$out/$1"/sim tests/sim/cases/* >"$out/$1"/run 2>&1
    [ $? -lt 128 ] || echo "a case that ends the process" >>"$out/$1"/run
    grep -a -v -e ': ok$' -e 'no longer fires$' "$out/$1"/run | head -1
}

mkdir -p "$out"
missing=0 by_case=0
for name in ${BREAKS:-$(cd $patches && ls -- *.patch | sed 's/\.patch$//')}; do
    if ! make_broken "$name"; then
        echo "$name  DOES NOT APPLY, or does not compile: see $out/$name/log"
        missing=$((missing + 1))
        continue
    fi
    search "$name"
    if [ -n "$found" ]; then
        echo "$name  found after $took s ($used s of CPU), $worlds worlds: $found"
        seconds+=("$took")
    elif found=$(find_case "$name") && [ -n "$found" ]; then
        echo "$name  found by a kept case, not in $took s ($used s of CPU), $worlds worlds: $found"
        by_case=$((by_case + 1))
    else
        echo "$name  NOT FOUND in $took s ($used s of CPU), $worlds worlds"
        missing=$((missing + 1))
    fi
done
printf '%s\n' "${seconds[@]}" | sort -n | awk -v missing=$missing -v by_case=$by_case 'NF { s[++n] = $1 }
    END { printf "median %s s, longest %s s; %d found, %d by a kept case, %d not found\n",
          s[int((n + 1) / 2)], s[n], n, by_case, missing }'
[ $missing -eq 0 ]
