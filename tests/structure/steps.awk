#!/usr/bin/awk -f
# Draws the steps of all tasks as a graph, for dot. An edge is a step that follows, with what takes the replies between the
# two; or, dashed, one that is gone into at once. Functions that are no steps are not drawn: what they name, their callers do.
# Fails where a step is never reached from a function that begins a task, and where what talk_then names is no function.
# Usage: steps.awk FILES, formatted by clang-format

function fault(words) {
    print "steps.awk: " words > "/dev/stderr"
    faults++
}

# Without comments and strings.
function clean(line,    begin, end) {
    gsub(/\\./, "", line)
    gsub(/"[^"]*"|'[^']*'/, "0", line)
    if (comment) {
        if (!(end = index(line, "*/")))
            return ""
        comment = 0
        line = substr(line, end + 2)
    }
    while (begin = index(line, "/*")) {
        end = index(substr(line, begin), "*/")
        if (!end) {
            comment = 1
            return substr(line, 1, begin - 1)
        }
        line = substr(line, 1, begin - 1) " " substr(line, begin + end + 1)
    }
    return line
}

# What begins in the first column is a head, up to its brace or semicolon: a function's, or a variable's with what it names.
FNR == 1 { head = body = ""; comment = 0 }
{ line = clean($0) }
line ~ /^#/ || (line ~ /^(struct|enum|union|typedef) [^=(]*[{;]$/ && head == "") { next }
line ~ /^{/ && head ~ /\)$/ { inside = 1; next }
line ~ /^}/ {
    if (inside)
        define(head, body)
    head = body = ""
    inside = 0
    next
}
inside { body = body " " line; next }
line ~ /^[A-Za-z_]/ || head != "" {
    sub(/^ +/, "", line)
    head = head (head == "" ? "" : " ") line
    if (line ~ /;$/) {
        if (head ~ / = /)
            define(head, head)
        head = ""
    }
}

function define(head, body,    name, id) {
    name = head
    gsub(/__attribute__\(\([a-z]+(\([^)]*\))?\)\)/, "", name)
    if (name ~ / = /) {
        sub(/(\[[^]]*\])* = .*/, "", name)
        sub(/.*[ *]/, "", name)
    } else {
        match(name, /[A-Za-z_0-9]+\(/)
        name = substr(name, RSTART, RLENGTH - 1)
    }
    id = FILENAME ":" name
    ids[++count] = id
    names[id] = name
    heads[id] = head
    bodies[id] = body
    files[id] = FILENAME
    if (head !~ /(^| )static /)
        everywhere[name] = id
    if (head ~ /void [a-z_]+\(struct talk \*[a-z]*, struct outbox \*[a-z]*\)$/)
        is_step[id] = 1
    else if (match(head, /void [a-z_]+\(struct [a-z_]+ \*[a-z]*\)$/) && head !~ /\(struct (task|looped|redis_store) /)
        task_of[id] = substr(head, index(head, "("), RLENGTH) # if it is named, and then of each that takes the same
}

function find(file, name) {
    return ((file ":" name) in names) ? file ":" name : (name in everywhere) ? everywhere[name] : ""
}

# Notes the functions that a body names, but for those whose name is a variable's there; and what talk_then names.
function read_body(id,    text, before, word, last, gap, called, to, at, i, parts) {
    split("", own)
    for (at = 0; at < 2; at++) { # variables, then the rest
        text = at == 0 ? heads[id] " ; " bodies[id] : bodies[id]
        last = ""
        while (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
            gap = substr(text, 1, RSTART - 1)
            word = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            called = text ~ /^\(/
            if (at == 0 && gap ~ /^ +\**$/ && last !~ /^(|return|else|case|do)$/ && !called && gap !~ /\* /)
                own[word] = 1
            else if (at == 1 && gap !~ /(->|\.)$/ && !(word in own) && (to = find(files[id], word)) != "") {
                refers[id, to] = called ? "call" : "name"
                out[id] = out[id] " " to
                if (!called && (to in task_of)) {
                    is_step[to] = 1
                    is_task[task_of[to]] = 1
                }
            }
            last = word
        }
    }
    text = bodies[id]
    while (match(text, /talk_(then|stream)\([^;]*\);/)) {
        before = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        sub(/;.*/, "", before)
        sub(/\)$/, "", before)
        i = split(before, parts, /, */)
        while (match(parts[i], /[A-Za-z_][A-Za-z_0-9]*/)) { # one, or two behind a question
            word = substr(parts[i], RSTART, RLENGTH)
            gap = substr(parts[i], 1, RSTART - 1)
            parts[i] = substr(parts[i], RSTART + RLENGTH)
            if (gap ~ /(->|\.)$/ || word == "NULL" || (word in own) || parts[i] ~ /^\(/)
                continue
            to = find(files[id], word)
            if (to == "" || !(to in is_step))
                fault(files[id] ": " names[id] " names " word ", which is no step")
            else
                label[id, to] = parts[i - 1]
        }
        word = parts[i - 1]
        if (word != "NULL" && !(word in own) && find(files[id], word) == "")
            fault(files[id] ": " names[id] " names " word ", which is no function")
    }
}

# A function that begins a task, if it leads to a step.
function begins(id) {
    return heads[id] ~ /, const struct whole_args \*args\)$/ || names[id] ~ /_begin(_|$)/ && heads[id] !~ /(^| )static / && names[id] !~ /^(talk|outbox|link|command)_begin/
}

function reach(id,    to, i, n) {
    if (id in reached)
        return
    reached[id] = 1
    n = split(out[id], to, " ")
    for (i = 1; i <= n; i++)
        reach(to[i])
}

function short(id) {
    sub(/^lib\//, "", id)
    return id
}

function is_drawn(id) {
    return (id in is_step) || (id in begun) || ((id in task_of) && (task_of[id] in is_task))
}

# The steps that a step leads to, also by functions that are none.
function draw(from, id,    to, i, n, called, look) {
    n = split(out[id], to, " ")
    for (i = 1; i <= n; i++) {
        if ((from, to[i]) in drawn)
            continue
        drawn[from, to[i]] = 1
        called = refers[id, to[i]] == "call"
        look = ((id, to[i]) in label) && label[id, to[i]] != "NULL" ? " [label=\"" label[id, to[i]] "\"]" \
               : called && !(to[i] in begun) ? " [style=dashed]" : ""
        if (is_drawn(to[i]))
            print "  \"" short(from) "\" -> \"" short(to[i]) "\"" look ";"
        else if (called)
            draw(from, to[i])
    }
}

END {
    for (i = 1; i <= count; i++)
        read_body(ids[i])
    for (i = 1; i <= count; i++)
        if (begins(ids[i])) {
            begun[ids[i]] = 1
            reach(ids[i])
        }
    print "digraph steps {"
    for (i = 1; i <= count; i++)
        if (is_drawn(ids[i]))
            draw(ids[i], ids[i])
    print "}"
    for (i = 1; i <= count; i++)
        if (ids[i] in is_step) {
            steps++
            if (!(ids[i] in reached))
                fault(files[ids[i]] ": no task reaches " names[ids[i]])
        }
    if (steps == 0)
        fault("there are no steps")
    exit faults > 0
}
