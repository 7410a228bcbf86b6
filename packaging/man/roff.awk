# roff.awk: plain text -> the requests of a man page. The texts are those that the
# command and the headers print or hold anyway, so nothing is said twice.

# A line as it is: what roff would take for its own is marked.
function as_it_is(line) {
    gsub(/\\/, "\\e", line)
    gsub(/-/, "\\-", line)
    return line ~ /^[.']/ ? "\\&" line : line
}

function heading(title) {
    print ".SH " as_it_is(toupper(title))
    verbatim = 0
}

# Lines whose breaks and blanks stay.
function begin_verbatim() {
    if (!verbatim) print ".PP\n.nf"
    verbatim = 1
}
function end_verbatim() {
    if (verbatim) print ".fi\n.PP"
    verbatim = 0
}

function see_also(pages) {
    heading("See also")
    print pages
}

function title(name, section, summary) {
    print ".TH " as_it_is(name) " " section " \"\" \"hibloom " version "\" \"hibloom\"\n.nh\n.ad l"
    heading("Name")
    print as_it_is(name) " \\- " as_it_is(summary)
}

function indent_of(line) {
    match(line, /^ */)
    return RLENGTH
}
