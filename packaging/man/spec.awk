# spec.awk: hibloom-spec(5), from what the command says of specs. With roff.awk; see man.sh.

BEGIN {
    title("hibloom-spec", 5, "what a filter is, as a text")
    heading("Description")
}
/^ *$/ { end_verbatim(); print ".PP"; next }
/^  / { begin_verbatim(); print as_it_is($0); next } # a word and its meaning
{ end_verbatim(); print as_it_is($0) }
END {
    end_verbatim()
    see_also(".BR hibloom (1),\n.BR hibloom (3)")
}
