# Writes results.md of what tables.awk has read. No number in it comes from
# anywhere else, but for those that are asked for.

# ---- Numbers -----------------------------------------------------------------------

function grouped(x,    text, result)
{
    text = sprintf("%.0f", x)
    while (length(text) > 3) {
        result = "," substr(text, length(text) - 2) result
        text = substr(text, 1, length(text) - 3)
    }
    return text result
}

# Three digits that matter.
function short(x,    unit)
{
    if (x < 0)
        return "-" short(-x)
    if (x >= 1000) {
        unit = 1
        while (x / unit >= 1000)
            unit *= 10
        return grouped(sprintf("%.0f", x / unit) * unit)
    }
    if (x < 0.0005)
        return "0"
    return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : x >= 1 ? "%.2f" : "%.3f", x)
}

# 405,000 (398,000 to 411,000), or 1.99 x (1.95 to 2.04)
function spread(numbers, unit)
{
    return short(median(numbers)) unit " (" short(least(numbers)) " to " short(most(numbers)) ")"
}

function times(numbers)
{
    return short(median(numbers)) " x"
}

function megabytes(bytes)
{
    return short(bytes / 1048576) " MB"
}

function rate_of(method, operation, batch)
{
    return series("throughput", method "|" operation "|" batch, "items_per_s")
}

# ---- Tables ------------------------------------------------------------------------

# The method as the tables have it, in the words of Redis.
function titled(method)
{
    sub(/^k=4/, "k = 4,", method)
    sub(/^blocked /, "blocked layout, ", method)
    sub(/^blocked$/, "blocked layout, GETRANGE", method)
    sub(/setbit/, "SETBIT", method)
    sub(/bitfield/, "BITFIELD", method)
    return method
}

# Of this machine, or of what another table says.
function machine(what, part,    i)
{
    if (part == "")
        part = "machine"
    for (i = 1; i <= count[part]; i++)
        if (name[part, i, "what"] == what)
            return name[part, i, "value"]
    return "unknown"
}

function print_head()
{
    print "# What hibloom costs, measured\n"
    print "Made by `make bench`, all of it in one run" (machine("scale") == 1 ? "." : \
        ", a trial: **BENCH_SCALE=" machine("scale") "**, so its figures mean little.") "\n"
    print machine("processor") ", " machine("cores") " cores for client and server together, " machine("memory") "; " \
        machine("system") "; Redis " machine("Redis") ", hiredis " machine("hiredis") ", compiler " \
        machine("compiler") ".\n"
    print "Each part has a redis-server of its own, without persistence, and talks to it over loopback TCP unless it"
    print "says otherwise. Items are ten-digit uids; of those looked up, every other one is in the filter. What is"
    print "compared takes turns, round after round, on filters of the same capacity, " grouped(machine("items"))
    print "items at 1 % and half of them in, with the same hash (XXH3-128). A figure is the median of the rounds, in"
    print "brackets the least and the most, and a ratio is taken within each round first. Client and server CPU are"
    print "getrusage and INFO cpu.\n"
    if (machine("huge pages") == "yes")
        print "Huge pages were on, for client and server: without them a virtual machine can take so long for each new page\n" \
            "of memory that it hides what is measured.\n"
}

function target(words, asked, unit, measured, at_most,    met)
{
    met = at_most ? median(measured) <= asked : median(measured) >= asked
    printf "| %s | %s %s%s | %s | %s |\n", words, at_most ? "at most" : "at least", \
        (asked >= 1000 ? grouped(asked) : asked), unit, spread(measured, unit), met ? "met" : "**missed**"
}

function against_printf(words, method, operation, asked)
{
    target(words, asked, " x", quotient(rate_of(method, operation, 1000), rate_of("printf batches", operation, 1000)))
}

