/* The command line of `hibloom` without a server: what makes no sense is refused
 * with exit 2 and words, before anything is sent; and help. */
#include "cli/program.h"

/* Nothing listens there; a command that got so far would say so. */
#define NOWHERE "unix:///nonexistent/hibloom.sock"

struct refused {
    const char *line; /* its words have blanks between them */
    const char *words;
};

static void assert_refused(const struct refused *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char line[256], *rest = line;
        const char *args[32] = {"-u", NOWHERE};

        snprintf(line, sizeof line, "%s", rows[i].line);
        for (size_t k = 2; rest != NULL && *rest != '\0'; k++)
            args[k] = strsep(&rest, " ");
        program_assert("", 2, "", rows[i].words, args, __FILE__, __LINE__);
    }
}

static void a_wrong_command_line_is_trouble(void **state)
{
    static const struct refused rows[] = {
        {"", "a command is missing"},
        {"frobnicate", "frobnicate is not a command"},
        {"help frob", "frob is not a command"},
        {"inof name", "inof is not a command; did you mean info?"},
        {"has name x", "has is not a command; did you mean check?"},
        {"ls", "ls is not a command; did you mean list?"},
        {"plan -n 10 -p 0,01", "hint: write a point, not a comma, as in 0.01"},
        {"--frob plan", "--frob is not an option"},
        {"info name --jsno", "--jsno is not an option; did you mean --json?"},
        {"plan --lay-out=x", "--lay-out=x is not an option; did you mean --layout?"},
        {"add name -x", "-x is not an option"},
        {"add name --nonsense=yes", "--nonsense=yes is not an option; see hibloom help add"},
        {"plan -x4", "-x is not an option; see hibloom help plan"},
        {"plan --json -xV", "-x is not an option; see hibloom help plan"},
        {"add name --bare=yes", "--bare takes no value"},
        {"plan -p 0.01 -n", "-n needs a value"},
        {"plan -n 10 -p 0.1 --layout", "--layout needs a value"},
        {"plan -n 10 -p 0.1 --layout oval", "--layout 'oval' is not a layout: classic, partitioned or blocked"},
        {"add a --commands get", "--commands 'get' is neither setbit nor bitfield"},
        {"plan -n 10 -p 0.1 --prefer speed", "--prefer 'speed' is none of add, lookup and memory"},
        {"plan -n 10 -p 0.1 --hashes=x", "--hashes 'x' is not a number"},
        {"check name --near soon x", "--near 'soon' is not a number"},
        {"--retry x check a b", "--retry 'x' "},
        {"--retry 5000000s check a b", "--retry '5000000s' is too large"},
        {"--min-replicas -1 check a b", "--min-replicas '-1' "},
        {"save a", "save: FILE is missing: hibloom save NAME FILE"},
        {"merge a", "merge: FROM is missing: hibloom merge NAME FROM..."},
        {"stats", "stats: COMMAND is missing: hibloom stats [--json"},
    };

    assert_refused(rows, COUNT(rows));
}

static void options_that_make_no_sense_together_are_trouble(void **state)
{
    static const struct refused rows[] = {
        {"plan", "-n and -p are missing"},
        {"create a", "or -s"},
        {"plan -n 10", "-n and -p go together"},
        {"plan -p 0.1", "-n and -p go together"},
        {"plan -k 3", "-n and -p go together"},
        {"add a -n 10 -k 3 item", "-n and -p go together"},
        {"plan --layout blocked", "-n and -p go together"},
        {"plan --prefer add", "-n and -p go together"},
        {"bench -k 4", "-n and -p go together"},
        {"add a --bare -n 10 -p 0.1 --prefer add item", "give -k and --layout, not --prefer"},
        {"-u memory: bench", "needs a server"},
        {"bench -n 1G -p 0.01", "more than 1 GB"},
        {"bench -n 10M -p 1e-36", "in the blocked layout that would take"},
        {"drop -n 5 a", "takes a spec with --bare only"},
        {"info a -s php-uids", "with --bare only"},
        {"clear a -n 10 -p 0.1", "with --bare only"},
        {"create a -s php-uids --layout blocked", "-s is a whole spec"},
        {"create a -s php-uids -n 1 -p 0.1", "-s is a whole spec"},
        {"check a -s php-uids -k 3 item", "-s is a whole spec"},
        {"add a --bare item", "--bare needs -s"},
        {"drop a --bare", "--bare needs -s"},
        {"load a --replace --bare -s php-uids", "give one of them"},
        {"load a -n 10 -p 0.1 --window 1h", "takes no merge: use hibloom add"},
        {"list --json --prometheus", "give --json or --prometheus"},
        {"info a --count 2", "--count goes with --watch"},
        {"info a --watch=0s", "is not a second"},
        {"info a --max-used x", "--max-used 'x' is not a number"},
        {"copy a b --prefer add", "copy: does not take --prefer; see hibloom help copy"},
        {"drop a -k 3", "takes a spec with --bare only"},
        {"remove a -k 3 item", "remove: does not take -k; see hibloom help remove"},
    };

    assert_refused(rows, COUNT(rows));
    assert_run("", 2, "", "takes no merge: use hibloom add", "-u", NOWHERE, "load", "a", "--replace", "-s",
               "capacity=10 error=0.1 window=60s");
}

