/* The commands and their help: one table, in the order of use. Each entry says what the command
 * takes, what it does, and ends in an example. */
#include "base/nearest.h"
#include "command.h"
#include "output.h"

#include <string.h>

#define MANY SIZE_MAX

/* ---- Lines that several commands share -------------------------------------------- */

#define CRLF_HELP "      --crlf         lines end in CR LF, as Windows writes them; the CR is left out\n"
#define ITEMS_HELP "Without an ITEM, each line of standard input is an item.\n"
#define STAYING_HELP \
    "  -n, --capacity N   the filter is meant for N different items, such as 10M or 1e7\n" \
    "  -p, --error P      false-positive rate at N items, at most: 0.01 is one in a hundred\n" \
    "  -k, --hashes K     number of hashes. Default: the K that needs the fewest bits\n" \
    "      --layout L     classic (default), partitioned, or blocked (faster look-ups)\n" \
    "      --prefer W     picks K, and classic or blocked, unless they are given.\n" \
    "                     memory takes the least memory. add and lookup do the most a second,\n" \
    "                     with at most half more memory. hibloom plan shows the picks.\n" \
    "                     add also spreads the filter over keys of 2 MB, for many adds in one call.\n" \
    "                     A filter that exists stays as it is\n" \
    "      --counting     counters of 4 bits in place of bits, for hibloom remove. Takes 4 times\n" \
    "                     the memory. classic only\n" \
    "      --grow         the filter grows beyond N: it adds links, each twice as large as the one\n" \
    "                     before. All links together keep P\n"
#define WINDOW_HELP \
    "      --window T     a sliding window, such as 90s, 30min, 24h or 7d. An item is forgotten T\n" \
    "                     after its last add, or up to a quarter of T later. N is the number of\n" \
    "                     items within T. Takes five filters, one for each quarter and one more\n"
#define SIZE_HELP STAYING_HELP WINDOW_HELP
#define WHOLE_HELP "  -s, --spec SPEC    a spec or a preset in place of these options: see hibloom help spec\n"
#define SPEC_HELP SIZE_HELP WHOLE_HELP
#define BARE_HELP "      --bare         with -s: NAME is a bitmap that another program fills\n"
#define COMMANDS_HELP \
    "      --commands C   setbit (default), or bitfield: less work for Redis 6 and later\n" \
    "      --near MS      remembers known items, and does not ask for them again. First it checks\n" \
    "                     that the filter is still the same, unless it did so within MS\n" \
    "                     milliseconds. Default 0: one check a batch. Takes at most 64 MB.\n" \
    "                     off: remembers nothing. Not with --counting or --window\n"
#define BARE_SPEC_HELP \
    "  --bare -s SPEC     NAME is a bitmap that another program fills as SPEC says: see\n" \
    "                     hibloom help spec\n"
#define JSON_HELP "      --json         prints a JSON object\n"
#define COUNT_HELP \
    "At the end it counts the filter's bits. It warns if the filter, or a slice of a window, has\n" \
    "more items than it is meant for. Counting 1 GB takes the server 40 to 300 ms.\n"
#define RESTART_WORDS \
    "If a server restarts meanwhile, or another takes over, it may have forgotten a part of this.\n" \
    "Then the command fails: do it again.\n"
#define FEW_HELP "After few items it does not count a filter above 16 MB.\n"
#define STAYING_SYNOPSIS \
    "-n N -p P [-k K] [--layout classic|partitioned|blocked] [--prefer add|lookup|memory] [--counting | --grow"
#define SIZE_SYNOPSIS STAYING_SYNOPSIS " | --window T]"
#define SPEC_SYNOPSIS SIZE_SYNOPSIS " | -s SPEC"
#define MAKE_SYNOPSIS "NAME [" SPEC_SYNOPSIS "] [--bare]"
#define OPEN_SYNOPSIS MAKE_SYNOPSIS " [--commands setbit|bitfield] [--near MS|off] [--crlf]"
#define BARE_SYNOPSIS " [--bare -s SPEC]"
#define MAKE_WORDS \
    "If there is no filter NAME, it is created as these options say. If there is one, it must have\n" \
    "what they say; options that are not given do not matter:\n"
