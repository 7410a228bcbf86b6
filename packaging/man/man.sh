#!/bin/sh
# Makes a manual page of what the command and the headers say: each sentence stands
# once, there.
# Usage: man.sh PROGRAM VERSION PAGE      (hibloom.1, hibloom.3, hibloom_async.3, hibloom-spec.5)
set -eu

program=$1 version=$2 page=$3
here=$(dirname "$0")
headers=$here/../../include/hibloom

# to_roff FILE.awk VARIABLE=VALUE... [INPUT]
to_roff() {
    script=$1
    shift
    awk -f "$here/roff.awk" -f "$here/$script" version="$version" "$@"
}

case ${page##*/} in
hibloom.1)
    {
        "$program" help
        "$program" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' | while read -r command; do
            "$program" help "$command"
        done
    } | to_roff command.awk
    ;;
hibloom.3)
    to_roff header.awk page=hibloom file=hibloom.h \
        also='.BR hibloom (1),\n.BR hibloom_async (3),\n.BR hibloom\\-spec (5)' "$headers/hibloom.h"
    ;;
hibloom_async.3)
    to_roff header.awk page=hibloom_async file=async.h also='.BR hibloom (3)' "$headers/async.h"
    ;;
hibloom-spec.5)
    "$program" help spec | to_roff spec.awk
    ;;
*)
    echo "$0: no such page: $page" >&2
    exit 1
    ;;
esac
