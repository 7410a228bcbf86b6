/* The commands and their help: one table, in the order of use. Each entry says what the command
 * takes, what it does, and ends in an example. */
#include "command.h"
#include "output.h"

#include <string.h>

#define MANY SIZE_MAX

/* ---- Lines that several commands share -------------------------------------------- */

#define ITEMS_HELP "Without an ITEM, each line of standard input is one.\n"
#define STAYING_HELP \
    "  -n, --capacity N   the filter is meant for N different items, such as 10M or 1e7\n" \
    "  -p, --error P      false-positive rate at N items, at most: 0.01 is one in a hundred\n" \
    "  -k, --hashes K     number of hashes; default: the one that needs the fewest bits\n" \
    "      --layout L     classic (default), partitioned, or blocked (faster look-ups)\n" \
    "      --prefer W     picks k, and classic or blocked, where they are not given. add, lookup:\n" \
    "                     the most of these a second, with at most half more memory than the\n" \
    "                     least; memory: the least. hibloom plan shows what each of them picks.\n" \
    "                     add also spreads it over keys of 2 MB, for many adds in one call.\n" \
    "                     A filter that is there already is taken as it was made\n" \
    "      --counting     counters of 4 bits in place of bits, for hibloom remove: 4 times the\n" \
    "                     memory. classic only\n" \
    "      --grow         it grows beyond N, by further filters, each twice as large as the one\n" \
    "                     before; all of them together keep P\n"
#define WINDOW_HELP \
    "      --window T     a sliding window: an item is forgotten T after it was added last, or up\n" \
    "                     to a quarter of T later: 90s, 30m, 24h, 7d. N is what comes within T.\n" \
    "                     Five filters, one for each quarter\n"
#define SIZE_HELP STAYING_HELP WINDOW_HELP
#define WHOLE_HELP "  -s, --spec SPEC    instead of all these, a spec or a preset: see hibloom help spec\n"
#define SPEC_HELP SIZE_HELP WHOLE_HELP
#define BARE_HELP "      --bare         with -s: NAME is a bitmap that another program fills\n"
#define COMMANDS_HELP \
    "      --commands C   setbit (default), or bitfield: less work for Redis 6 and later\n" \
    "      --near MS      remembers items that are in, and does not ask for them again. Before\n" \
    "                     it answers so it checks that the filter is the same, unless it did\n" \
    "                     within the last MS milliseconds; default 0: once a batch. Takes 64 MB\n" \
    "                     at most. off: remembers nothing\n"
#define BARE_SPEC_HELP \
    "  --bare -s SPEC     NAME is a bitmap that another program fills as SPEC says: see\n" \
    "                     hibloom help spec\n"
#define JSON_HELP "      --json         print a JSON object\n"
#define COUNT_HELP \
    "At the end it counts the filter's bits, and warns if more items are in than it is\n" \
    "meant for. Counting 1 GB takes the server about 40 ms. After few items a large filter is\n" \
    "not counted.\n"
#define STAYING_SYNOPSIS \
    "-n N -p P [-k K] [--layout classic|partitioned|blocked] [--prefer add|lookup|memory] [--counting | --grow"
#define SIZE_SYNOPSIS STAYING_SYNOPSIS " | --window T]"
#define SPEC_SYNOPSIS SIZE_SYNOPSIS " | -s SPEC"
#define MAKE_SYNOPSIS "NAME [" SPEC_SYNOPSIS "] [--bare]"
#define OPEN_SYNOPSIS MAKE_SYNOPSIS " [--commands setbit|bitfield] [--near MS|off]"
#define BARE_SYNOPSIS " [--bare -s SPEC]"
#define MAKE_WORDS "If there is no filter NAME, it is created; the options then say how large:\n"
#define MAKE_HELP MAKE_WORDS SPEC_HELP BARE_HELP
#define ITEMS_OPTIONS (OPTIONS_SPEC | OPTION_BARE | OPTION_COMMANDS | OPTION_NEAR)
#define OPEN_OPTIONS (OPTIONS_SPEC | OPTION_BARE)

/* ---- The table ---------------------------------------------------------------------- */

