/* Help and version: in which ways they are asked for, and what they must say. */
#include "cli/program.h"

static const char *const names[] = {"plan",    "bench",  "positions", "create",  "add",    "check", "uniq",   "remove",
                                    "load",    "info",   "list",      "compare", "copy",   "merge", "import", "save",
                                    "restore", "expire", "clear",     "replace", "repair", "drop",  "stats",  "help"};

#define N_NAMES (sizeof names / sizeof *names)

static void assert_says(const char *words, const char *const args[])
{
    const char *said = said_by(args);

    if (strstr(said, words) == NULL)
        fail_msg("\"%s\" is not in:\n%s", words, said);
}

static void assert_say_the_same(const char *const a[], const char *const b[])
{
    char *said = strdup(said_by(a));

    program_assert("", 0, said, "", b, __FILE__, __LINE__);
    free(said);
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

/* Each example is a command line that makes sense: without a server it fails
 * only for want of one. */
static void examples_are_valid_command_lines(void **state)
{
    char script[512];
    struct program p;

    for (size_t i = 0; i < N_NAMES; i++) {
        const char *example = strstr(said_by(ARGS("help", names[i])), "Example: hibloom ");

        example += strlen("Example: hibloom");
        snprintf(script, sizeof script, "exec \"$0\" --retry 0 -u unix:///nonexistent/hibloom.sock %.*s",
                 (int)strcspn(example, "<\n"), example);
        program_start_at(&p, "sh", ARGS("-c", script, program_path()), NULL);
        program_end(&p);
        if (p.exit != 0 && strstr(p.complained.data, hibloom_strerror(HIBLOOM_EIO)) == NULL &&
            strstr(p.complained.data, "seen.hbl: No such file") == NULL)
            fail_msg("%s: %s", script, p.complained.data);
        program_free(&p);
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

    return cmocka_run_group_tests_name("cli: help", tests, NULL, NULL);
}