/* Texts that are refused in the same words. */
struct none {
    const char *words, *texts[20];
};

static void numbers_that_are_none_are_trouble(void **state)
{
    static const struct none wholes[] = {
        {"is not a number",
         {"", "x", "-5", "+5", " 5", "5 ", "0x10", "10MM", "10P", "1e", "1e+", "1.2.3", ".", "inf", "nan", "M",
          "1,000"}},
        {"is not a whole number", {"1.5", "1e-1", "1.2345k"}},
        {"has too many digits", {"18446744073709551616"}},
        {"is too large", {"1e20", "18446745T", "1e99999999999999999999"}},
    };
    static const struct none rates[] = {
        {"is not a number", {"", "x", "nan", "inf", "0x1p-3", " 0.1", "0.1 ", "0,1", "1%"}},
        {"is not between", {"0", "1", "-0.1", "1.5", "1e-999", "1e999"}},
    };
    static const struct none hashes[] = {
        {"-k 'x' is not a number", {"x"}},
        {"is not between 1 and 128", {"0", "129", "4294967300"}},
    };

    for (size_t i = 0; i < COUNT(wholes); i++)
        for (const char *const *text = wholes[i].texts; *text != NULL; text++)
            assert_run("", 2, "", wholes[i].words, "plan", "-n", *text, "-p", "0.01");
    for (size_t i = 0; i < COUNT(rates); i++)
        for (const char *const *text = rates[i].texts; *text != NULL; text++)
            assert_run("", 2, "", rates[i].words, "plan", "-n", "1000", "-p", *text);
    for (size_t i = 0; i < COUNT(hashes); i++)
        for (const char *const *text = hashes[i].texts; *text != NULL; text++)
            assert_run("", 2, "", hashes[i].words, "plan", "-n", "1000", "-p", "0.01", "-k", *text);
}

static void times_are_refused_where_they_are_none(void **state)
{
    static const struct none times[] = {
        {"is no time such as 90s, 30min, 24h or 7d",
         {"soon", "", "h", "1w", "1.5h", "-1h", "1hh", "1h ", "0.5", "1M", "30m"}},
        {"has no unit: ms, s, min, h or d", {"24", "3000"}},
        {"is too large", {"99999999999999999999s", "300000000000000000d"}},
        {"is not a whole number of seconds", {"1500ms"}},
        {"is not between 1 and 1000000000", {"0s", "20000d"}},
    };

    for (size_t i = 0; i < COUNT(times); i++)
        for (const char *const *text = times[i].texts; *text != NULL; text++) {
            assert_run("", 2, "", times[i].words, "plan", "-n", "10", "-p", "0.1", "--window", *text);
            if (i < 3)
                assert_run("", 2, "", times[i].words, "-u", NOWHERE, "expire", "--", "a", *text);
        }
}

/* The complaint has this line or, if it is NULL, no hint. */
static void assert_hint(const char *line, const char *const args[])
{
    const char *said = complaint(args);

    if (line != NULL ? strstr(said, line) == NULL : strstr(said, "hint") != NULL)
        fail_msg("not \"%s\", but: %s", line != NULL ? line : "without a hint", said);
}

