# command.awk: hibloom(1), from what the command says of itself: `hibloom help`, and
# then `hibloom help COMMAND` for each. With roff.awk; see man.sh.

function text(line) {
    print as_it_is(line)
}

# An option, in bold, and what stands behind it; the lines that go on from there begin in that column.
function option(line,    term, rest) {
    column = indent_of(line)
    term = substr(line, column + 1)
    rest = ""
    if (match(term, /   */)) {
        rest = substr(term, RSTART + RLENGTH)
        column += RSTART + RLENGTH - 1
        term = substr(term, 1, RSTART - 1)
    } else {
        column = 0 # the next line's
    }
    print ".TP\n.B " as_it_is(term)
    if (rest != "") text(rest)
    in_option = 1
}

# What is indented further than its column is a list, a line each.
function goes_on(line,    indent) {
    indent = indent_of(line)
    if (!column) column = indent
    sub(/^ */, "", line)
    if (indent > column || broken) print ".br"
    broken = indent > column
    text(line)
}

function paragraph() {
    end_verbatim()
    if (in_option) print ".PP"
    in_option = broken = 0
}

NR == 1 { # usage: hibloom [-u URI] COMMAND ...
    synopsis = substr($0, 8)
    next
}
NR <= 4 { # the summary, between two empty lines
    if ($0 == "" && summary == "") next
    if (summary == "") {
        summary = $0
        sub(/\.$/, "", summary)
        next
    }
    title("hibloom", 1, summary)
    heading("Synopsis")
    print ".B " as_it_is(synopsis)
    heading("Options of all commands")
    next
}
/^usage: hibloom / {
    if (!commands++) heading("Commands")
    usage = substr($0, 8)
    name = usage
    sub(/^hibloom \[-u URI\] /, "", name)
    sub(/ .*/, "", name)
    paragraph()
    print ".SS " as_it_is(name) "\n.B " as_it_is(usage) "\n.PP"
    next
}
/^  [a-z]/ && !commands { next } # the list of commands: they come below
/^ +-/ && indent_of($0) <= 6 { paragraph(); option($0); next }
# What stands further left than the words of its option is for a shell, line by line.
/^  / && (verbatim || (in_option && column && indent_of($0) < column)) { begin_verbatim(); text(substr($0, 3)); next }
/^  / && in_option { goes_on($0); next }
/^$/ { paragraph(); print ".PP"; next }
/^Example: / { paragraph(); print ".PP\nExample:\n.B " as_it_is(substr($0, 10)); next }
/^Exit status: / { heading("Exit status"); $0 = substr($0, 14) }
{ paragraph(); text($0) }

END { see_also(".BR hibloom (3),\n.BR hibloom\\-spec (5),\n.BR redis\\-server (1)") }