function print_targets(    i, method, n, single)
{
    n = machine("items")
    print "## Targets\n"
    print "Batches of 1,000 unless it says otherwise. \"Printf-style\" is redisAppendCommand and a reply object a bit."
    print "What is asked in microseconds and in items a second depends on the machine; the ratios hardly do.\n"
    print "| what | asked | measured | |\n|---|---|---|---|"
    against_printf("adds, SETBIT, against printf-style", "setbit", "add", 1.8)
    against_printf("look-ups, GETBIT, against printf-style", "setbit", "look up", 1.7)
    against_printf("adds, BITFIELD, against printf-style", "bitfield", "add", 2.4)
    against_printf("look-ups, BITFIELD_RO, against printf-style", "bitfield", "look up", 2.2)
    against_printf("adds, BITFIELD and k = 4, against printf-style", "k=4 bitfield", "add", 4)
    against_printf("look-ups, BITFIELD_RO and k = 4, against printf-style", "k=4 bitfield", "look up", 4)
    against_printf("look-ups, blocked layout, against printf-style", "blocked setbit", "look up", 6)
    target("bulk load against printf-style adds", 100, " x", \
        quotient(rate_of("whole filter", "bulk load", n), rate_of("printf batches", "add", 1000)))
    target("bulk load against hibloom's SETBIT adds", 100, " x", \
        quotient(rate_of("whole filter", "bulk load", n), rate_of("setbit", "add", 1000)))
    for (i = 1; i <= 4; i++) {
        method = i <= 2 ? "setbit" : "bitfield"
        target("client CPU, " (i % 2 ? "adds, " : "look-ups, ") toupper(method) " commands", 0.6, " us an item", \
            series("throughput", method "|" (i % 2 ? "add" : "look up") "|1000", "client_us"), 1)
    }
    target("memory store, adds", 60000000, " items/s", rate_of("memory", "add", 1000))
    target("memory store, look-ups", 60000000, " items/s", rate_of("memory", "look up", 1000))
    for (i = 1; i <= count["async"]; i++)
        if (name["async", keys["async", i], "in_flight"] > 1 && keys["async", i] !~ /hiredis/) {
            single = name["async", keys["async", i], "batch"] == 1
            target("on an event loop, " async_title(keys["async", i]) (single ? ", against one" : ", against blocking calls"), \
                single ? 10 : 0.8, " x", async_share(keys["async", i], single ? 1 : 0))
        }
    print_near_targets()
    print_calls_targets()
    print ""
}

function describe(method)
{
    if (method == "round trip a bit") return "one round trip a bit, as the PHP programs"
    if (method == "pipeline an item") return "one MULTI/EXEC pipeline an item, as the Python program adds"
    if (method == "printf batches") return "batches, printf-style, a reply object a bit"
    if (method == "memory") return "hibloom, in this process' memory (a snapshot, or before a bulk load)"
    return "hibloom, " titled(method)
}

function cpu(method, batch, column)
{
    return short(median(series("throughput", method "|add|" batch, column))) " / " \
        short(median(series("throughput", method "|look up|" batch, column)))
}

# The methods in order, each once, and for each its largest batch up to 1,000.
function each_method(    i, key)
{
    for (i = 1; i <= count["throughput"]; i++) {
        key = keys["throughput", i]
        if (name["throughput", key, "operation"] != "add")
            continue
        if (!(name["throughput", key, "method"] in usual_batch))
            method_name[++methods] = name["throughput", key, "method"]
        if (name["throughput", key, "batch"] + 0 <= 1000)
            usual_batch[name["throughput", key, "method"]] = name["throughput", key, "batch"]
    }
}

function print_throughput(    i, m, b, operation)
{
    print "## Throughput\n\n![items a second by method](throughput.svg)\n"
    print "Batches of 1,000, where the method knows batches. The last column but two is the ratio to the printf-style"
    print "batches; CPU is in microseconds an item, add / look-up.\n"
    print "| method | add, items/s | look up, items/s | ratio | client CPU | server CPU |\n|---|---|---|---|---|---|"
    for (i = 1; i <= methods; i++) {
        m = method_name[i]
        b = usual_batch[m]
        printf "| %s | %s | %s | %s / %s | %s | %s |\n", describe(m), spread(rate_of(m, "add", b)), \
            spread(rate_of(m, "look up", b)), \
            times(quotient(rate_of(m, "add", b), rate_of("printf batches", "add", 1000))), \
            times(quotient(rate_of(m, "look up", b), rate_of("printf batches", "look up", 1000))), \
            cpu(m, b, "client_us"), cpu(m, b, "server_us")
    }
    print "\nThe PHP programs end a look-up at the first bit that is not set, which half of these have, and the Python"
    print "program looks up as they do.\n\n![items a second over the batch size](batches.svg)\n"
    print "| items/s, add / look up | 1 | 10 | 100 | 1,000 | 10,000 |\n|---|---|---|---|---|---|"
    for (i = 1; i <= methods; i++) {
        m = method_name[i]
        if (usual_batch[m] == 1)
            continue
        printf "| %s |", describe(m)
        for (b = 1; b <= 10000; b *= 10)
            printf " %s / %s |", short(median(rate_of(m, "add", b))), short(median(rate_of(m, "look up", b)))
        print ""
    }
    print ""
}