static void numbers_as_people_write_them_are_refused_with_a_hint(void **state)
{
    static const char in_full[] = "\nhibloom: hint: in a spec, write 100000\n";
    static const char blanks[] = "\nhibloom: hint: no blanks around '='\n";
    static const char *const without[] = {"capacity=x error=0.01", "capacity=1.5 error=0.01", "capacity=0 error=0.01",
                                          "capacity=10 error=2", "nonsense"};

    assert_hint(in_full, ARGS("-u", NOWHERE, "create", "a", "-s", "capacity=1e5 error=0.01"));
    assert_hint(in_full, ARGS("positions", "error=0.01 capacity=.1M"));
    assert_hint(blanks, ARGS("positions", "capacity = 10 error=0.01"));
    assert_hint(blanks, ARGS("positions", "capacity= 10 error=0.01"));
    assert_hint(blanks, ARGS("positions", "capacity=10 error =0.01"));
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        assert_hint(NULL, ARGS("positions", without[i]));

    assert_hint("\nhibloom: hint: write 0.01\n", ARGS("plan", "-n", "10", "-p", "1%"));
    assert_hint("\nhibloom: hint: write 0.001\n", ARGS("plan", "-n", "10", "--error", "0.1%"));
    assert_hint(NULL, ARGS("plan", "-n", "10", "-p", "100%"));
    assert_hint(NULL, ARGS("plan", "-n", "10", "-p", "%"));
    assert_hint(NULL, ARGS("plan", "-n", "1%", "-p", "0.1"));
    assert_hint("\nhibloom: hint: write --watch=10s, in one word\n",
                ARGS("-u", NOWHERE, "info", "a", "--watch", "10s"));
    assert_hint("\nhibloom: hint: write --watch=1s, in one word\n", ARGS("-u", NOWHERE, "info", "--watch", "a", "1s"));
    assert_hint(NULL, ARGS("-u", NOWHERE, "info", "a", "--watch", "b"));
    assert_hint(NULL, ARGS("-u", NOWHERE, "info", "a", "1"));
    assert_hint("\nhibloom: hint: an item that begins with '-' stands behind --\n",
                ARGS("-u", NOWHERE, "check", "seen", "-x"));
    assert_hint("error=P growth=3'\n", ARGS("plan", "-n", "10", "-p", "0.1", "--grow=3"));
    assert_hint("hibloom load a < b. A file of hibloom save is loaded by hibloom restore a b\n",
                ARGS("-u", NOWHERE, "load", "a", "b"));
}

/* ---- Help and version: in which ways they are asked for, and what they must say ---------- */

static const char *const names[] = {"plan",    "bench",  "positions", "create",  "add",    "check", "uniq",   "remove",
                                    "load",    "info",   "list",      "compare", "copy",   "merge", "import", "save",
                                    "restore", "expire", "clear",     "replace", "repair", "drop",  "stats",  "help"};

#define N_NAMES (sizeof names / sizeof *names)

static void assert_in(const char *words, const char *said)
{
    if (strstr(said, words) == NULL)
        fail_msg("\"%s\" is not in:\n%s", words, said);
}

static void assert_says(const char *words, const char *const args[])
{
    assert_in(words, said_by(args));
}

static void assert_say_the_same(const char *const a[], const char *const b[])
{
    program_assert("", 0, said_by(a), "", b, __FILE__, __LINE__);
}

static void help_lists_every_command(void **state)
{
    char line[32];

    const char *said = said_by(ARGS("--help"));
    for (size_t i = 0; i < N_NAMES; i++) {
        snprintf(line, sizeof line, "\n  %-11s ", names[i]);
        assert_in(line, said);
    }
    assert_in("Exit status: 0 ", said);
    assert_in("$HIBLOOM_URL", said);
    assert_in("redis+cluster://", said);
    assert_in("redis+sentinel://", said);
    assert_in("rediss://", said);
    assert_in("default 10s, 0 = not at all", said);
}

static void help_can_be_asked_for_in_any_way(void **state)
{
    assert_say_the_same(ARGS("--help"), ARGS("-h"));
    assert_say_the_same(ARGS("--help"), ARGS("help"));
    for (size_t i = 0; i < N_NAMES; i++)
        assert_say_the_same(ARGS(names[i], "--help"), ARGS("help", names[i]));
    for (size_t i = 0; i < N_NAMES; i += test_is_slow() ? 3 : 1) {
        assert_say_the_same(ARGS(names[i], "--help"), ARGS("-h", names[i]));
        assert_say_the_same(ARGS(names[i], "--help"), ARGS(names[i], "a", "b", "c", "-h"));
    }
}

/* Whether it is a word of the text. */
static bool names_option(const char *usage, const char *option)
{
    for (const char *at = usage; (at = strstr(at, option)) != NULL; at += strlen(option))
        if (strchr(" [(", at[-1]) != NULL && strchr(" ])[=\n", at[strlen(option)]) != NULL)
            return true;
    return false;
}

