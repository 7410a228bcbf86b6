# The table of `make bench-against`: what this build does in each row (kinds.c) as a share of what the other does.
# tables.awk comes before it.

function share(key, column,    base)
{
    base = key
    sub(/1$/, "0", base)
    return median(quotient(series("kinds", key, column), series("kinds", base, column)))
}

END {
    if (failed)
        exit 1
    print "| filter | call | items | items/s, of the base's | client CPU an item | server CPU | items/s | rounds |"
    print "|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= count["kinds"]; i++) {
        key = keys["kinds", i]
        if (name["kinds", key, "library"] == 0)
            continue
        row = name["kinds", key, "filter"] ": " name["kinds", key, "operation"] ", " name["kinds", key, "batch"]
        rate = share(key, "items_per_s")
        cpu = share(key, "client_us")
        printf "| %s | %s | %d | %.3f | %.3f | %.3f | %.0f | %d |\n", name["kinds", key, "filter"], \
            name["kinds", key, "operation"], name["kinds", key, "batch"], rate, cpu, share(key, "server_us"), \
            median(series("kinds", key, "items_per_s")), split(series("kinds", key, "items_per_s"), all, " ")
        if (row ~ /^plain/ && rate < 0.97)
            slower = slower "; " row
        if (row ~ /^plain/ && cpu > 1.03)
            dearer = dearer "; " row
    }
    print "Plain rows that take more than 1.03 of the base's CPU: " (dearer == "" ? "none" : substr(dearer, 3))
    print "Plain rows below 0.97 of the base's items a second: " (slower == "" ? "none" : substr(slower, 3))
}
