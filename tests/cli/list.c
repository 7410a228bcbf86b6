/* list, and info --watch: what is on a server, and how one filter fares. */
#include "cli/redis.h"
#include "support/served.h"

#include <pty.h>

static int set_up(void **state)
{
    served_set_up(state);
    return setenv("HIBLOOM_URL", redis_server_uri(server), 1);
}

#define HEAD "size (KB=2^10)       fill       used  time to live  kind      name\n"

static void list_shows_size_fill_use_and_time_to_live(void **state)
{
    assert_run("", 0, HEAD, "", "list");
    assert_run("", 0, "", "", "create", "two", "-s", "hash=poly bits=16 hashes=2 seeds=3,5 capacity=4");
    assert_run("", 0, NULL, "", "add", "two", "a");
    assert_run("", 0, "", "", "expire", "two", "5000s");
    assert_run("", 0, HEAD "         156 B     6.25 %     12.9 %        5000 s  plain     two\n", "", "list");
    assert_run("", 0, "", "", "create", "none\x1b[31m", "-s", "hash=poly bits=16 hashes=2 seeds=3,5");
    assert_run("", 0, HEAD "         145 B     0.00 %          -          none  plain     none?[31m\n", "", "list",
               "n*");
    assert_run("", 0, "", "", "create",
               "one\xc2\x9b"
               "31m\xc3\xa9",
               "-s", "hash=poly bits=16 hashes=2 seeds=3,5");
    assert_run("", 0, HEAD "         145 B     0.00 %          -          none  plain     one??31m\xc3\xa9\n", "",
               "list", "o*");
    assert_run("", 0, HEAD, "", "list", "nothing*");
    assert_run("", 0, HEAD, "", "-u", "memory:", "list");
}

static void list_json_is_that_of_info_on_a_line(void **state)
{
    struct program info;
    size_t at = 0;

    assert_run("", 0, "", "", "create", "one", "-s", "hash=poly bits=16 hashes=2 seeds=3,5");
    program_run(&info, "", 0, ARGS("info", "one", "--json"));
    for (const char *c = info.said.data; *c != '\0'; c++) { /* the same but for its blanks and lines */
        if (c[0] == '\n' && c[1] == ' ')
            c += c[-1] == ',' ? 2 : 3;
        if (*c == '\n' && c[1] == '}')
            c++;
        info.said.data[at++] = *c;
    }
    info.said.data[at] = '\0';
    assert_string_equal(said_by(ARGS("list", "--json")), info.said.data);
    program_free(&info);
}

/* Strict: each metric has its two lines of comments, then all its samples; no series comes twice. Prints the samples. */
static const char exposition_reader[] =
    "import re, sys\n"
    "label = r'[a-z_]+=\"(?:[^\"\\\\\\n]|\\\\[\\\\\"n])*\"'\n"
    "sample = re.compile(r'([a-z_]+)(?:\\{%s(?:,%s)*\\})? ([-+.e0-9]+|\\+Inf)' % (label, label))\n"
    "text = sys.stdin.buffer.read().decode('utf-8', 'strict')\n"
    "assert text.endswith('\\n')\n"
    "metric, done, series = None, set(), set()\n"
    "lines = iter(text[:-1].split('\\n'))\n"
    "for line in lines:\n"
    "    help = re.fullmatch('# HELP ([a-z_]+) [^\\\\\\\\]+', line)\n"
    "    if help:\n"
    "        metric = help[1]\n"
    "        assert metric not in done, metric\n"
    "        done.add(metric)\n"
    "        assert next(lines) == '# TYPE %s gauge' % metric\n"
    "        continue\n"
    "    got = sample.fullmatch(line)\n"
    "    assert got and got[1] == metric, line\n"
    "    name = line[:line.rindex(' ')]\n"
    "    assert name not in series, name\n"
    "    series.add(name)\n"
    "    float(got[2])\n"
    "    print(line)\n";

/* The samples that list --prometheus prints, which exits so. They last until the next run. */
static const char *read_gauges(int exit_status)
{
    const struct program *p = ran("", ARGS("list", "--prometheus"));

    assert_int_equal(p->exit, exit_status);
    p = ran_by("/usr/bin/python3", p->said.data, ARGS("-c", exposition_reader));
    if (p->exit != 0)
        fail_msg("not the text format: %s", p->complained.data);
    return p->said.data;
}

static void assert_sample(const char *samples, const char *line)
{
    char between[512];

    snprintf(between, sizeof between, "\n%s\n", line);
    if (strstr(samples, between) == NULL)
        fail_msg("%s: %s", line, samples);
}

