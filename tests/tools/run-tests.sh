#!/bin/bash
# Runs test programs six at a time, since on two cores half of them wait for their
# servers, and prints a line for each as it ends. A program's output is printed in
# full only if it fails. The script goes on after a failure. Its last line,
# "N passed, N failed", tells how the whole suite went. A program that is not
# cmocka's counts as one test. So does one that ends badly without a failed
# test of its own: a crash, a leak, a time-out.
# Usage: run-tests.sh COMMAND...
#   each argument is one command with its arguments, separated by blanks
# Environment: TEST_TIMEOUT, seconds for each command (300);
#   TEST_UNDER, a command such as valgrind to run them under;
#   TEST_JOBS, how many at a time (6)
set -u

timeout=${TEST_TIMEOUT:-300}
jobs=${TEST_JOBS:-6}
passed=0 failed=0 skipped=0
failures=()

# What the tests put into temporary directories goes here, to be removed even
# if they could not do it. The logs are beside them.
TMPDIR=$(mktemp -d)
export TMPDIR
declare -A running=() # by process: the number of its command
declare -a names=() begins=()

cleanup() {
    trap '' INT TERM HUP
    local pid
    for pid in "${!running[@]}"; do # timeout(1) hands the signal on to all that the test started
        kill "$pid" 2>/dev/null
        wait "$pid"
        echo "STOPPED: ${names[${running[$pid]}]}; it had said:"
        cat "$TMPDIR/log.${running[$pid]}"
    done
    rm -rf "$TMPDIR"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Short: fault/acl of build/tests/fault/acl, tools/docs of with-redis.sh tests/tools/docs.py ...
name_of() {
    local word
    for word in $1; do
        case $word in
        */with-redis.sh) ;;
        *tests/*) word=${word##*tests/} && word=${word%.sh} && echo "${word%.py}" && return ;;
        esac
    done
    echo "$1"
}

# What cmocka says was passed, failed and skipped, once for each group of tests: "[  PASSED  ] 7 test(s)",
# with the name of the group before the number or not, as its version is.
said() {
    awk '/^\[ *(PASSED|FAILED|SKIPPED) *\] .*[0-9]+ test\(s\)/ {
        word = $0; gsub(/^\[ *| *\].*/, "", word)
        sub(/ test\(s\).*/, ""); n[word] += $NF
    }
    END { print n["PASSED"] + 0, n["FAILED"] + 0, n["SKIPPED"] + 0 }' "$1"
}

start() {
    names[$1]=$(name_of "$2") begins[$1]=$SECONDS
    # To a file, not a pipe: a process that a broken test left behind would
    # hold a pipe open for ever.
    timeout -k 10 "$timeout" ${TEST_UNDER-} $2 >"$TMPDIR/log.$1" 2>&1 </dev/null &
    running[$!]=$1
}

# end NUMBER STATUS: its line, and all it said if it failed
end() {
    local log=$TMPDIR/log.$1 name=${names[$1]} status=$2 p f s text why=''
    read -r p f s < <(said "$log")
    if [ "$status" != 0 ]; then
        why="exit status $status"
        [ "$f" != 0 ] || f=1
        case $status in
        124 | 137) why="no end within $timeout s" ;;
        esac
    elif [ $((p + f + s)) = 0 ]; then
        p=1
    fi
    text="$p passed"
    [ "$f" = 0 ] || text="$text, $f failed"
    [ "$s" = 0 ] || text="$text, $s skipped"
    printf '%-6s %-24s %-32s %4d s\n' "$([ -z "$why" ] && echo ok || echo FAILED)" "$name" "$text" $((SECONDS - begins[$1]))
    if [ -n "$why" ]; then
        failures+=("FAILED: $name ($why)")
        sed 's/^/    /' "$log"
    elif [ "$s" != 0 ]; then
        sed -n 's/^\[ *SKIPPED *\] \([a-z].*\)/    skipped: \1/p' "$log" | sort -u
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    rm -f "$log"
}

# Waits for one of those that run to end.
reap() {
    local pid status=0
    wait -n -p pid "${!running[@]}" || status=$?
    end "${running[$pid]}" "$status"
    unset "running[$pid]"
}

echo "$# test programs, $jobs at a time"
number=0
for command in "$@"; do
    [ ${#running[@]} -lt "$jobs" ] || reap
    start $((number += 1)) "$command"
done
while [ ${#running[@]} -gt 0 ]; do
    reap
done

[ ${#failures[@]} = 0 ] || printf '%s\n' '' "${failures[@]}"
[ $skipped = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
