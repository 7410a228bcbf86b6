# The sections of results.md on what is sent at all: the near cache, calls of very many
# items, and the cost model that chooses. A part of report.awk, and in front of it.

function near(share, way)
{
    return series("near", share "|" way, "items_per_s")
}

function print_near_targets(    words, way, guard)
{
    words = "adds with is_new, near cache against without, "
    for (way = "near cache"; way != ""; way = way == "near cache" ? "near cache, a second" : "") {
        guard = way == "near cache" ? ", a guard a call" : ", a guard a second"
        target(words "90 % repeats" guard, 6, " x", quotient(near(90, way), near(90, "without")))
        target(words "99 % repeats" guard, 30, " x", quotient(near(99, way), near(99, "without")))
        target(words "no repeats" guard, 0.97, " x", quotient(near(0, way), near(0, "without")))
    }
    words = "adds with is_new, repeats only, near cache, "
    target(words "a guard a call", 40000000, " items/s", near(100, "near cache"))
    target(words "a guard a second", 40000000, " items/s", near(100, "near cache, a second"))
    target(words "a guard a second, against a filter in memory (40 M of 60 M)", 0.667, " x", \
        quotient(near(100, "near cache, a second"), near(100, "memory")))
}

function near_title(way)
{
    return way == "near cache" ? "near cache, a guard a call (`max_age_ms` = 0)" : \
        way == "near cache, a second" ? "near cache, a guard a second (`max_age_ms` = 1,000)" : \
        way == "memory" ? "a filter in memory, without Redis" : "without a near cache"
}

function print_near(    i, key, share)
{
    print "\n## What has been seen costs no command\n\n![items a second over the share of repeats](near.svg)\n"
    print "Adds with is_new in batches of 1,000, of which a share repeat what has been added; a handle with"
    print "`hibloom_near_cache` and one without on the same filter, the same items in the same round, taking turns. With a"
    print "guard a second a batch of repeats only waits for no answer; one with a new item asks a guard behind it. The"
    print "filter in memory is the ceiling of this machine: the target of 40 M items/s is for one where it does 60 M. The"
    print "time of a batch is the median of a trial's.\n"
    print "| repeats | way | items/s | against without |\n|---|---|---|---|"
    for (i = 1; i <= count["near"]; i++) {
        key = keys["near", i]
        share = name["near", key, "repeats"]
        printf "| %s %% | %s | %s | %s |\n", share, near_title(name["near", key, "way"]), \
            spread(series("near", key, "items_per_s")), \
            spread(quotient(series("near", key, "items_per_s"), near(share, "without")), " x")
    }
}

# ---- One call --------------------------------------------------------------------------

function calls(operation, items, column)
{
    return series("calls", operation "|" items, column)
}

function call_gain(operation, items)
{
    return quotient(calls(operation, items, "items_per_s"), calls(operation, items, "commands_items_per_s"))
}

