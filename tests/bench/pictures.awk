# Writes what pictures.gp draws, of what tables.awk has read, into the directory
# `out`: blocks with two empty lines between them, which gnuplot calls indexes.

function line(file, label, a, b)
{
    if (label !~ /^[0-9.]+$/)
        label = "\"" label "\""
    printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", label, median(a), least(a), most(a), median(b), least(b), most(b) >file
}

function block(file, title)
{
    if (blocks[file]++)
        printf "\n\n" >file
    printf "\"%s\"\n", title >file
}

# Both operations of a part, the other one's key being made of the add's.
function both(file, part, key, label,    other)
{
    other = key
    sub(/\|add/, "|look up", other)
    line(file, label, series(part, key, "items_per_s"), series(part, other, "items_per_s"))
}

function is_add(part, key)
{
    return name[part, key, "operation"] == "add"
}

function title_of(method)
{
    if (method == "memory")
        return "in memory"
    sub(/^k=4/, "k = 4,", method)
    sub(/^blocked/, "blocked,", method)
    sub(/setbit/, "SETBIT", method)
    sub(/bitfield/, "BITFIELD", method)
    return method
}

# The methods at batches of 1,000, or one by one where they know no batches.
function draw_throughput(    i, key, method, batch, last)
{
    for (i = 1; i <= count["throughput"]; i++) {
        key = keys["throughput", i]
        method = name["throughput", key, "method"]
        batch = name["throughput", key, "batch"]
        if (is_add("throughput", key) && (batch == 1000 || !(("throughput", method "|add|1000") in known)))
            both(out "/throughput.dat", "throughput", key, title_of(method))
    }
}

function draw_batches(    i, key, method, batch)
{
    for (i = 1; i <= count["throughput"]; i++) {
        key = keys["throughput", i]
        method = name["throughput", key, "method"]
        if (key !~ /\|add\|1$/ || method == "memory" || !(("throughput", method "|add|10") in known))
            continue
        block(out "/batches.dat", title_of(method))
        for (batch = 1; batch <= 10000; batch *= 10)
            both(out "/batches.dat", "throughput", method "|add|" batch, batch)
    }
}

function draw_growth(    i, key, last)
{
    for (i = 1; i <= count["growth"]; i++) {
        key = keys["growth", i]
        if (!is_add("growth", key))
            continue
        if (name["growth", key, "series"] != last)
            block(out "/growth.dat", last = name["growth", key, "series"])
        both(out "/growth.dat", "growth", key, name["growth", key, "megabytes"])
    }
}

function point(file, x, label, numbers)
{
    printf "%s\t\"%s\"\t%s\t%s\t%s\n", x, label, median(numbers), least(numbers), most(numbers) >file
}

# The shares of repeats at equal distances: most of what happens, happens above 90 %.
function draw_near(    i, w, key, ways)
{
    split("without|near cache|near cache, a second|memory", ways, "|")
    for (w = 1; w <= 4; w++) {
        block(out "/near.dat", ways[w])
        for (i = 1; i <= count["near"]; i++) {
            key = keys["near", i]
            if (!(name["near", key, "repeats"] in near_at))
                near_at[name["near", key, "repeats"]] = ++near_shares
            if (name["near", key, "way"] == ways[w])
                point(out "/near.dat", near_at[name["near", key, "repeats"]], name["near", key, "repeats"] " %", \
                    series("near", key, "items_per_s"))
        }
    }
}

function draw_calls(    i, o, key, operations)
{
    split("look up|add|add, is_new, fresh|add, is_new, all in", operations, "|")
    for (o = 1; o <= 4; o++) {
        block(out "/calls.dat", operations[o])
        for (i = 1; i <= count["calls"]; i++) {
            key = keys["calls", i]
            if (name["calls", key, "operation"] == operations[o])
                line(out "/calls.dat", name["calls", key, "items"], series("calls", key, "items_per_s"), \
                    series("calls", key, "commands_items_per_s"))
        }
    }
}

END {
    if (failed)
        exit 1
    draw_throughput()
    draw_batches()
    draw_growth()
    draw_near()
    draw_calls()
}
