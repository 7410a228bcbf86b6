#!/bin/bash
# The manual pages against their sources: each line that the command prints as its help,
# and each line of the headers' comments, is on a page, wherever the page breaks it; each
# function that the library exports has a name there; and groff has no warning.
# Usage: man-test.sh BUILD
set -eu

build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
complain() { echo "man-test: $*" >&2; failed=1; }

squeeze() { tr -s ' \n' '  '; }

for page in hibloom.1 hibloom.3 hibloom_async.3 hibloom-spec.5; do
    warnings=$(groff -man -ww -Tascii -P-cbou -rLL=200n "$build/man/$page" 2>&1 >"$dir/$page")
    [ -z "$warnings" ] || complain "$page: $warnings"
    cp "$dir/$page" "$dir/$page.lines"
    ! grep '^ *- ' "$dir/$page" >&2 || complain "$page: an item of a list that is none"
    squeeze <"$dir/$page" >"$dir/squeezed" && mv "$dir/squeezed" "$dir/$page"
done

# on PAGE: complains of each line of standard input that is not on it
on() {
    local words line text
    text=$(<"$dir/$1")
    while read -r -a words; do
        line="${words[*]}" # one blank between them
        case $text in *"$line"*) ;; *) complain "not in $1: $line" ;; esac
    done
}

"$build/hibloom" help | grep '^ \{2,\}-\|^ \{10,\}' >"$dir/help"
mapfile -t commands < <("$build/hibloom" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
[ ${#commands[@]} -ge 20 ] || complain "help lists only ${#commands[@]} commands"
for command in "${commands[@]}"; do
    "$build/hibloom" help "$command" | sed 's/^usage: //'
done >>"$dir/help"
on hibloom.1 <"$dir/help"

# What is for a shell keeps its lines.
"$build/hibloom" help import | sed -n 's/^  \([^ ]\)/\1/p' | grep -v '^-' >"$dir/recipe"
[ "$(wc -l <"$dir/recipe")" -ge 4 ] || complain "help import has no recipe"
while read -r line; do
    sed 's/^ *//' "$dir/hibloom.1.lines" | grep -qxF -e "$line" || complain "hibloom.1 has no such line: $line"
done <"$dir/recipe"

# comments FILE: the lines of its comments that begin in the first column, without what marks them
comments() {
    awk '/^\/\* ----/ { sub(/^\/\* -* */, ""); sub(/ *-*( \*\/)?$/, ""); print toupper($0); inside = !/\*\//; next }
         /^\/\* / || inside { inside = !/\*\//; sub(/^(\/\*| \*) ?/, ""); sub(/ *\*\/.*/, ""); sub(/^ - /, "")
                              if (!/SPDX/) print }' "$1"
}
comments include/hibloom/hibloom.h | sed '1s/.*: \(.*\)\./\1/' | on hibloom.3
comments include/hibloom/async.h | sed '1s/hibloom \(.*\)\./\1/' | on hibloom_async.3
"$build/hibloom" help spec >"$dir/spec"
[ "$(wc -l <"$dir/spec")" -ge 30 ] || complain "help spec has only $(wc -l <"$dir/spec") lines"
on hibloom-spec.5 <"$dir/spec"

for name in $(nm -D --defined-only "$build/libhibloom.so" | sed -n 's/.* \(hibloom_.*\)/\1/p'); do
    case $(cat "$dir/hibloom.3" "$dir/hibloom_async.3") in *[\ *]"$name("*) ;; *) complain "no page has $name" ;; esac
done
exit $failed
