#!/bin/bash
# Runs test programs two at a time and prints a line for each as it ends; what a
# program says is printed in full only if it fails. Those that mostly wait, for
# time-outs and failovers, need hardly any processor: as many of them run beside
# the two, so that no core is idle while they wait. Goes on after a failure, and
# the last line, "N passed, N failed", tells how the whole suite went. A program
# that is not cmocka's counts as one test, and so does one that ends badly
# without having named a failed test: a crash, a leak, a time-out.
# Usage: run-tests.sh COMMAND... [--waiting COMMAND...]
#   each argument is one command with its arguments, separated by blanks;
#   behind --waiting are those that mostly wait, the longest first
# Environment: TEST_TIMEOUT, seconds for each command (300);
#   TEST_UNDER, a command such as valgrind to run them under;
#   TEST_JOBS, how many of either kind at a time (2)
set -u

timeout=${TEST_TIMEOUT:-300}
jobs=${TEST_JOBS:-2}
passed=0 failed=0 skipped=0
failures=()

# What the tests put into temporary directories goes here, to be removed even
# if they could not do it. The logs are beside them.
TMPDIR=$(mktemp -d)
export TMPDIR
declare -A running=() # by process: the number of its command
declare -a names=() begins=()
declare -a busy=() waiting=() # commands that are still to be run
declare -a kinds=()           # by the number of a command: busy or waiting
declare -A at_work=([busy]=0 [waiting]=0)

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

# Short: fault/kill of build/tests/fault/kill, tools/readme of with-redis.sh tests/tools/readme.sh ...
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

# The sum of what cmocka says, once for each group of tests: "[  PASSED  ] 7 test(s)",
# with the name of the group before the number or not, as its version is.
said() {
    sed -n "s/^\[ *$1 *\] \(.*: \)\{0,1\}\([0-9][0-9]*\) test(s).*/\2/p" "$2" | awk '{ sum += $1 } END { print sum + 0 }'
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
    p=$(said PASSED "$log") f=$(said FAILED "$log") s=$(said SKIPPED "$log")
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
    local pid status=0 kind
    wait -n -p pid "${!running[@]}" || status=$?
    kind=${kinds[running[$pid]]}
    at_work[$kind]=$((at_work[$kind] - 1))
    end "${running[$pid]}" "$status"
    unset "running[$pid]"
}

# fill KIND: starts as many of its commands as may run.
fill() {
    local -n queue=$1
    while [ ${#queue[@]} -gt 0 ] && [ "${at_work[$1]}" -lt "$jobs" ]; do
        start $((number += 1)) "${queue[0]}"
        kinds[number]=$1 at_work[$1]=$((at_work[$1] + 1))
        queue=("${queue[@]:1}")
    done
}

kind=busy
for command in "$@"; do
    case $command in
    --waiting) kind=waiting ;;
    *) [ $kind = busy ] && busy+=("$command") || waiting+=("$command") ;;
    esac
done
echo "$((${#busy[@]} + ${#waiting[@]})) test programs, $jobs at a time, and $jobs of the ${#waiting[@]} that mostly wait"
number=0
while fill waiting && fill busy && [ ${#running[@]} -gt 0 ]; do
    reap
done

[ ${#failures[@]} = 0 ] || printf '%s\n' '' "${failures[@]}"
[ $skipped = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
