/* The examples that are programs in their own right, at their work: a cleaner of streams, a shield in front of a
 * database, and the same question on each event loop. service.c has a test of its own. And the line in the top comment of
 * each, by which a newcomer compiles it, works. */
#include "cli/program.h"
#include "support/redis_server.h"

#include <sqlite3.h>

static void two_cleaners_hand_on_each_line_once(void **state)
{
    enum { LINES = 2000, DISTINCT = 500 };
    char name[TEST_NAME_SIZE], lines[LINES * 8];
    unsigned seen[DISTINCT] = {0};
    struct program cleaners[2];
    size_t len = 0;

    test_name(name);
    for (int i = 0; i < LINES; i++)
        len += (size_t)snprintf(lines + len, sizeof lines - len, "%d\n", i * 7 % DISTINCT);
    for (int i = 0; i < 2; i++)
        program_start_at(&cleaners[i], example_path("dedup"), ARGS(test_uri(), name), NULL);
    program_write(&cleaners[0], "0\n", 2); /* at once, though its input goes on */
    program_wait_for(&cleaners[0], 2, false);
    for (int i = 0; i < 2; i++)
        program_write(&cleaners[i], lines, len);
    for (int i = 0; i < 2; i++) {
        program_end(&cleaners[i]);
        assert_string_equal(cleaners[i].complained.data, "");
        assert_int_equal(cleaners[i].exit, 0);
        for (char *at = cleaners[i].said.data; *at != '\0';)
            seen[strtoul(at, &at, 10)]++, at++;
        program_free(&cleaners[i]);
    }
    for (int i = 0; i < DISTINCT; i++)
        assert_int_equal(seen[i], 1);
}

static void a_cleaner_takes_the_last_line_as_it_is_and_refuses_a_longer_one(void **state)
{
    const char *name = TEST_NAME;
    char *line = malloc(70000);

    const struct program *p = ran_by(example_path("dedup"), "a\n\na\n\nb", ARGS(test_uri(), name));
    assert_string_equal(p->said.data, "a\n\nb\n");
    assert_int_equal(p->exit, 0);
    assert_non_null(line);
    memset(line, 'x', 69999);
    line[69999] = '\0';
    p = ran_by(example_path("dedup"), line, ARGS(test_uri(), name));
    assert_string_equal(p->said.data, "");
    assert_int_equal(p->exit, 1);
    free(line);
}

enum { GOODS = 1000, REQUESTS = 5000 };

/* A database of GOODS goods, "0" to "999" named "good 0" and so on, and the filter. */
static void stock(const char *path, const char *name)
{
    char ids[GOODS * 8], row[128];
    size_t len = 0;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE goods(id TEXT PRIMARY KEY, name TEXT); BEGIN", NULL, NULL, NULL),
                     SQLITE_OK);
    for (int i = 0; i < GOODS; i++) {
        len += (size_t)snprintf(ids + len, sizeof ids - len, "%d\n", i);
        snprintf(row, sizeof row, "INSERT INTO goods VALUES('%d', 'good %d')", i, i);
        assert_int_equal(sqlite3_exec(db, row, NULL, NULL, NULL), SQLITE_OK);
    }
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_run(ids, 0, NULL, "", "load", name, "-n", "1100", "-p", "0.01");
}

static void a_shield_answers_as_the_database_and_saves_its_queries(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    char path[256], name[TEST_NAME_SIZE], line[64];
    struct text expected = {NULL, 0};
    unsigned long asked, queries, saved;
    struct program p;

    test_name(name);
    snprintf(path, sizeof path, "%s/shop.db", redis_server_dir(server));
    stock(path, name);
    program_start_at(&p, example_path("shield"), ARGS(test_uri(), name, path), NULL);
    for (int i = 0; i < REQUESTS; i++) { /* one in ten is there */
        const int id = i % 10 == 0 ? i % GOODS : GOODS + i;
        program_write(&p, line, (size_t)snprintf(line, sizeof line, "%d\n", id));
        text_append(&expected, line, (size_t)snprintf(line, sizeof line, id < GOODS ? "good %d\n" : "none\n", id));
    }
    program_write(&p, "new\tnewly stored\nnew\n", 21);
    text_append(&expected, "newly stored\n", 13);
    program_end(&p);
    assert_string_equal(p.said.data, expected.data);
    assert_int_equal(p.exit, 0);
    assert_int_equal(sscanf(p.complained.data, "%lu asked for, %lu queries, %lu saved", &asked, &queries, &saved), 3);
    assert_int_equal(asked, REQUESTS + 1);
    assert_int_equal(queries + saved, asked);
    assert_in_range(queries, REQUESTS / 10 + 1, REQUESTS / 10 + 1 + REQUESTS * 9 / 10 * 3 / 100); /* p is 1 % */
    program_free(&p);
    text_free(&expected);
    redis_server_stop(server);
}