function print_calls_targets(    i, key, n)
{
    target("one call of 100,000 look-ups, against batches of 1,000", 20, " x", call_gain("look up", 100000))
    target("one call of 100,000 adds, against batches of 1,000", 6, " x", call_gain("add", 100000))
    target("one call of 1,000,000 adds, against batches of 1,000", 20, " x", call_gain("add", 1000000))
    target("one call of 3,000 look-ups, against batches of 1,000", 2, " x", call_gain("look up", 3000))
    target("one call of 100,000 adds with is_new, against batches of 1,000", 6, " x", \
        call_gain("add, is_new, fresh", 100000))
    target("one call of 1,000,000 adds with is_new, against batches of 1,000", 20, " x", \
        call_gain("add, is_new, fresh", 1000000))
    target("batches of 1,000 with is_new on a filter for 100,000 items, against the same by commands", 4, " x", \
        quotient(series("crossing", "classic|100000|add, is_new|1000", "commands_us"), \
            series("crossing", "classic|100000|add, is_new|1000", "call_us")))
    target("blocked, k = 3, adds with is_new in batches of 1,000: several items a BITFIELD against one item a BITFIELD, " \
        "both by the library's code", 1.3, " x", quotient(bitfield("add, is_new|3|32", "items_per_s"), \
            bitfield("add, is_new|3|1", "items_per_s")))
    target("the cost model's choice against the better way, in its worst cell", 1.15, " x", worst_choice("crossing"), 1)
    if (count["elsewhere-crossing"] > 0)
        target("the same on Redis " machine("Redis", "elsewhere-machine"), 1.15, " x", \
            worst_choice("elsewhere-crossing"), 1)
    target("a whole bitmap into a key, against parts", 2.5, " x", \
        quotient(series("merges", "parts", "ms"), series("merges", "whole", "ms")))
    target("the same, bytes in the append-only file, of its bytes", 1.2, " x", \
        quotient(series("merges", "whole", "aof_bytes"), series("merges", "whole", "bytes")), 1)
    target("the same, bytes to a replica, of its bytes", 1.2, " x", \
        quotient(series("merges", "whole", "replica_bytes"), series("merges", "whole", "bytes")), 1)
    target("longest PING beside calls of a million adds with is_new, keys of 2 MB", 3, " ms", \
        stalled("11.4 MB in keys of 2 MB", "a call of a million adds with is_new", "ping_ms"), 1)
    target("longest command of a million adds with is_new, one key of 16 MB", 15, " ms", \
        stalled("16 MB in one key", "a call of a million adds with is_new", "longest_ms"), 1)
    target("longest command of a million adds, one key of 16 MB", 15, " ms", \
        stalled("16 MB in one key", "a call of a million adds", "longest_ms"), 1)
    target("one call of 1,000,000 adds, against MADD's 2.2 M/s", 2200000, " items/s", \
        calls("add", 1000000, "items_per_s"))
    if (count["module"] > 0)
        target("blocked, k = 2, 3 %, adds with is_new in batches of 1,000, against BF.ADD, pipelined, 3 %", 1, " x", \
            quotient(series("module", "blocked, k = 2, 3 %|add, is_new|1000", "items_per_s"), \
                series("module", "BF.ADD, pipelined, 3 %|add, is_new|1000", "items_per_s")))
    for (i = 1; i <= count["calls"]; i++) {
        key = keys["calls", i]
        n = name["calls", key, "items"]
        if (n <= 1000)
            target("one call of " grouped(n) ", " name["calls", key, "operation"] ", against the same without a choice", \
                0.97, " x", call_gain(name["calls", key, "operation"], n))
    }
}

function milliseconds(microseconds)
{
    return short(median(microseconds) / 1000) " ms"
}

# From how many items on the bitmaps would have been worth while: as many as go by commands in
# the time of the least call that went by bitmaps.
function call_crossing(operation,    i, key, n)
{
    for (i = 1; i <= count["calls"]; i++) {
        key = keys["calls", i]
        n = name["calls", key, "items"]
        if (name["calls", key, "operation"] == operation && median(series("calls", key, "by_bitmaps")) == 1)
            return "about " short(n * median(quotient(series("calls", key, "commands_items_per_s"), \
                series("calls", key, "items_per_s")))) " items"
    }
    return "not measured"
}

function print_crossing(operation, words, rule)
{
    print "| " words " | " grouped(median(calls(operation, 100, "crossing"))) " items" rule " | " \
        call_crossing(operation) " |"
}