#define MAKE_HELP MAKE_WORDS SPEC_HELP BARE_HELP
#define ITEMS_OPTIONS (OPTIONS_SPEC | OPTION_BARE | OPTION_COMMANDS | OPTION_NEAR | OPTION_CRLF)
#define OPEN_OPTIONS (OPTIONS_SPEC | OPTION_BARE)

/* ---- The table ---------------------------------------------------------------------- */

static const struct command commands[] = {
    {"plan", "(" SPEC_SYNOPSIS ") [--commands setbit|bitfield]", "show how large and how fast a filter will be",
     "Prints the spec of a filter for N items, its memory and its predicted error rate. A table\n"
     "shows all choices of K and layout: memory, and the adds or look-ups that one server does in\n"
     "a second, in calls of 1,000 items. is_new is an add that reports new items, as hibloom add\n"
     "and uniq do. The rates are computed: on another machine all rates differ by about one\n"
     "factor. hibloom bench measures. Three lines at the end say which form is fast for which\n"
     "stream. Needs no server.\n" SIZE_HELP "  -s, --spec SPEC    this spec, without the table: see hibloom help spec\n"
     "      --commands C   setbit (default), or bitfield: less work for Redis 6 and later\n",
     "hibloom plan -n 10M -p 0.01", OPTIONS_SPEC | OPTION_COMMANDS, SPEC_ALWAYS, 0, 0, cmd_plan, false},
    {"bench", "[-n N -p P [-k K]] [--json]", "measure what a server does in a second",
     "Makes a filter under a random name, and adds and looks up items for ten seconds. It tries k\n"
     "commands an item (setbit) and one (bitfield), the classic and the blocked layout, and calls\n"
     "of 1,000 items and of one. Prints items a second, the rate that hibloom plan expects, and\n"
     "the time of a round trip. The filter is removed at the end, also when bench is stopped. It\n"
     "lives for at most 5 minutes.\n"
     "  -n, --capacity N   for N different items. Default: 10M, which takes 11 MB\n"
     "  -p, --error P      false-positive rate at N items, at most. Default: 0.01\n"
     "  -k, --hashes K     number of hashes. Default: the K that needs the fewest bits\n" JSON_HELP,
     "hibloom bench -n 1M -p 0.001", OPTION_N | OPTION_P | OPTION_K | OPTION_JSON, SPEC_OPTIONAL, 0, 0, cmd_bench,
     false},
    {"positions", "SPEC [ITEM...] [--crlf]", "show which bits an item sets",
     "Prints a line for each item: its bits. If the filter has several keys, it prints key:bit\n"
     "pairs. hibloom help spec lists the words of SPEC. Needs no server.\n" ITEMS_HELP CRLF_HELP,
     "hibloom positions php-uids 1234567890", OPTION_CRLF, SPEC_NEVER, 1, MANY, cmd_positions, false},
    {"create", "NAME (" SPEC_SYNOPSIS ")", "create a filter",
     "If the filter exists already, checks that it has what these options say.\n" SPEC_HELP COUNT_HELP,
     "hibloom create seen -n 10M -p 0.001", OPTIONS_SPEC, SPEC_ALWAYS, 1, 1, cmd_create, false},
    {"add", OPEN_SYNOPSIS " [ITEM...]", "add items",
     "Adds items. Prints the number of items, and the number of new ones.\n" ITEMS_HELP MAKE_HELP COMMANDS_HELP
         CRLF_HELP COUNT_HELP FEW_HELP
     "If another process replaces NAME meanwhile (load --replace), add fails: the new filter lacks\n"
     "the items that it added.\n",
     "hibloom add seen -n 10M -p 0.001 https://example.org/", ITEMS_OPTIONS, SPEC_OPTIONAL, 1, MANY, cmd_add, true},
    {"check", OPEN_SYNOPSIS " [ITEM...]", "ask whether items are in",
     "Prints for each item \"maybe\" or \"no\", a tab and the item. \"no\" is certain. Exits 0 if\n"
     "all are maybe, 1 if one is no, 2 after a failure. It never creates a filter. If another\n"
     "process replaces NAME meanwhile (load --replace), check goes on with the new filter.\n" ITEMS_HELP
     "If these options are given, the filter must have what they say:\n" SPEC_HELP BARE_HELP COMMANDS_HELP CRLF_HELP,
     "hibloom check seen https://example.org/", ITEMS_OPTIONS, SPEC_OPTIONAL, 1, MANY, cmd_check, false},
    {"uniq", OPEN_SYNOPSIS, "print the lines that no process has printed before",
     "Adds each line of standard input, and prints it at once if it is new: no process on any\n"
     "host has passed it through NAME before. A line can be printed twice if an answer of the\n"
     "server was lost, or if the server lost data: after a restart, or after a failover.\n"
     "Warnings say so, and a filter that was forgotten is made again. A new line can be left out:\n"
     "as a false positive, or if the process that added it failed or was stopped before it printed\n"
     "the line. If NAME is deleted meanwhile, or replaced (load --replace), uniq fails. Run it\n"
     "again with the lines that are left: it makes a filter that is missing.\n" MAKE_HELP COMMANDS_HELP CRLF_HELP
         COUNT_HELP FEW_HELP,
     "hibloom uniq seen -n 10M -p 0.001 < urls > new_urls", ITEMS_OPTIONS, SPEC_OPTIONAL, 1, 1, cmd_uniq, false},
    {"remove", "NAME [ITEM...] [--crlf]", "remove items from a counting filter",
     "Prints the number of items that were removed, and of those that were not in. An item that\n"
     "was added twice must be removed twice. Remove only what was added: a wrong remove can make\n"
     "other items \"no\". NAME must have counters: create it with --counting, or with counters=2, 4\n"
     "or 8 in the spec. If an answer is lost, remove fails and does not try again. Then nobody\n"
     "knows which items were removed.\n" ITEMS_HELP CRLF_HELP,
     "hibloom remove seen https://example.org/", OPTION_CRLF, SPEC_NEVER, 1, MANY, cmd_remove, true},
    {"load", "NAME [" STAYING_SYNOPSIS "] | -s SPEC] [--bare] [--replace] [--crlf]", "add millions of items at once",
     "Adds the lines of standard input to a filter in memory. At the end of the input it merges\n"
     "that into NAME, which has none of the lines until then. If there is no filter NAME, it is\n"
     "created at the start, empty. If others ask it meanwhile, use --replace: then it appears with\n"
     "all lines. For a few items, add is faster. If a growing filter has items already, load sends\n"
     "the lines as add does. A sliding window takes no load: use add.\n" MAKE_WORDS STAYING_HELP WHOLE_HELP BARE_HELP
     "      --replace      makes a new filter of these lines alone. At the end it takes the place of\n"
     "                     NAME in one step. Until then look-ups use the old filter. Then the old\n"
     "                     one's open handles get EMISMATCH, and must open NAME again.\n"
     "                     The new filter lacks what others add to NAME meanwhile: stop them, or add\n"
     "                     it again. The new filter has the given spec or that of the old one, the\n"
     "                     old one's time to live, and another seed.\n"
     "                     A load that is killed changes nothing. It can leave a filter\n"
     "                     {NAME}.new-..., which expires in an hour. In a cluster, a filter of several\n"
     "                     keys, or one that grows, must have a {tag} in its name. Without any line,\n"
     "                     nothing is replaced. But if a producer dies in a pipe, load sees a\n"
     "                     normal end, and set -o pipefail comes too late: write to a file first\n" CRLF_HELP
         COUNT_HELP,
     "hibloom load seen -n 10M -p 0.001 < ten_million_urls", OPEN_OPTIONS | OPTION_REPLACE | OPTION_CRLF, SPEC_OPTIONAL,
     1, 1, cmd_load, true},
    {"info", "NAME [--json] [--max-used N] [--watch[=TIME] [--count N]]" BARE_SYNOPSIS,
     "show what a filter is, and how full",
     "Prints the spec of a filter, its capacity and the used part, its present error rate, its\n"
     "memory and its time to live. It counts the filter's bits. For a sliding window, the used\n"
     "part is that of its fullest slice.\n" JSON_HELP
     "      --max-used N   exits 1 if more than N percent of the capacity is used. A filter that\n"
     "                     grows is never past it\n"
     "      --watch[=T]    repeats every T, such as 10s or 1min, or every 2 seconds, until it is\n"
     "                     interrupted. A terminal shows it in one place. A pipe or a file, and\n"
     "                     --json, get a line each time\n"
     "      --count N      ends after N times\n" BARE_SPEC_HELP,
     "hibloom info seen --watch", OPEN_OPTIONS | OPTION_JSON | OPTION_MAX_USED | OPTION_WATCH | OPTION_COUNT,
     SPEC_IF_BARE, 1, 1, cmd_info, false},
    {"list", "[PATTERN] [--json | --prometheus]", "show the filters on a server",
     "Prints a line for each filter: its size, the share of its bits that are set, the used part\n"
     "of its capacity, its time to live, its kind and its name. PATTERN is one of Redis, such as\n"
     "'day:*': quote it. list looks at all keys of the server, or of all primaries of a cluster.\n"
     "It counts the bits in small steps, so nobody waits for it. If the server reorders its keys\n"
     "meanwhile, a filter can come twice. It leaves out bare bitmaps, since nothing marks them as\n"
     "filters, and keys that the user may not read.\n"
     "      --json         prints a JSON object for each filter, on a line, as info does\n"
     "      --prometheus   prints gauges of each filter, and totals, in the text format of\n"
     "                     Prometheus. If the server fails, it prints none\n"
     "It exits 2 if the server fails, and if it cannot read a filter. Then it prints the others.\n",
     "hibloom list 'day:*'", OPTION_JSON | OPTION_PROMETHEUS, SPEC_NEVER, 0, 1, cmd_list, false},
    {"compare", "A B [--json]", "estimate what two filters have in common",
     "Estimates the number of items in A or in B, the number in both, and the second as a part of\n"
     "the first. A and B must have the same spec and seed, as copies have.\n" JSON_HELP,
     "hibloom compare monday tuesday", OPTION_JSON, SPEC_NEVER, 2, 2, cmd_compare, false},
    {"copy", "FROM TO [--to URI]", "make a filter with the same spec, seed and items",
     "The filter TO must not exist yet. The two can be merged and compared later.\n"
     "      --to URI       TO is on this server\n",
     "hibloom copy seen seen --to redis://other.example.org", OPTION_TO, SPEC_NEVER, 2, 2, cmd_copy, true},
    {"merge", "NAME FROM... [--from URI]", "add all items of other filters",
     "All filters must have the same spec and seed, as copies have. If there is no filter NAME, it\n"
     "is created, and removed again if merge fails.\n"
     "      --from URI     FROM... are on this server\n",
     "hibloom merge week monday tuesday", OPTION_FROM, SPEC_NEVER, 2, MANY, cmd_merge, true},
    {"import", "NAME (--redisbloom KEY [--from URI] | --redisbloom-file FILE) [--replace]",
     "take over a filter of RedisBloom",
     "Makes a filter NAME, which any Redis holds, from a filter of the module RedisBloom. NAME has\n"
     "its items, its capacity and its error rate, and uses the same positions. NAME must not exist\n"
     "yet. Nobody may add to the other filter meanwhile: then import fails, and makes nothing.\n"
     "A filter that has grown beyond its first capacity becomes a growing filter. Import refuses\n"
     "filters of old versions of the module, and those that have grown with another EXPANSION\n"
     "than 2 to 16. NAME appears once it is complete. An import that is killed can leave a filter\n"
     "{NAME}.import-..., for an hour.\n"
     "      --replace      NAME may exist, and is replaced in one step, as load --replace does.\n"
     "                     An import that is killed just before that step can leave {NAME}.new-...\n"
     "      --redisbloom KEY\n"
     "                     the other filter, as in BF.ADD KEY. It stays as it is\n"
     "      --from URI     KEY is on this server\n"
     "      --redisbloom-file FILE\n"
     "                     the output of redis-cli --raw BF.SCANDUMP KEY. Begin with iterator 0. Each\n"
     "                     answer begins with the next iterator. The last one says 0: leave it out.\n"
     "                     At the end append the answer to iterator 0 again:\n"
     "  it=0\n"
     "  while redis-cli --raw BF.SCANDUMP KEY $it > part && it=$(head -n 1 part) && [ \"$it\" -gt 0 ]\n"
     "  do cat part; done > FILE\n"
     "  redis-cli --raw BF.SCANDUMP KEY 0 >> FILE\n",
     "hibloom import seen --redisbloom seen --from redis://old.example.org",
     OPTION_REDISBLOOM | OPTION_REDISBLOOM_FILE | OPTION_FROM | OPTION_REPLACE, SPEC_NEVER, 1, 1, cmd_import, true},
    {"save", "NAME FILE" BARE_SYNOPSIS, "write a filter to a file",
     "If FILE exists, it is replaced once the new file is complete. If FILE is -, save writes to\n"
     "standard output; restore refuses a stream that was cut short.\n" BARE_SPEC_HELP,
     "hibloom save seen seen.hbl", OPEN_OPTIONS, SPEC_IF_BARE, 2, 2, cmd_save, false},
    {"restore", "NAME FILE [--replace]" BARE_SYNOPSIS, "add all items of a filter in a file",
     "FILE is one that save has written. If FILE is -, restore reads standard input, and keeps it\n"
     "in $TMPDIR or /tmp until it is done. If there is no filter NAME, it is created with the spec\n"
     "and the seed of the file, and removed again if restore fails. If there is one, it must have\n"
     "the same.\n"
     "      --replace      makes a filter of FILE alone, which takes the place of NAME in one step, as\n"
     "                     load --replace does. NAME may have another spec and seed\n" BARE_SPEC_HELP,
     "hibloom restore seen seen.hbl", OPEN_OPTIONS | OPTION_REPLACE, SPEC_IF_BARE, 2, 2, cmd_restore, true},
    {"expire", "NAME TIME" BARE_SYNOPSIS, "set the time to live of a filter",
     "Redis removes the filter after TIME: 500ms, 90s, 30min, 24h, 7d. 0 removes the time to live.\n" BARE_SPEC_HELP,
     "hibloom expire seen 24h", OPEN_OPTIONS, SPEC_IF_BARE, 2, 2, cmd_expire, false},
    {"clear", "NAME" BARE_SYNOPSIS, "remove all items of a filter",
     "The filter stays, with its spec and its time to live.\n" BARE_SPEC_HELP, "hibloom clear seen", OPEN_OPTIONS,
     SPEC_IF_BARE, 1, 1, cmd_clear, false},
    {"replace", "NAME BY", "put a filter in the place of another",
     "Gives the filter BY the name NAME in one step, with the time to live of NAME. The old filter\n"
     "NAME is gone. So you can rebuild a filter during look-ups: make BY, fill it, replace.\n"
     "Meanwhile look-ups use the one filter or the other. Then open handles of both get EMISMATCH\n"
     "or ENOTFOUND, and must open NAME again. The new filter lacks what others add to the old one\n"
     "meanwhile. The specs may differ. If there is no filter NAME, BY is renamed. To keep BY, copy\n"
     "it first. Sliding windows, and bitmaps that another program fills, can neither replace nor be\n"
     "replaced. In a cluster both must lie in one slot: give both names the same {tag}. If each has\n"
     "one key, {seen}x can replace seen.\n",
     "hibloom replace seen seen_of_today", 0, SPEC_NEVER, 2, 2, cmd_replace, false},
    {"repair", "NAME...", "replace the lost keys of filters by empty ones",
     "A filter of several keys (above 16 MB, or partitioned) is damaged if Redis has lost one\n"
     "key. repair makes the lost keys again, empty. Add the items of these keys again. Other keys\n"
     "stay as they are. Prints a line for each filter that has all its keys.\n",
     "hibloom repair seen", 0, SPEC_NEVER, 1, MANY, cmd_repair, false},
    {"drop", "NAME..." BARE_SYNOPSIS, "remove filters",
     "Removes each filter, also one that has lost keys. If it fails for one, it goes on with the\n"
     "others, and exits 2. It leaves a filter whose spec is unreadable, and a key that was altered:\n"
     "delete that by hand, with the DEL of Redis.\n" BARE_SPEC_HELP,
     "hibloom drop monday tuesday", OPEN_OPTIONS, SPEC_IF_BARE, 1, MANY, cmd_drop, false},
    {"stats", "[--json | --prometheus] COMMAND [ARG...]", "run a command, and print what it cost",
     "Runs the command. Then it prints on standard error what its connections have done: items,\n"
     "commands, bytes, round trips, retries and more, as whole numbers. Exits as the command does.\n"
     "      --json         a JSON object on one line (default). A command with that option prints\n"
     "                     one, too, on standard output\n"
     "      --prometheus   the text format of Prometheus, also of a command that takes it\n",
     "hibloom stats --prometheus check seen https://example.org/", (unsigned)OPTIONS_OF_ANOTHER, SPEC_OPTIONAL, 1, MANY,
     cmd_stats, false},
    {"help", "[COMMAND | spec]", "explain a command, or how a spec is written",
     "Without an operand, lists the commands and the options that all commands take.\n", "hibloom help uniq", 0,
     SPEC_NEVER, 0, 1, cmd_help, false},
};