static void each_loop_asks_what_is_new(void **state)
{
    static const char *const examples[] = {"async_libevent", "async_libuv", "async_libev", "async_poll"};

    for (size_t i = 0; i < COUNT(examples); i++) {
        const char *name = TEST_NAME;
        const struct program *p;
        for (int again = 0; again < 2; again++) {
            p = ran_by(example_path(examples[i]), "", ARGS(test_uri(), name, "a", "b c", "a"));
            assert_string_equal(p->complained.data, "");
            assert_string_equal(p->said.data, again ? "seen a\nseen b c\nseen a\n" : "new  a\nnew  b c\nseen a\n");
            assert_int_equal(p->exit, 0);
        }
        p = ran_by(example_path(examples[i]), "", ARGS("unix:///nowhere/redis.sock", name, "a"));
        assert_string_equal(p->said.data, "");
        assert_non_null(strstr(p->complained.data, "/nowhere/redis.sock"));
        assert_int_equal(p->exit, 1);
    }
}

/* $0 is the command, $1 the example. The libraries are beside the command: they pose as installed.
 * They may be instrumented, so what they need in turn is not looked for. */
static const char script[] =
    "set -e; build=$(cd \"$(dirname \"$0\")\"; pwd); root=$PWD; dir=$(mktemp -d); trap 'rm -rf \"$dir\"' EXIT\n"
    "sed \"s|@PREFIX@|$root|; s|@LIBDIR@|$build|; s|@VERSION@|0|; s|@TLS@||\" lib/hibloom.pc.in >\"$dir/hibloom.pc\"\n"
    "export PKG_CONFIG_PATH=\"$dir\"; cd \"$dir\"\n"
    "source=$root/examples/$1; cp \"$source\" .\n"
    "line=$(sed -n '/\\*\\//q; s/^ \\*  *\\(cc\\|c++\\) /\\1 -Wl,--allow-shlib-undefined /p' \"$source\")\n"
    "eval \"$line\" && [ -x \"${1%.*}\" ] || { echo \"'$line' does not make it\"; exit 1; }\n";

static void each_example_is_compiled_by_the_line_in_its_top_comment(void **state)
{
    char names[512];

    snprintf(names, sizeof names, "%s",
             ran_by("sh", "", ARGS("-c", "cd examples && LC_ALL=C ls *.c *.cpp"))->said.data);
    assert_string_equal(names,
                        "async_libev.c\nasync_libevent.c\nasync_libuv.c\nasync_poll.c\ncrawl.c\ncrawler.c\ndedup.c\n"
                        "service.c\nshield.c\nuids.c\nunique.cpp\n");
    for (const char *name = strtok(names, "\n"); name != NULL; name = strtok(NULL, "\n")) {
        const struct program *p = ran_by("sh", "", ARGS("-c", script, program_path(), name));
        if (p->exit != 0)
            fail_msg("%s: exit %d: %s%s", name, p->exit, p->said.data, p->complained.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_loop_asks_what_is_new),
        cmocka_unit_test(two_cleaners_hand_on_each_line_once),
        cmocka_unit_test(a_cleaner_takes_the_last_line_as_it_is_and_refuses_a_longer_one),
        cmocka_unit_test(a_shield_answers_as_the_database_and_saves_its_queries),
        cmocka_unit_test(each_example_is_compiled_by_the_line_in_its_top_comment),
    };

    return cmocka_run_group_tests_name("cli: starts", tests, program_setup, NULL);
}