function print_calls(    i, j, key, operation)
{
    print "\n## One call of many items\n\n![items a second over the size of one call](calls.svg)\n"
    print "One call, of so many items, on a filter for " grouped(machine("items")) " items in one key; the library chooses"
    print "the way. Against it the same items by commands, in batches of 1,000 or of the call's own size"
    print "where that is less; of large calls 12,000 items are enough to tell. Both take turns. The model's columns are"
    print "what cost.c says of the call by either way, with the link as it is by default. The time of a call is the median"
    print "of those that one trial makes.\n"
    print "| call | items | one call, items/s | by commands, items/s | ratio | model: commands | bitmaps | it took |"
    print "|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= count["calls"]; i++) {
        operation = name["calls", keys["calls", i], "operation"]
        for (j = i; !(operation in call_seen) && j <= count["calls"]; j++) {
            key = keys["calls", j]
            if (name["calls", key, "operation"] == operation)
                printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", operation, grouped(name["calls", key, "items"]), \
                    spread(series("calls", key, "items_per_s")), \
                    short(median(series("calls", key, "commands_items_per_s"))), \
                    spread(call_gain(operation, name["calls", key, "items"]), " x"), \
                    milliseconds(series("calls", key, "commands_us")), milliseconds(series("calls", key, "bitmaps_us")), \
                    median(series("calls", key, "by_bitmaps")) == 1 ? "bitmaps" : "commands"
        }
        call_seen[operation] = 1
    }
    print "\nFrom how many items on a call goes by bitmaps, and from where on that would have been less time: as many"
    print "items as go by commands in the time of the least call here that went by bitmaps.\n"
    print "| call | goes by bitmaps from | measured |\n|---|---|---|"
    print_crossing("look up", "look-up", "")
    print_crossing("add", "add", "")
    print_crossing("add, is_new, all in", "add with is_new, if all are in", \
        ": where reading is a tenth of sending all, as they may all be new")
}

# ---- Items that share a BITFIELD ---------------------------------------------------------

function bitfield(key, column)
{
    return series("bitfield", key, column)
}

function print_bitfield(    i, key, k, bits, one, cells)
{
    print "\n## Items that share a BITFIELD\n"
    print "Batches of 1,000. A BITFIELD has one item, or as many as have so many bits. The library takes 32 bits; the table"
    print "has how many items that is. The same code sends them all. Adds with is_new are of new items in the blocked layout,"
    print "look-ups are in the classic one. One item is in items/s, and the others are against it.\n"
    print "| k | items | add: one item | 16 bits | 32 bits | 64 bits | look up: one item | 16 bits | 32 bits | 64 bits |"
    print "|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= count["bitfield"]; i++) {
        key = keys["bitfield", i]
        k = name["bitfield", key, "hashes"]
        bits = name["bitfield", key, "bits"]
        one = bitfield(name["bitfield", key, "operation"] "|" k "|1", "items_per_s")
        cells[k] = cells[k] " " (bits == 1 ? short(median(one)) : times(quotient(bitfield(key, "items_per_s"), one))) " |"
    }
    for (k = 1; k in cells; k++)
        print "| " k " | " median(bitfield("look up|" k "|32", "items")) " |" cells[k]
}

# ---- Which way is better ------------------------------------------------------------------

# The time of the way that the model chooses, of that of the better one.
function choice(part, key,    commands, bitmaps)
{
    commands = median(series(part, key, "commands_us"))
    bitmaps = median(series(part, key, "bitmaps_us"))
    return (median(series(part, key, "by_bitmaps")) == 1 ? bitmaps : commands) / (commands < bitmaps ? commands : bitmaps)
}

function worst_choice(part,    i, worst)
{
    for (i = 1; i <= count[part]; i++)
        if (choice(part, keys[part, i]) > worst)
            worst = choice(part, keys[part, i])
    return worst
}

# The model's time of one way, of the measured one.
function modelled(part, key, way)
{
    return median(series(part, key, "model_" way "_us")) / median(series(part, key, way "_us"))
}

function print_cells(part,    i, key, row, rows, title, cells, megabytes, lines, line, commands, bitmaps)
{
    for (i = 1; i <= count[part]; i++) {
        key = keys[part, i]
        row = name[part, key, "layout"] " | " name[part, key, "operation"]
        if (!(row in commands))
            line[++lines] = row
        commands[row] = commands[row] " " modelled(part, key, "commands")
        bitmaps[row] = bitmaps[row] " " modelled(part, key, "bitmaps")
        row = row " | " grouped(name[part, key, "items"])
        if (!(row in cells))
            title[++rows] = row
        if (row == title[1])
            megabytes = megabytes " " short(median(series(part, key, "megabytes"))) " MB |"
        cells[row] = cells[row] " " (median(series(part, key, "by_bitmaps")) == 1 ? "bitmaps " : "commands ") \
            (choice(part, key) > 1.15 ? "**" short(choice(part, key)) "**" : short(choice(part, key))) " |"
    }
    print "| layout | call | items |" megabytes "\n|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= rows; i++)
        print "| " title[i] " |" cells[title[i]]
    print "\nThe model's time as a share of the measured time, in the median of these cells:\n"
    print "| layout | call | commands | bitmaps |\n|---|---|---|---|"
    for (i = 1; i <= lines; i++)
        print "| " line[i] " | " spread(commands[line[i]]) " | " spread(bitmaps[line[i]]) " |"
}