static void gauges_say_what_list_says(void **state)
{
    assert_string_equal(read_gauges(0), "hibloom_filters 0\nhibloom_filters_bytes 0\nhibloom_filters_links 0\n"
                                        "hibloom_filters_unreadable 0\n");
    assert_run("", 0, "", "", "create", "two", "-s", "hash=poly bits=16 hashes=2 seeds=3,5 capacity=4");
    assert_run("", 0, NULL, "", "add", "two", "a");
    assert_run("", 0, "", "", "expire", "two", "5000s");
    assert_run("", 0, "", "", "create", "a\"b\\c\nd\xff\xc3\xa9", "-s", "hash=poly bits=16 hashes=2 seeds=3,5");
    assert_run("", 0, "", "", "create", "grows", "-n", "100", "-p", "0.01", "--grow");
    assert_run("", 0, "", "", "create", "slides", "-n", "100", "-p", "0.01", "--window", "1h");
    const char *said = read_gauges(0);
    assert_non_null(strstr(said, "hibloom_filter_bytes{name=\"two\",kind=\"plain\"} 156\n"));
    assert_sample(said, "hibloom_filter_fill_ratio{name=\"two\",kind=\"plain\"} 0.0625");
    assert_non_null(strstr(said, "hibloom_filter_used_ratio{name=\"two\",kind=\"plain\"} 0.129"));
    assert_sample(said, "hibloom_filter_error_ratio{name=\"two\",kind=\"plain\"} 0.00390625");
    assert_non_null(strstr(said, "hibloom_filter_time_to_live_seconds{name=\"two\",kind=\"plain\"} 49"));
    assert_null(strstr(said, "hibloom_filter_time_to_live_seconds{name=\"grows\""));
    assert_sample(said, "hibloom_filter_links{name=\"a\\\"b\\\\c\\nd\xef\xbf\xbd"
                        "ff\xc3\xa9\",kind=\"plain\"} 1");
    assert_null(strstr(said, "hibloom_filter_used_ratio{name=\"grows\""));
    assert_null(strstr(said, "hibloom_filter_used_ratio{name=\"a"));
    assert_sample(said, "hibloom_filter_used_ratio{name=\"slides\",kind=\"window\"} 0");
    assert_sample(said, "hibloom_filter_links{name=\"slides\",kind=\"window\"} 5");
    assert_sample(said, "hibloom_filters 4");
    assert_sample(said, "hibloom_filters_links 8");
    assert_run("", 0, NULL, NULL, "stats", "--prometheus", "list", "--prometheus");
}

static void a_damaged_filter_is_counted_and_a_server_that_fails_prints_none(void **state)
{
    assert_run("", 0, "", "", "create", "broken", "-s", "bits=1000 hashes=2 segments=2");
    assert_run("", 0, "", "", "create", "sound", "-s", "bits=1000 hashes=2");
    freeReplyObject(redis_server_must(server, "DEL broken:1"));
    const char *said = read_gauges(2);
    assert_sample(said, "hibloom_filters 1");
    assert_sample(said, "hibloom_filters_unreadable 1");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EIO), "-u", "redis://127.0.0.1:1", "--retry", "0", "list",
               "--prometheus");
}

static void a_damaged_filter_is_complained_of_and_the_others_are_shown(void **state)
{
    assert_run("", 0, "", "", "create", "good", "-s", "bits=64 hashes=2");
    assert_run("", 0, "", "", "create", "lame", "-s", "bits=64 hashes=2 segments=3");
    assert_run("", 0, "", "", "create", "rude\x1b]0;\a", "-s", "bits=64 hashes=2 segments=3");
    freeReplyObject(redis_server_must(server, "DEL lame:1 %b", "rude\x1b]0;\a:1", (size_t)11));

    const struct program *p = ran("", ARGS("list"));
    assert_int_equal(p->exit, 2);
    assert_non_null(strstr(p->said.data, "  good\n"));
    assert_null(strstr(p->said.data, "lame"));
    assert_non_null(strstr(p->complained.data, "hibloom repair lame"));
    assert_non_null(strstr(p->complained.data, "hibloom repair rude?]0;?, then")); /* no command to a terminal */
    assert_null(strchr(p->complained.data, '\x1b'));
}

static void a_watch_prints_a_line_each_time_and_follows_the_name(void **state)
{
    struct program p;

    assert_run("", 0, "", "", "create", "seen", SURE);
    assert_run("", 0, "", "", "create", "other", SURE);
    assert_run("", 0, NULL, "", "add", "other", "a", "b", "c");
    program_start(&p, ARGS("info", "seen", "--watch=1s", "--count", "3"), NULL);
    program_wait_for(&p, 60, false);
    assert_non_null(strstr(p.said.data, "items 0  used 0.0 %  fill 0.00 %"));
    freeReplyObject(redis_server_must(server, "RENAME other seen"));
    program_end(&p);
    assert_int_equal(p.exit, 0);
    assert_string_equal(p.complained.data, "");
    assert_int_equal(count_words(p.said.data, "\n"), 3);
    assert_int_equal(count_words(p.said.data, "items 3 "), 2);
    program_free(&p);
    const char *said = said_by(ARGS("info", "seen", "--watch=1s", "--count", "2", "--json"));
    assert_int_equal(count_words(said, "\n"), 2);
    assert_int_equal(count_words(said, "\"estimated_items\": 3,"), 2);
}

static void a_watch_of_nothing_is_trouble(void **state)
{
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "info", "nothing", "--watch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(list_shows_size_fill_use_and_time_to_live, served_leave_nothing),
        cmocka_unit_test_setup(list_json_is_that_of_info_on_a_line, served_leave_nothing),
        cmocka_unit_test_setup(gauges_say_what_list_says, served_leave_nothing),
        cmocka_unit_test_setup(a_damaged_filter_is_counted_and_a_server_that_fails_prints_none, served_leave_nothing),
        cmocka_unit_test_setup(a_damaged_filter_is_complained_of_and_the_others_are_shown, served_leave_nothing),
        cmocka_unit_test_setup(a_watch_prints_a_line_each_time_and_follows_the_name, served_leave_nothing),
        cmocka_unit_test_setup(a_watch_of_nothing_is_trouble, served_leave_nothing),
    };

    return cmocka_run_group_tests_name("cli: list", tests, set_up, served_tear_down);
}