static const struct command commands[] = {
    {"plan", "(" SPEC_SYNOPSIS ") [--commands setbit|bitfield]", "show how large and how fast a filter will be",
     "Prints the spec of a filter for N items, its memory and its predicted error rate. A\n"
     "table shows all choices of k and layout: memory, and the items that one server adds or\n"
     "looks up in a second, in calls of 1,000 items. is_new is an add that tells what is new,\n"
     "as those of hibloom add and uniq. The rates are computed; on another machine all of\n"
     "them are higher or lower by about one factor. hibloom bench measures. Needs no server.\n" SIZE_HELP
     "  -s, --spec SPEC    or this spec as it is, without the table: see hibloom help spec\n"
     "      --commands C   setbit (default), or bitfield: less work for Redis 6 and later\n",
     "hibloom plan -n 10M -p 0.01", OPTIONS_SPEC | OPTION_COMMANDS, SPEC_ALWAYS, 0, 0, cmd_plan},
    {"bench", "[-n N -p P [-k K]] [--json]", "measure what a server does in a second",
     "Makes a filter of its own on the server, under a random name, and adds and looks up\n"
     "items for ten seconds: with k commands an item (setbit) and with one (bitfield), in the\n"
     "classic and the blocked layout, in calls of 1,000 items and of one. Prints items a\n"
     "second, what hibloom plan expects, and how long a round trip takes. The filter is\n"
     "removed at the end, also when bench is stopped; it lives for 5 minutes at most.\n"
     "  -n, --capacity N   for N different items; default: 10M, which takes 11 MB\n"
     "  -p, --error P      false-positive rate at N items, at most; default 0.01\n"
     "  -k, --hashes K     number of hashes; default: the one that needs the fewest bits\n" JSON_HELP,
     "hibloom bench -n 1M -p 0.001", OPTION_N | OPTION_P | OPTION_K | OPTION_JSON, SPEC_OPTIONAL, 0, 0, cmd_bench},
    {"positions", "SPEC [ITEM...]", "show which bits an item sets",
     "Prints a line for each item: its bits or, if the filter has several keys, key:bit\n"
     "pairs. hibloom help spec lists the words of SPEC. Needs no server.\n" ITEMS_HELP,
     "hibloom positions php-uids 1234567890", 0, SPEC_NEVER, 1, MANY, cmd_positions},
    {"create", "NAME (" SPEC_SYNOPSIS ")", "create a filter",
     "If the filter is there already, makes sure that it has this spec.\n" SPEC_HELP COUNT_HELP,
     "hibloom create seen -n 10M -p 0.001", OPTIONS_SPEC, SPEC_ALWAYS, 1, 1, cmd_create},
    {"add", OPEN_SYNOPSIS " [ITEM...]", "add items",
     "Adds items, and prints how many, and how many of them were new.\n" ITEMS_HELP MAKE_HELP COMMANDS_HELP COUNT_HELP
     "It does not count more than 16 MB if the items are on the command line. Where NAME is\n"
     "replaced meanwhile (load --replace), it ends: what it had added is not in the new one.\n",
     "hibloom add seen -n 10M -p 0.001 https://example.org/", ITEMS_OPTIONS, SPEC_OPTIONAL, 1, MANY, cmd_add},
    {"check", OPEN_SYNOPSIS " [ITEM...]", "ask whether items are in",
     "Prints for each item \"maybe\" or \"no\", a tab and the item. \"no\" is certain. Exits 0 if\n"
     "it is maybe for all, 1 if no for some, 2 after a failure. It never creates a filter.\n"
     "Where NAME is replaced meanwhile (load --replace), it goes on with the new one.\n" ITEMS_HELP
     "If a spec is given, the filter must have it:\n" SPEC_HELP BARE_HELP COMMANDS_HELP,
     "hibloom check seen https://example.org/", ITEMS_OPTIONS, SPEC_OPTIONAL, 1, MANY, cmd_check},
    {"uniq", OPEN_SYNOPSIS, "print the lines that no process has printed before",
     "Adds each line of standard input, and prints it at once if it is new: no process on any\n"
     "host has passed it through NAME before. A line is printed twice only if an answer of\n"
     "the server was lost, or the server forgot it: where it was restarted, or another took\n"
     "over. Warnings say so; a filter that was forgotten is made again. A new line may be\n"
     "left out: as a false positive, or if the process that added it failed or was stopped\n"
     "before it printed it. Where NAME is replaced meanwhile (load --replace), it ends: what is\n"
     "new is another question then.\n" MAKE_HELP COMMANDS_HELP COUNT_HELP,
     "hibloom uniq seen -n 10M -p 0.001 < urls > new_urls", ITEMS_OPTIONS, SPEC_OPTIONAL, 1, 1, cmd_uniq},
    {"remove", "NAME [ITEM...]", "remove items from a counting filter",
     "Prints how many were removed, and how many were not in. An item that was added twice is\n"
     "in until it is removed twice. Remove only what was added: one that was not, and is in by\n"
     "a false positive, takes others with it, which then are answered \"no\". NAME must have\n"
     "counters: create it with --counting, or with counters=2, 4 or 8 in the spec. If an answer\n"
     "is lost, remove fails, and does not try again: nobody knows what was removed.\n" ITEMS_HELP,
     "hibloom remove seen https://example.org/", 0, SPEC_NEVER, 1, MANY, cmd_remove},
    {"load", "NAME [" STAYING_SYNOPSIS "] | -s SPEC] [--bare] [--replace]", "add millions of items at once",
     "Adds the lines of standard input to a filter in memory, and merges that into NAME at\n"
     "the end of the input. Until then NAME has none of them. For a few items, add is faster.\n"
     "A growing filter that has items already gets the lines as add would send them. A\n"
     "sliding window takes no load: use add.\n" MAKE_WORDS STAYING_HELP WHOLE_HELP BARE_HELP
     "      --replace      makes a new filter of these lines alone, and puts it in the place of\n"
     "                     NAME in one step at the end. Whoever asks meanwhile is answered by\n"
     "                     the old one; its open handles get EMISMATCH then, and open it again.\n"
     "                     What others add to NAME meanwhile is not in the new one: stop them, or\n"
     "                     have them add it again. The new one has the spec of the old one, or\n"
     "                     the one that is given; another seed; and the old one's time to live. A load\n"
     "                     that is killed changes nothing; what it may leave under another name,\n"
     "                     {NAME}.new-..., expires in an hour. In a cluster a filter of several keys,\n"
     "                     or one that grows, is replaced only if its name has a {tag}. Nothing is replaced by\n"
     "                     no lines at all. But a producer that dies in a pipe ends the input like\n"
     "                     any other, and set -o pipefail comes too late: write to a file first\n" COUNT_HELP,
     "hibloom load seen -n 10M -p 0.001 < ten_million_urls", OPEN_OPTIONS | OPTION_REPLACE, SPEC_OPTIONAL, 1, 1,
     cmd_load},
    {"info", "NAME [--json] [--watch[=TIME] [--count N]]" BARE_SYNOPSIS, "show what a filter is, and how full",
     "Prints the spec of a filter, its capacity and how much of that is used, its error rate\n"
     "now, its memory and its time to live. It counts the filter's bits.\n" JSON_HELP
     "      --watch[=T]    again every T, such as 10s or 1m, or every 2 seconds, until it is\n"
     "                     interrupted: on a terminal in one place, else, and with --json, a line\n"
     "                     each time\n"
     "      --count N      ends after N times\n" BARE_SPEC_HELP,
     "hibloom info seen --watch", OPEN_OPTIONS | OPTION_JSON | OPTION_WATCH | OPTION_COUNT, SPEC_IF_BARE, 1, 1,
     cmd_info},
    {"list", "[PATTERN] [--json]", "show the filters on a server",
     "Prints a line for each filter: its size, how many of its bits are set, how much of its\n"
     "capacity is used, its time to live, its kind and its name. PATTERN is one of Redis, as 'day:*';\n"
     "quote it. It looks at all keys of the server, of a cluster at those of all primaries, and\n"
     "counts the bits of the filters, a little at a time, so nobody waits for it. A filter may\n"
     "come twice if the server reorders its keys meanwhile. Bare bitmaps are not listed, as\n"
     "nothing says that they are filters, nor is what the user may not read.\n"
     "      --json         print a JSON object for each filter, on a line, as that of info\n",
     "hibloom list 'day:*'", OPTION_JSON, SPEC_NEVER, 0, 1, cmd_list},
    {"compare", "A B [--json]", "estimate what two filters have in common",
     "Estimates how many items are in A or in B, how many are in both, and the second as a\n"
     "part of the first. A and B must have the same spec and seed, as copies have.\n" JSON_HELP,
     "hibloom compare monday tuesday", OPTION_JSON, SPEC_NEVER, 2, 2, cmd_compare},
    {"copy", "FROM TO [--to URI]", "make a filter with the same spec, seed and items",
     "There must be no filter TO yet. The two can be merged and compared later.\n"
     "      --to URI       TO is on this server\n",
     "hibloom copy seen seen --to redis://other.example.org", OPTION_TO, SPEC_NEVER, 2, 2, cmd_copy},
    {"merge", "NAME FROM... [--from URI]", "add all items of other filters",
     "All of them must have the same spec and seed, as copies have. If there is no filter\n"
     "NAME, it is created.\n"
     "      --from URI     FROM... are on this server\n",
     "hibloom merge week monday tuesday", OPTION_FROM, SPEC_NEVER, 2, MANY, cmd_merge},
    {"import", "NAME (--redisbloom KEY [--from URI] | --redisbloom-file FILE) [--replace]",
     "take over a filter of RedisBloom",
     "Makes a filter NAME, which any Redis holds, of one that the module RedisBloom holds: with\n"
     "the items that are in it, and its capacity and error rate. Adds and look-ups go on here,\n"
     "with the same positions. There must be no filter NAME yet, and nobody may add to the\n"
     "other meanwhile: import sees that, and makes none. One that has grown beyond its first\n"
     "capacity becomes a growing filter. One that an old version of the module has made cannot be\n"
     "taken over, nor one that has grown with another EXPANSION than 2 to 16. NAME is there\n"
     "once it is whole; an import that is killed leaves nothing but {NAME}.import-..., for an hour.\n"
     "      --replace      puts it in the place of the filter NAME, in one step, as load --replace does.\n"
     "                     One that is killed just before that step may leave {NAME}.new-...\n"
     "      --redisbloom KEY\n"
     "                     the other filter, as in BF.ADD KEY. It stays as it is\n"
     "      --from URI     KEY is on this server\n"
     "      --redisbloom-file FILE\n"
     "                     what redis-cli --raw prints of BF.SCANDUMP KEY, for iterator 0, then for\n"
     "                     each that an answer begins with, until that is 0 (which is left out);\n"
     "                     and for 0 once more:\n"
     "  it=0\n"
     "  while redis-cli --raw BF.SCANDUMP KEY $it > part && it=$(head -n 1 part) && [ \"$it\" -gt 0 ]\n"
     "  do cat part; done > FILE\n"
     "  redis-cli --raw BF.SCANDUMP KEY 0 >> FILE\n",
     "hibloom import seen --redisbloom seen --from redis://old.example.org",
     OPTION_REDISBLOOM | OPTION_REDISBLOOM_FILE | OPTION_FROM | OPTION_REPLACE, SPEC_NEVER, 1, 1, cmd_import},
    {"save", "NAME FILE" BARE_SYNOPSIS, "write a filter to a file",
     "If FILE exists, it is replaced once the new one is complete.\n" BARE_SPEC_HELP, "hibloom save seen seen.hbl",
     OPEN_OPTIONS, SPEC_IF_BARE, 2, 2, cmd_save},
    {"restore", "NAME FILE [--replace]" BARE_SYNOPSIS, "add all items of a filter in a file",
     "FILE is one that save has written. If there is no filter NAME, it is created with the\n"
     "spec and the seed of the file; if there is, it must have the same.\n"
     "      --replace      puts a filter of what is in FILE alone in the place of NAME, in one step, as\n"
     "                     load --replace does; whatever spec and seed NAME has\n" BARE_SPEC_HELP,
     "hibloom restore seen seen.hbl", OPEN_OPTIONS | OPTION_REPLACE, SPEC_IF_BARE, 2, 2, cmd_restore},
    {"expire", "NAME TIME" BARE_SYNOPSIS, "set the time to live of a filter",
     "Redis removes the filter after so long: 90s, 30m, 24h, 7d, or a number of seconds. 0\n"
     "removes the time to live.\n" BARE_SPEC_HELP,
     "hibloom expire seen 24h", OPEN_OPTIONS, SPEC_IF_BARE, 2, 2, cmd_expire},
    {"clear", "NAME" BARE_SYNOPSIS, "remove all items of a filter",
     "The filter stays, with its spec and its time to live.\n" BARE_SPEC_HELP, "hibloom clear seen", OPEN_OPTIONS,
     SPEC_IF_BARE, 1, 1, cmd_clear},
    {"replace", "NAME BY", "put a filter in the place of another",
     "Gives the filter BY the name NAME, in one step, and the time to live that NAME has; what was\n"
     "NAME is gone. So a filter is rebuilt under look-ups: make BY, fill it in any way, replace.\n"
     "Whoever asks meanwhile is answered by the one or by the other; open handles of both get\n"
     "EMISMATCH or ENOTFOUND then, and open NAME again. What others add to the old one meanwhile\n"
     "is not in the new one. The specs may differ. Without a filter NAME it is a renaming. To keep\n"
     "BY, copy it first. A sliding window neither replaces nor is replaced, nor is a bitmap that\n"
     "another program fills. In a cluster both must lie in one slot: give both names the same\n"
     "{tag}; of one key, {seen}x can replace seen.\n",
     "hibloom replace seen seen_of_today", 0, SPEC_NEVER, 2, 2, cmd_replace},
    {"repair", "NAME...", "replace the lost keys of filters by empty ones",
     "A filter of several keys (above 16 MB, or partitioned) is damaged if Redis has lost one\n"
     "of them. This makes the lost keys again, empty: items that were in them must be added\n"
     "again. What is there is left alone. Prints a line for each filter that has all its keys.\n",
     "hibloom repair seen", 0, SPEC_NEVER, 1, MANY, cmd_repair},
    {"drop", "NAME..." BARE_SYNOPSIS, "remove filters",
     "Removes each filter, also one that has lost keys. One whose spec cannot be read, or a\n"
     "key that was altered, is left: delete that by hand, with the DEL of Redis.\n" BARE_SPEC_HELP,
     "hibloom drop monday tuesday", OPEN_OPTIONS, SPEC_IF_BARE, 1, MANY, cmd_drop},
    {"stats", "[--json | --prometheus] COMMAND [ARG...]", "run a command, and print what it cost",
     "Runs the command as ever; then prints on standard error what its connections have done:\n"
     "items, commands, bytes, round trips, retries and more, each a whole number. Exits as the\n"
     "command does.\n"
     "      --json         a JSON object on one line (default); a command that takes --json\n"
     "                     prints one, too, on standard output\n"
     "      --prometheus   the text format of Prometheus\n",
     "hibloom stats --prometheus check seen https://example.org/", (unsigned)OPTIONS_OF_ANOTHER, SPEC_OPTIONAL, 1, MANY,
     cmd_stats},
    {"help", "[COMMAND | spec]", "explain a command, or how a spec is written",
     "Without an operand, lists the commands and the options that all of them take.\n", "hibloom help uniq", 0,
     SPEC_NEVER, 0, 1, cmd_help},
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
                "                   unix:///path\n"
                "                   redis+cluster://[...@]host[:port][,host[:port]...]\n"
                "                   redis+sentinel://[...@]host[:port][,...]/MASTER[/db]\n"
                "                 rediss://, rediss+cluster:// and rediss+sentinel:// are the same over\n"
                "                 TLS. Options follow: ?cacert=FILE&retry=1min&command_timeout=2s&db=1\n"
                "                 Other users of this machine can see a password in a command line,\n"
                "                 but not in the environment.\n"
                "  --retry TIME   for how long to try again where a server cannot be reached, does not\n"
                "                 answer, is loading its data and the like; default 10s, 0 = not at all\n"
                "  --min-replicas N\n"
                "                 what is added must be on so many replicas, or it is a failure\n"
                "  --read-from-replicas\n"
                "                 of a cluster or behind Sentinels: ask replicas, which lag behind, so\n"
                "                 that \"no\" is not certain of what was added a moment ago\n"
                "  -h, --help     this help; after a COMMAND, the help of that\n"
                "  -V, --version  the version\n"
                "  --             end of the options: a word after it is an item, also if it begins with -\n\n"
                "Whole numbers may be written 10M or 1e7, but not in a spec. 1 MB is 2^20 bytes.\n"
                "Exit status: 0 done (check: maybe for all), 1 no for some (check only), 2 failure, which\n"
                "standard error explains. hibloom help COMMAND explains a command.\n\n"
                "Example: hibloom uniq seen -n 10M -p 0.001 < urls > new_urls\n");
}

static void help_on_spec(void)
{
    output_text("A spec fixes the size and the hash of a filter. It is a text of words with blanks\n"
                "between them, in any order. Its numbers are written in full: 10000000, not 10M.\n\n"
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
                "  window=SECONDS [slices=N]       a sliding window, of N + 1 filters; default: 4 slices\n\n"
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
                "Example: hibloom create seen -s 'capacity=10000000 error=0.001 hash=siphash'\n");
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
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
        output_text("usage: hibloom [-u URI] %s %s\n\n%c%s.\n\n%s\nExample: %s\n", c->name, c->synopsis,
                    c->summary[0] - 'a' + 'A', c->summary + 1, c->details, c->example);
    }
    return EXIT_YES;
}