/* The line of its help, which begins so; what is behind that. */
static const char *usage_of(char usage[512], const char *name)
{
    char begin[64];

    snprintf(begin, sizeof begin, "usage: hibloom [-u URI] %s ", name);
    snprintf(usage, 512, "%s", said_by(ARGS("help", name)));
    usage[strcspn(usage, "\n") + 1] = '\0';
    assert_memory_equal(usage, begin, strlen(begin));
    return usage + strlen(begin);
}

/* How many operands a command needs: words in capitals before all options. */
static size_t operands_of(const char *synopsis)
{
    size_t n = 0;

    for (; *synopsis >= 'A' && *synopsis <= 'Z'; synopsis += strspn(synopsis, " "), n++)
        synopsis += strcspn(synopsis, " \n");
    return n;
}

static void a_command_takes_the_options_of_its_usage_and_no_others(void **state)
{
    static const char *const options[] = {
        "-n10",      "-p0.1",    "-k3",          "-sphp-uids", "--layout=blocked",    "--prefer=add", "--window=1h",
        "--near=5",  "--from=x", "--to=x",       "--count=2",  "--commands=setbit",   "--max-used=5", "--redisbloom=x",
        "--bare",    "--json",   "--prometheus", "--counting", "--redisbloom-file=x", "--grow",       "--watch",
        "--replace", "--crlf"};
    char usage[512], option[32], refusal[64];

    for (size_t i = 0; i < N_NAMES; i++) {
        const size_t n = operands_of(usage_of(usage, names[i]));
        for (size_t k = 0; strcmp(names[i], "stats") != 0 && k < COUNT(options); k++) {
            if (test_is_slow() && (i + k) % 3 != 0)
                continue;
            const char *args[8] = {names[i], "-u", "memory:", options[k], "1", "1"};
            args[4 + n] = NULL;
            const char *said = ran("", args)->complained.data;
            snprintf(option, sizeof option, "%.*s", options[k][1] == '-' ? (int)strcspn(options[k], "=") : 2,
                     options[k]);
            snprintf(refusal, sizeof refusal, "%s: does not take %s;", names[i], option);
            if (strstr(said, "-n and -p go together") != NULL || strstr(said, "with --bare only") != NULL)
                continue; /* it wants others with it */
            if ((strstr(said, refusal) != NULL) == names_option(usage, option))
                fail_msg("%s, and its usage says: %s", said, usage);
        }
    }
}

static void a_command_takes_the_operands_of_its_usage_and_no_others(void **state)
{
    char usage[512], missing[1024];

    for (size_t i = 0; i < N_NAMES; i++) {
        const char *args[8] = {names[i], "-u", "unix:///nonexistent/hibloom.sock"};
        const char *synopsis = usage_of(usage, names[i]);
        size_t n = operands_of(synopsis);
        for (size_t k = 0; k < n; k++) {
            snprintf(missing, sizeof missing, "%s: %.*s is missing: hibloom %s %s", names[i],
                     (int)strcspn(synopsis, " .\n"), synopsis, names[i], usage_of(usage, names[i]));
            if (strcmp(ran("", args)->complained.data + strlen("hibloom: "), missing) != 0)
                fail_msg("%s, not %s", ran("", args)->complained.data, missing);
            args[3 + k] = "1";
            synopsis += strcspn(synopsis, " ") + 1;
        }
        if (strstr(usage, "...") != NULL)
            continue;
        for (const size_t most = n + (strchr("lh", names[i][0]) != NULL && n == 0); n <= most; n++)
            args[3 + n] = "2";
        assert_non_null(strstr(complaint(args), ": '2' is one too many: hibloom "));
    }
}

/* The last line of each is "Example: hibloom ..." with that command. */
static void help_ends_in_an_example(void **state)
{
    char example[64];

    for (size_t i = 0; i < N_NAMES; i++) {
        const char *said = said_by(ARGS("help", names[i])), *last = said + strlen(said) - 1;

        while (last[-1] != '\n')
            last--;
        snprintf(example, sizeof example, "Example: hibloom %s ", names[i]);
        if (strncmp(last, example, strlen(example)) != 0)
            fail_msg("help %s does not end in an example, but in: %s", names[i], last);
    }
    assert_says("\nExample: hibloom ", ARGS("help"));
    assert_says("\nExample: hibloom ", ARGS("help", "spec"));
}