function whole(operation, words,    n, rates)
{
    n = machine("items")
    rates = rate_of("whole filter", operation, n)
    printf "| %s | %s | %s | %s | %s |\n", words, short(1000 * n / median(rates)), spread(rates), \
        short(median(series("throughput", "whole filter|" operation "|" n, "client_us"))), \
        short(median(series("throughput", "whole filter|" operation "|" n, "server_us")))
}

function print_whole()
{
    print "A whole filter of " grouped(machine("items")) " items:\n"
    print "| | milliseconds | items/s | client CPU, us an item | server CPU |\n|---|---|---|---|---|"
    whole("build", "built in memory, batches of 10,000")
    whole("merge", "merged into Redis (`hibloom_merge`)")
    whole("bulk load", "bulk load: both together")
    whole("snapshot", "snapshot: merged from Redis into memory")
    print ""
}

function segments(way, number, operation, batch)
{
    return series("segments", way "|" number "|" operation "|" batch, "items_per_s")
}

function print_segments(    o, batch, operation, w, way)
{
    print "\nThe same filter in 256 segments against one key, so what a guard for each segment that a batch touches costs:\n"
    print "| commands | operation | batch | one key, items/s | 256 segments, items/s | of one key's |\n|---|---|---|---|---|---|"
    for (w = 1; w <= 2; w++)
        for (o = 1; o <= 2; o++)
            for (batch = 10; batch <= 1000; batch *= 10) {
                way = w == 1 ? "setbit" : "bitfield"
                operation = o == 1 ? "add" : "look up"
                printf "| %s | %s | %s | %s | %s | %s |\n", toupper(way), operation, grouped(batch), \
                    spread(segments(way, 1, operation, batch)), spread(segments(way, 256, operation, batch)), \
                    spread(quotient(segments(way, 256, operation, batch), segments(way, 1, operation, batch)))
            }
}

function print_growth(    i, key, other, s)
{
    print "## As the work grows\n\n![items a second over the size of the filter](growth.svg)\n"
    print "SETBIT and GETBIT, batches of 1,000; full filters of so many items at 1 %, and empty ones of so many bytes,"
    print "in the segments that hibloom chooses and in one key.\n"
    print "| filter | size | segments | add, items/s | look up, items/s |\n|---|---|---|---|---|"
    for (i = 1; i <= count["growth"]; i++) {
        key = keys["growth", i]
        if (name["growth", key, "operation"] != "add")
            continue
        other = key
        sub(/add$/, "look up", other)
        s = name["growth", key, "series"] == "items" ? grouped(name["growth", key, "x"]) " items" : name["growth", key, "series"]
        printf "| %s | %s MB | %s | %s | %s |\n", s, short(name["growth", key, "megabytes"]), \
            name["growth", key, "segments"], spread(series("growth", key, "items_per_s")), \
            spread(series("growth", other, "items_per_s"))
    }
    print_segments()
    print ""
}

function print_memory(    i)
{
    print "## Ten-digit uids: a SET, a bitmap, a Bloom filter\n"
    print "The comparison that one of the PHP programs comes with, measured: " grouped(name["memory", 1, "items"])
    print "uids, MEMORY USAGE of all keys (what the server's allocator sets aside, which it rounds up), and how many of"
    print grouped(name["memory", 1, "asked"]) " other uids are taken for seen. The bitmap has a bit for each of the"
    print "10^10 uids, in three keys, since one ends at 2^32 bits.\n"
    print "| | memory | bytes a uid | error rate | predicted |\n|---|---|---|---|---|"
    for (i = 1; i <= count["memory"]; i++)
        printf "| %s | %s | %s | %.3g %% | %.3g %% |\n", \
            name["memory", i, "what"], megabytes(name["memory", i, "bytes"]), \
            short(name["memory", i, "bytes"] / name["memory", i, "items"]), \
            100 * name["memory", i, "wrong"] / name["memory", i, "asked"], 100 * name["memory", i, "predicted"]
    print ""
}

# A median and its spread only where there are several.
function stall(numbers)
{
    return least(numbers) == most(numbers) ? short(median(numbers)) : spread(numbers)
}