function print_choices()
{
    print "\n## Commands or bitmaps\n"
    print "Both ways of a call were measured on filters of several sizes, half full, at 1 %; adds are of new items. The table"
    print "has the way that the cost model chooses, and its time as a share of that of the better way.\n"
    print_cells("crossing")
    if (count["elsewhere-crossing"] == 0)
        return
    print "\nThe same on Redis " machine("Redis", "elsewhere-machine") ", hiredis " machine("hiredis", "elsewhere-machine") \
        ", compiler " machine("compiler", "elsewhere-machine") ", in a run of its own on this machine:\n"
    print_cells("elsewhere-crossing")
}

# ---- Whole bitmaps, and the module ---------------------------------------------------------

function print_merges(    i, key)
{
    print "\n## A whole bitmap into a key that has bits\n"
    print "By SET and BITOP, as keys of less than 12 MB take it, and by parts through a script, as larger ones do.\n"
    print "| way | MB | milliseconds | bytes in the append-only file | bytes to a replica |\n|---|---|---|---|---|"
    for (i = 1; i <= count["merges"]; i++) {
        key = keys["merges", i]
        printf "| %s | %s | %s | %s | %s |\n", name["merges", key, "way"] == "whole" ? "BITOP" : "parts", \
            short(median(series("merges", key, "bytes")) / 1e6), spread(series("merges", key, "ms")), \
            grouped(median(series("merges", key, "aof_bytes"))), grouped(median(series("merges", key, "replica_bytes")))
    }
}

function print_module(    i, key)
{
    print "\n## Beside RedisBloom's module\n"
    if (count["module"] == 0) {
        print "Not measured: the module is not installed here."
        return
    }
    print "One server, the same capacity, items/s; the error rate is 1 % unless a row has another. The module goes through"
    print "hiredis.\n"
    print "| way | call | items a call | items/s |\n|---|---|---|---|"
    for (i = 1; i <= count["module"]; i++) {
        key = keys["module", i]
        printf "| %s | %s | %s | %s |\n", name["module", key, "way"], name["module", key, "operation"], \
            grouped(name["module", key, "items"]), spread(series("module", key, "items_per_s"))
    }
}

# ---- Kinds of filters --------------------------------------------------------------------

function print_kinds(    i, key, other, batch)
{
    print "\n## Growing filters and windows\n"
    print "Beside plain filters of the same capacity, " grouped(machine("items") / 10) " items at 1 %, and one of ten times that. Plain"
    print "filters and windows are half full; all that is in a window is in its newest slice. Of the growing filters one"
    print "holds 1.5 times that capacity in two links. The other began with a quarter of it, and holds 4 times that"
    print "capacity in five. Adds are of items that are new. The library chooses the way. CPU is in microseconds an item.\n"
    print "| filter | call | items | items/s | of the plain one's | client CPU | server CPU |\n|---|---|---|---|---|---|---|"
    for (i = 1; i <= count["kinds"]; i++) {
        key = other = keys["kinds", i]
        batch = name["kinds", key, "batch"]
        sub(/^[^|]*/, "plain", other)
        printf "| %s | %s | %s | %s | %s | %s | %s |\n", name["kinds", key, "filter"], name["kinds", key, "operation"], \
            grouped(batch), spread(series("kinds", key, "items_per_s")), \
            times(quotient(series("kinds", key, "items_per_s"), series("kinds", other, "items_per_s"))), \
            short(median(series("kinds", key, "client_us"))), short(median(series("kinds", key, "server_us")))
    }
}