/* Each example is a command line that makes sense: without a server it fails only for want of one. */
static void examples_are_valid_command_lines(void **state)
{
    char script[512];

    for (size_t i = 0; i < N_NAMES; i++) {
        const char *example = strstr(said_by(ARGS("help", names[i])), "Example: hibloom ");

        example += strlen("Example: hibloom");
        snprintf(script, sizeof script, "exec \"$0\" --retry 0 -u unix:///nonexistent/hibloom.sock %.*s",
                 (int)strcspn(example, "<\n"), example);
        const struct program *p = ran_by("sh", "", ARGS("-c", script, program_path()));
        if (p->exit != 0 && strstr(p->complained.data, hibloom_strerror(HIBLOOM_EIO)) == NULL &&
            strstr(p->complained.data, "seen.hbl: No such file") == NULL)
            fail_msg("%s: %s", script, p->complained.data);
    }
}

/* What takes a spec says where its words are; they are all there. */
static void help_leads_to_the_words_of_a_spec(void **state)
{
    static const char *const with_spec[] = {"positions", "create", "add",     "check",  "uniq",  "load",
                                            "info",      "save",   "restore", "expire", "clear", "drop"};
    static const char *const words[] = {"capacity=",     "error=",   "bits=",     "hashes=",      "hash=",
                                        "xxh3",          "siphash",  "murmur3",   "poly",         "php-mt",
                                        "php-mt-legacy", "seed=",    "seeds=",    "layout=",      "classic",
                                        "partitioned",   "blocked",  "segments=", "counters=",    "empty=excluded",
                                        "php-poly8",     "php-uids", "py-mmh3",   "py-mmh3-redis"};

    for (size_t i = 0; i < sizeof with_spec / sizeof *with_spec; i++)
        assert_says("hibloom help spec", ARGS("help", with_spec[i]));
    const char *said = said_by(ARGS("help", "spec"));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_in(words[i], said);
}

static void help_promises_no_more_than_is_done(void **state)
{
    assert_says("delete that by hand, with the DEL of Redis", ARGS("help", "drop"));
    assert_says("10M or 1e7; in a spec 10m", ARGS("help"));
    assert_says("Numbers may end in k, m or g", ARGS("help", "spec"));
    assert_says("failed or was stopped", ARGS("help", "uniq"));
    assert_says("a filter that was forgotten is made again", ARGS("help", "uniq"));
    assert_says("on standard error", ARGS("help", "stats"));
    assert_says("with at most half more memory", ARGS("help", "plan"));
    assert_says("A filter that exists stays as it is", ARGS("help", "uniq"));
    assert_says("The rates are computed", ARGS("help", "plan"));
    assert_says("removed at the end, also when bench is stopped", ARGS("help", "bench"));
    assert_says("Prints a line", ARGS("help", "repair"));
}

static void short_options_have_long_forms(void **state)
{
    assert_say_the_same(ARGS("plan", "-n", "1000", "-p", "0.01", "-k", "4"),
                        ARGS("plan", "--capacity", "1000", "--error=0.01", "--hashes", "4"));
    assert_run("", 0, "added 1, new 1\n", "", "--uri", "memory:", "add", "a", "--spec", "php-uids", "x");
}

static void version_is_the_library_s(void **state)
{
    char line[64];

    snprintf(line, sizeof line, "hibloom %s\n", hibloom_version());
    assert_run("", 0, line, "", "--version");
    assert_run("", 0, line, "", "-V");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_command_line_is_trouble),
        cmocka_unit_test(options_that_make_no_sense_together_are_trouble),
        cmocka_unit_test(numbers_that_are_none_are_trouble),
        cmocka_unit_test(times_are_refused_where_they_are_none),
        cmocka_unit_test(numbers_as_people_write_them_are_refused_with_a_hint),
        cmocka_unit_test(help_lists_every_command),
        cmocka_unit_test(help_can_be_asked_for_in_any_way),
        cmocka_unit_test(a_command_takes_the_options_of_its_usage_and_no_others),
        cmocka_unit_test(a_command_takes_the_operands_of_its_usage_and_no_others),
        cmocka_unit_test(help_ends_in_an_example),
        cmocka_unit_test(examples_are_valid_command_lines),
        cmocka_unit_test(help_leads_to_the_words_of_a_spec),
        cmocka_unit_test(help_promises_no_more_than_is_done),
        cmocka_unit_test(short_options_have_long_forms),
        cmocka_unit_test(version_is_the_library_s),
    };

    return cmocka_run_group_tests_name("cli: the command line", tests, NULL, NULL);
}