function print_stalls(    i, row, rows, title, seconds, longest, command, ping)
{
    print "## Stalls\n"
    print "The longest command of each phase by the server's own latency statistics, in which a transaction (exec) or a"
    print "script (eval) counts as one; and how long another client, which sends PING all the while, has waited at"
    print "most: there the reading of large arguments counts, too, and that three processes share the cores. The rows"
    print "of no filter say how long it waits while nobody else asks anything. Each call of a million adds is made five"
    print "times.\n"
    print "| filter | phase | seconds | longest command | longest PING |\n|---|---|---|---|---|"
    for (i = 1; i <= count["stalls"]; i++) {
        row = name["stalls", i, "filter"] " | " name["stalls", i, "phase"]
        if (!(row in ping))
            title[++rows] = row
        seconds[row] = seconds[row] " " name["stalls", i, "seconds"]
        longest[row] = longest[row] " " name["stalls", i, "longest_ms"]
        command[row] = name["stalls", i, "command"]
        ping[row] = ping[row] " " name["stalls", i, "ping_ms"]
    }
    for (i = 1; i <= rows; i++)
        print "| " title[i] " | " stall(seconds[title[i]]) " | " stall(longest[title[i]]) " ms, " command[title[i]] \
            " | " stall(ping[title[i]]) " ms |"
    print ""
}

# One column of each of a filter's calls: ping_ms, longest_ms.
function stalled(filter, phase, column,    i, all)
{
    for (i = 1; i <= count["stalls"]; i++)
        if (name["stalls", i, "filter"] == filter && name["stalls", i, "phase"] == phase)
            all = all " " name["stalls", i, column]
    return all
}

function async_title(key,    batch, operation, in_flight)
{
    batch = name["async", key, "batch"]
    operation = name["async", key, "operation"]
    in_flight = name["async", key, "in_flight"]
    return (batch == 1 ? "single " : "") \
        (operation ~ /look up/ ? "look-ups" : operation == "add" ? "adds" : operation ~ /hiredis/ ? "look-ups by hiredis alone" : \
        "adds with is_new") (operation ~ /^blocked/ ? " (blocked layout)" : "") ", " \
        (in_flight == 0 ? "blocking" : in_flight " in flight")
}

# Of the same calls with so many in flight, 0: blocking.
function async_share(key, in_flight,    other)
{
    other = key
    sub(/[^|]*$/, in_flight, other)
    return quotient(series("async", key, "items_per_s"), series("async", other, "items_per_s"))
}

function print_async(    i, key, batch)
{
    print "\n## On an event loop\n"
    print "libevent, one connection, a filter of one key; SETBIT and GETBIT, BITFIELD with is_new. \"In flight\" is how many"
    print "calls are on their way at once. Batches have 1,000 items. CPU is in microseconds an item.\n"
    print "| calls | items/s | against blocking calls | client CPU | server CPU |\n|---|---|---|---|---|"
    for (i = 1; i <= count["async"]; i++) {
        key = keys["async", i]
        batch = name["async", key, "batch"]
        printf "| %s%s | %s | %s | %s | %s |\n", batch == 1 ? "" : "batches of ", async_title(key), \
            spread(series("async", key, "items_per_s")), \
            name["async", key, "in_flight"] == 0 || key ~ /hiredis/ ? "" : spread(async_share(key, 0), " x"), \
            short(median(series("async", key, "client_us"))), short(median(series("async", key, "server_us")))
    }
    print "\nhiredis alone sends such commands, and a callback with the last of them only. With 256 in flight it does"
    print spread(async_share("hiredis alone|1|256", 1), " times") " what it does with one, in the blocked layout " \
        spread(async_share("blocked hiredis alone|1|256", 1), " times") "."
    print "The server's CPU for these commands allows " grouped(sprintf("%d", 1e6 / median(series("async", "hiredis alone|1|256", "server_us")))) \
        " and " grouped(sprintf("%d", 1e6 / median(series("async", "blocked hiredis alone|1|256", "server_us")))) " a second."
    print "\nThe more a round trip costs, the more calls in flight gain. On loopback it costs little: blocking batches,"
    print "which hardly wait, look up " spread(quotient(series("async", "look up|1000|0", "items_per_s"), \
        series("async", "look up|1|1", "items_per_s")), " times") " what one look-up in flight does."
}

END {
    if (failed)
        exit 1
    each_method()
    print_head()
    print_targets()
    print_throughput()
    print_whole()
    print_growth()
    print_memory()
    print_stalls()
    print_async()
    print_near()
    print_calls()
    print_bitfield()
    print_choices()
    print_merges()
    print_module()
    print_kinds()
}
