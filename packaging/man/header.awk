# header.awk: hibloom(3) and hibloom_async(3), from the comments of a header: its first
# comment describes all of it, "/* ---- Title" begins a section, and what stands above
# a declaration explains it. With roff.awk; see man.sh.

# Comments are filled, but for what is indented in them: tables.
function comment_line(line) {
    if (line ~ /^ *$/) {
        end_verbatim()
        print ".PP"
    } else if (line ~ /^ - /) { # an item of a list, which goes on with three blanks
        end_verbatim()
        print ".IP \\(bu 2\n" as_it_is(substr(line, 4))
        in_item = 1
    } else if (in_item && line ~ /^   [^ ]/) {
        print as_it_is(substr(line, 4))
    } else if (line ~ /^  /) {
        begin_verbatim()
        print as_it_is(line)
    } else {
        if (in_item) print ".PP"
        in_item = 0
        end_verbatim()
        print as_it_is(line)
    }
}

function print_comment(    i) {
    in_item = 0
    for (i = 1; i <= n_comment; i++) comment_line(comment[i])
    end_verbatim()
    n_comment = 0
}

function print_code(    i) {
    print ".PP\n.nf"
    for (i = 1; i <= n_code; i++) print "\\fB" as_it_is(code[i]) "\\fR"
    print ".fi\n.PP"
    n_code = 0
}

# A comment and the code below it are done: what is declared first, as in a manual.
function flush() {
    if (n_code && code[n_code] ~ /^ *$/) n_code--
    if (n_code) print_code()
    print_comment()
}

function code_line(line) {
    if (match(line, /^HIBLOOM_(API|CHECKED) /)) {
        line = substr(line, RLENGTH + 1)
        moved = RLENGTH
    } else if (moved && !depth && line ~ /^ /) { # the rest of that declaration moves along
        line = substr(line, moved + 1)
    } else {
        moved = 0
    }
    code[++n_code] = line
}

# ---- The header, line by line ----

function take_comment(line) {
    ends = line ~ /\*\//
    sub(/ *\*\/.*/, "", line)
    if (line !~ /^SPDX/) comment[++n_comment] = line
    in_comment = !ends
}

function begin_comment(line) {
    n_comment = 0
    take_comment(substr(line, 4))
}

function section(line) {
    sub(/^\/\* ---- /, "", line)
    ends = line ~ /\*\//
    sub(/ *-*-* *(\*\/)?$/, "", line)
    heading(line)
    in_comment = !ends
    n_comment = 0
}

# The first comment: a title line, then the text.
function describe() {
    summary = comment[1]
    sub(/^[a-z]+:? /, "", summary)
    sub(/\.$/, "", summary)
    title(page, 3, summary)
    heading("Synopsis")
    print ".nf\n\\fB#include <hibloom/" file ">\\fR\n\n\\fBcc FILE.c $(pkg\\-config \\-\\-cflags \\-\\-libs hibloom)\\fR\n.fi"
    heading("Description")
    comment[1] = ""
    print_comment()
    described = 1
}

in_comment {
    line = $0
    sub(/^ \*\/?/, "", line)
    sub(/^ /, "", line)
    if ($0 ~ /^ \*\/$/) in_comment = 0
    else take_comment(line)
    if (!in_comment && !described) describe()
    next
}
!described { if (/^\/\* /) begin_comment($0); next }
/^\/\* ---- / { flush(); section($0); next }
/^#(ifndef|define) HIBLOOM_[A-Z]*_H$/ || /^#include/ { next }
/^#if/ { skipping++ }
/^#endif/ { skipping-- }
/^#(else|endif)/ { next }
skipping > 0 { next } # what compilers, not readers, need
/^static inline/ { passing = 1; next }
passing { if (/^}/) passing = 0; next }
/^\/\* / && !depth { flush(); begin_comment($0); next }
/^$/ && !depth { flush(); next }
{
    code_line($0)
    depth += gsub(/{/, "{") - gsub(/}/, "}")
}

END {
    flush()
    see_also(also)
}
