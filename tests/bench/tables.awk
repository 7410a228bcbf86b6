# Reads the tables of all parts (bench.h) for report.awk and pictures.awk,
# which come behind it on awk's command line.
#
# What one column of one line has come to in all rounds is a series, a string
# of numbers between blanks: series("throughput", "setbit|add|1000", "items_per_s").
# A key is the columns before the round; of a part without rounds, the number
# of the line.

BEGIN { FS = "\t" }

FNR == 1 {
    part = FILENAME
    sub(/.*\//, "", part)
    sub(/\.tsv$/, "", part)
    round_at = 0
    for (i = 1; i <= NF; i++) {
        column[i] = $i
        if ($i == "round")
            round_at = i
    }
    next
}

{
    key = round_at ? $1 : FNR - 1
    for (i = 2; i < round_at; i++)
        key = key "|" $i
    if (!((part, key) in known)) {
        known[part, key] = 1
        keys[part, ++count[part]] = key
        for (i = 1; i < round_at; i++)
            name[part, key, column[i]] = $i
    }
    for (i = round_at + 1; i <= NF; i++)
        if (round_at)
            value[part, key, column[i]] = value[part, key, column[i]] " " $i
        else
            name[part, key, column[i]] = $i
}

function series(part, key, column)
{
    if (!((part, key, column) in value)) {
        print "report: nothing was measured of " part ", " key ", " column >"/dev/stderr"
        failed = 1
        exit 1
    }
    return value[part, key, column]
}

# Round by round.
function quotient(above, below,    a, b, n, i, result)
{
    n = split(above, a, " ")
    split(below, b, " ")
    for (i = 1; i <= n; i++)
        result = result " " a[i] / b[i]
    return result
}

# Puts them in order into out[1] ... out[n]; n.
function sorted(numbers, out,    n, i, j, x)
{
    n = split(numbers, out, " ")
    for (i = 2; i <= n; i++) {
        x = out[i] + 0
        for (j = i - 1; j > 0 && out[j] + 0 > x; j--)
            out[j + 1] = out[j]
        out[j + 1] = x
    }
    return n
}

function median(numbers,    s, n)
{
    n = sorted(numbers, s)
    return (s[int((n + 1) / 2)] + s[int(n / 2) + 1]) / 2
}

function least(numbers,    s)
{
    sorted(numbers, s)
    return s[1] + 0
}

function most(numbers,    s, n)
{
    n = sorted(numbers, s)
    return s[n] + 0
}
