/* Help and version: in which ways they are asked for, and what they must say. */
#include "cli/program.h"

static const char *const names[] = {"plan",    "bench",  "positions", "create",  "add",    "check", "uniq",   "remove",
                                    "load",    "info",   "list",      "compare", "copy",   "merge", "import", "save",
                                    "restore", "expire", "clear",     "replace", "repair", "drop",  "stats",  "help"};

#define N_NAMES (sizeof names / sizeof *names)

/* What a run says that succeeds and does not complain; to be freed. */
static char *said_by(const char *const args[])
{
    struct program p;

    program_run(&p, "", 0, args);
    assert_int_equal(p.exit, 0);
    assert_string_equal(p.complained.data, "");
    text_free(&p.complained);
    return p.said.data;
}

static void assert_says(const char *words, const char *const args[])
{
    char *said = said_by(args);

    if (strstr(said, words) == NULL)
        fail_msg("\"%s\" is not in:\n%s", words, said);
    free(said);
}

static void assert_say_the_same(const char *const a[], const char *const b[])
{
    char *said_a = said_by(a), *said_b = said_by(b);

    assert_string_equal(said_a, said_b);
    free(said_a);
    free(said_b);
}

static void help_lists_every_command(void **state)
{
    char line[32];

    for (size_t i = 0; i < N_NAMES; i++) {
        snprintf(line, sizeof line, "\n  %-11s ", names[i]);
        assert_says(line, ARGS("--help"));
    }
    assert_says("Exit status: 0 ", ARGS("--help"));
    assert_says("$HIBLOOM_URL", ARGS("--help"));
    assert_says("redis+cluster://", ARGS("--help"));
    assert_says("redis+sentinel://", ARGS("--help"));
    assert_says("rediss://", ARGS("--help"));
    assert_says("default 10s, 0 = not at all", ARGS("--help"));
}

static void help_can_be_asked_for_in_any_way(void **state)
{
    assert_say_the_same(ARGS("--help"), ARGS("-h"));
    assert_say_the_same(ARGS("--help"), ARGS("help"));
    for (size_t i = 0; i < N_NAMES; i++) {
        assert_say_the_same(ARGS(names[i], "--help"), ARGS("help", names[i]));
        assert_say_the_same(ARGS(names[i], "--help"), ARGS("-h", names[i]));
        assert_say_the_same(ARGS(names[i], "--help"), ARGS(names[i], "a", "b", "c", "-h"));
    }
}

#define STAYING \
    "-n N -p P [-k K] [--layout classic|partitioned|blocked] [--prefer add|lookup|memory] [--counting | --grow"
#define SIZE STAYING " | --window T]"
#define MAKE "NAME [" SIZE " | -s SPEC] [--bare]"
#define OPEN MAKE " [--commands setbit|bitfield] [--near MS|off] [--crlf]"
#define BARE " [--bare -s SPEC]"

static void each_command_has_its_own_help(void **state)
{
    static const char *const usages[N_NAMES] = {"plan (" SIZE " | -s SPEC) [--commands setbit|bitfield]\n",
                                                "bench [-n N -p P [-k K]] [--json]\n",
                                                "positions SPEC [ITEM...] [--crlf]\n",
                                                "create NAME (" SIZE " | -s SPEC)\n",
                                                "add " OPEN " [ITEM...]\n",
                                                "check " OPEN " [ITEM...]\n",
                                                "uniq " OPEN "\n",
                                                "remove NAME [ITEM...] [--crlf]\n",
                                                "load NAME [" STAYING "] | -s SPEC] [--bare] [--replace] [--crlf]\n",
                                                "info NAME [--json] [--max-used N] [--watch[=TIME] [--count N]]" BARE
                                                "\n",
                                                "list [PATTERN] [--json | --prometheus]\n",
                                                "compare A B [--json]\n",
                                                "copy FROM TO [--to URI]\n",
                                                "merge NAME FROM... [--from URI]\n",
                                                "import NAME (--redisbloom KEY [--from URI] | --redisbloom-file FILE) "
                                                "[--replace]\n",
                                                "save NAME FILE" BARE "\n",
                                                "restore NAME FILE [--replace]" BARE "\n",
                                                "expire NAME TIME" BARE "\n",
                                                "clear NAME" BARE "\n",
                                                "replace NAME BY\n",
                                                "repair NAME...\n",
                                                "drop NAME..." BARE "\n",
                                                "stats [--json | --prometheus] COMMAND [ARG...]\n",
                                                "help [COMMAND | spec]\n"};
    char usage[512];

    for (size_t i = 0; i < N_NAMES; i++) {
        snprintf(usage, sizeof usage, "usage: hibloom [-u URI] %s", usages[i]);
        assert_says(usage, ARGS("help", names[i]));
    }
}

/* The last line of each is "Example: hibloom ..." with that command. */
static void help_ends_in_an_example(void **state)
{
    char example[64];

    for (size_t i = 0; i < N_NAMES; i++) {
        char *said = said_by(ARGS("help", names[i]));

        snprintf(example, sizeof example, "\nExample: hibloom %s ", names[i]);
        said[strlen(said) - 1] = '\0';
        if (strncmp(strrchr(said, '\n'), example, strlen(example)) != 0)
            fail_msg("help %s does not end in an example, but in: %s", names[i], strrchr(said, '\n'));
        free(said);
    }
    assert_says("\nExample: hibloom ", ARGS("help"));
    assert_says("\nExample: hibloom ", ARGS("help", "spec"));
}

/* Each example is a command line that makes sense: without a server it fails
 * only for want of one. */
static void examples_are_valid_command_lines(void **state)
{
    char script[512];
    struct program p;

    for (size_t i = 0; i < N_NAMES; i++) {
        char *said = said_by(ARGS("help", names[i])), *example = strstr(said, "Example: hibloom ");

        example += strlen("Example: hibloom");
        example[strcspn(example, "<\n")] = '\0';
        snprintf(script, sizeof script, "exec \"$0\" --retry 0 -u unix:///nonexistent/hibloom.sock %s", example);
        program_start_at(&p, "sh", ARGS("-c", script, program_path()), NULL);
        program_end(&p);
        if (p.exit != 0 && strstr(p.complained.data, hibloom_strerror(HIBLOOM_EIO)) == NULL &&
            strstr(p.complained.data, "seen.hbl: No such file") == NULL)
            fail_msg("%s: %s", example, p.complained.data);
        program_free(&p);
        free(said);
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
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_says(words[i], ARGS("help", "spec"));
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
        cmocka_unit_test(help_lists_every_command),           cmocka_unit_test(help_can_be_asked_for_in_any_way),
        cmocka_unit_test(each_command_has_its_own_help),      cmocka_unit_test(help_ends_in_an_example),
        cmocka_unit_test(examples_are_valid_command_lines),   cmocka_unit_test(help_leads_to_the_words_of_a_spec),
        cmocka_unit_test(help_promises_no_more_than_is_done), cmocka_unit_test(short_options_have_long_forms),
        cmocka_unit_test(version_is_the_library_s),
    };

    return cmocka_run_group_tests_name("cli: help", tests, NULL, NULL);
}