#define N_COMMANDS (sizeof commands / sizeof *commands)

/* ---- Help --------------------------------------------------------------------------- */

static void help_on_all(void)
{
    output_text("usage: hibloom [-u URI] COMMAND ...\n\n"
                "Bloom filters that any number of processes share through a Redis server.\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        output_text("  %-11s %s\n", commands[i].name, commands[i].summary);
    output_text("\n"
                "  -u, --uri URI  the server; default: $HIBLOOM_URL, else redis://127.0.0.1:6379\n"
                "                   redis://[user[:password]@]host[:port][/db]\n"
                "                   unix://[user[:password]@]/path\n"
                "                   redis+cluster://[...@]host[:port][,host[:port]...]\n"
                "                   redis+sentinel://[...@]host[:port][,...]/MASTER[/db]\n"
                "                 rediss://, rediss+cluster:// and rediss+sentinel:// are the same over\n"
                "                 TLS. Options follow: ?cacert=FILE&retry=1min&command_timeout=2s&db=1\n"
                "                 Other users of this machine can see a password in a command line,\n"
                "                 but not in the environment.\n"
                "  --retry TIME   how long to try again if a server is unreachable, does not answer or is\n"
                "                 loading its data; default 10s, 0 = not at all\n"
                "  --min-replicas N\n"
                "                 an add must reach N replicas, or it fails\n"
                "  --read-from-replicas\n"
                "                 in a cluster or behind Sentinels: look up in replicas. These lag behind, so\n"
                "                 \"no\" is not certain for recent adds\n"
                "  -h, --help     this help; after a COMMAND, its help\n"
                "  -V, --version  the version\n"
                "  --             end of the options: words after it are NAME and items, even if they begin with -\n\n"
                "Whole numbers may be written 10M or 1e7; in a spec 10m. 1 MB is 2^20 bytes.\n"
                "Times need a unit: 500ms, 90s, 30min, 24h, 7d.\n"
                "Exit status: 0 done (check: maybe for all), 1 no for some (check), past --max-used (info),\n"
                "2 failure, which standard error explains. hibloom help COMMAND explains a command.\n\n"
                "Example: hibloom uniq seen -n 10M -p 0.001 < urls > new_urls\n");
}

static void help_on_spec(void)
{
    output_text("A spec says what a filter is. It is a text of words with blanks between them, in any\n"
                "order. A filter that exists must have what the words say. Words that are left out are\n"
                "taken as stored, or chosen for a new filter. A spec with a size, and without growth,\n"
                "window or counters, says that the filter is plain. Numbers may end in k, m or g (1000,\n"
                "1000000, ...), or in kb, mb or gb (1024, ...). Times need a unit: ms, s, min, h or d.\n\n"
                "  capacity=N error=P [hashes=K]   as large as N items need at a false-positive rate of P\n"
                "  bits=M hashes=K                 this size; capacity=N and error=P may be added\n"
                "  hash=H                          xxh3 (default), siphash (for items that an attacker\n"
                "                                  chooses), murmur3, poly, php-mt, php-mt-legacy\n"
                "  seed=HEX                        xxh3 and siphash; default: drawn at random\n"
                "  seeds=A,B,...                   murmur3, poly, ...: a number for each hash\n"
                "  layout=L                        classic (default), partitioned or blocked\n"
                "  counters=B                      2, 4 or 8: counters of so many bits, for hibloom remove\n"
                "  segments=S                      number of Redis keys; default: keys of 16 MB at most\n"
                "  empty=excluded                  the empty item is never added and never found\n"
                "  growth=G                        it grows by further filters, each G times as large\n"
                "  window=TIME [slices=N]          a sliding window, of N + 1 filters; default: slices=4\n\n"
                "These are about the making of a filter:\n\n"
                "  create=no|only|yes              may it be made, or must it; default: as the command\n"
                "  new.ttl=TIME                    its time to live\n"
                "  new.prefer=add|lookup|memory    as --prefer\n"
                "  new.hash=H new.layout=L new.segments=S\n\n"
                "Or the first word is a preset: the filter of another program or library. With --bare\n"
                "it is joined where it is.\n\n"
                "  php-mt bits=M capacity=N           php-mt-legacy bits=M capacity=N\n"
                "  php-poly8 [bits=M] [seeds=A,B,...] php-uids\n"
                "  py-mmh3 capacity=N error=P         py-mmh3-redis capacity=N error=P\n"
                "  pyrebloom capacity=N error=P       go-zero bits=M\n"
                "  rueidis capacity=N error=P         taganaka capacity=N error=P\n"
                "  scrapy-redis bits=M hashes=K [chars=codepoints|latin1]\n"
                "  redisson [capacity=N error=P] [codec=bytes|string|kryo5]\n"
                "  bloomfilter-rb bits=M hashes=K seeds=S\n"
                "  orestes capacity=N error=P [index=kirsch-mitzenmacher|murmur3]\n"
                "  redisbloom capacity=N error=P      with growth=G: as --grow, sized as the module does it\n\n"
                "Example: hibloom create seen -s 'capacity=10m error=0.001 hash=siphash'\n");
}

/* What other programs call them. */
static const struct {
    const char *other, *ours;
} other_names[] = {{"has", "check"}, {"contains", "check"}, {"exists", "check"}, {"ls", "list"}};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    const char *nearest = nearest_name(name, strlen(name), &(struct names)NAMES(commands, &commands->name));
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strcmp(other_names[i].other, name) == 0)
            nearest = other_names[i].ours;
    if (nearest != NULL)
        complain("%s is not a command; did you mean %s?", name, nearest);
    else
        complain("%s is not a command; hibloom help lists them", name);
    return NULL;
}

int cmd_help(const struct request *r)
{
    const struct command *c;

    if (r->n_operands == 0) {
        help_on_all();
    } else if (strcmp(r->operands[0], "spec") == 0) {
        help_on_spec();
    } else {
        c = command_find(r->operands[0]);
        if (c == NULL)
            return EXIT_TROUBLE;
        output_text("usage: hibloom [-u URI] %s %s\n\n%c%s.\n\n%s%s\nExample: %s\n", c->name, c->synopsis,
                    c->summary[0] - 'a' + 'A', c->summary + 1, c->details, c->writes ? RESTART_WORDS : "", c->example);
    }
    return EXIT_YES;
}
