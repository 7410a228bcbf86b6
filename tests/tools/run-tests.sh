#!/bin/sh
# Runs test programs one after the other and adds up what they say, going on
# after a failure, so that one line at the end tells how the whole suite went.
# A program that is not cmocka's counts as one test, and so does one that ends
# badly without having named a failed test: a crash, a leak, a time-out.
# Usage: run-tests.sh COMMAND...
#   each argument is one command with its arguments, separated by blanks
# Environment: TEST_TIMEOUT, seconds for each command (300);
#   TEST_UNDER, a command such as valgrind to run them under
set -u

timeout=${TEST_TIMEOUT:-300}
passed=0 failed=0 skipped=0
failures=

# What the tests put into temporary directories goes here, to be removed even
# if they could not do it.
TMPDIR=$(mktemp -d)
export TMPDIR
log=$TMPDIR/log
running=
cleanup() {
    trap '' INT TERM HUP
    # timeout(1) hands the signal on to all that the test started.
    [ -z "$running" ] || { kill "$running"; wait "$running"; }
    rm -rf "$TMPDIR"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# The sum of what cmocka says, once for each group of tests: "[  PASSED  ] 7 test(s)",
# with the name of the group before the number or not, as its version is.
said() {
    sed -n "s/^\[ *$1 *\] \(.*: \)\{0,1\}\([0-9][0-9]*\) test(s).*/\2/p" "$log" | awk '{ sum += $1 } END { print sum + 0 }'
}

for test in "$@"; do
    echo "== $test"
    # To a file, not a pipe: a process that a broken test left behind would
    # hold a pipe open for ever.
    status=0 begin=$(date +%s)
    timeout -k 10 "$timeout" ${TEST_UNDER-} $test >"$log" 2>&1 </dev/null &
    running=$!
    wait "$running" || status=$?
    running=
    cat "$log"
    echo "-- $(($(date +%s) - begin)) s"

    p=$(said PASSED) f=$(said FAILED) s=$(said SKIPPED)
    if [ $status != 0 ] && [ "$f" = 0 ]; then
        f=1
    elif [ $status = 0 ] && [ $((p + f + s)) = 0 ]; then
        p=1
    fi
    case $status in
    0) ;;
    124 | 137) failures="$failures
FAILED: $test (no end within $timeout s)" ;;
    *) failures="$failures
FAILED: $test (exit status $status)" ;;
    esac
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done

[ -z "$failures" ] || echo "$failures"
[ $skipped = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
