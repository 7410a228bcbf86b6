/* load, save, restore, merge, copy and compare on a real Redis: what is in the
 * filters afterwards, and that whatever fails changes nothing. */
#include "cli/program.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"

#include <hiredis/hiredis.h>
#include <sys/stat.h>

#define SEEDED "capacity=100000 error=1e-12 seed=5eed"

/* No key of it is there. */
static void assert_none(const char *name)
{
    redisContext *redis = test_redis();

    assert_int_equal(test_command(redis, "EXISTS %s %s:0 {%s}:spec", name, name, name), 0);
    redisFree(redis);
}

/* ---- load ---------------------------------------------------------------------- */

/* "loaded N in S s, R/s" with this N, and nothing else. */
static void assert_loaded(const char *input, const char *n, const char *const args[])
{
    struct program p;
    char begin[64], *rest;

    program_run(&p, input, strlen(input), args);
    if (p.exit != 0)
        fail_msg("%s", p.complained.data);
    assert_string_equal(p.complained.data, "");
    snprintf(begin, sizeof begin, "loaded %s in ", n);
    assert_int_equal(strncmp(p.said.data, begin, strlen(begin)), 0);
    assert_true(strtod(p.said.data + strlen(begin), &rest) >= 0);
    assert_int_equal(strncmp(rest, " s, ", 4), 0);
    assert_true(strtod(rest + 4, &rest) >= 0);
    assert_non_null(strstr(rest, "/s\n"));
    program_free(&p);
}

/* Of the key NAME, and of as many NAME:0, NAME:1 and so on as there are. */
static void assert_same_bits(const char *a, const char *b)
{
    redisContext *redis = test_redis();
    bool more = true;
    char suffix[16] = "";

    for (int i = 0; more; i++) {
        redisReply *of_a = redisCommand(redis, "GET %s%s", a, suffix);
        redisReply *of_b = redisCommand(redis, "GET %s%s", b, suffix);
        assert_true(of_a != NULL && of_b != NULL);
        assert_int_equal(of_a->type, of_b->type);
        assert_int_equal(of_a->len, of_b->len);
        assert_int_equal(of_a->len > 0 ? memcmp(of_a->str, of_b->str, of_a->len) : 0, 0);
        more = i == 0 || of_a->type != REDIS_REPLY_NIL;
        snprintf(suffix, sizeof suffix, ":%d", i);
        freeReplyObject(of_a);
        freeReplyObject(of_b);
    }
    redisFree(redis);
}

static void load_sets_the_bits_that_add_sets(void **state)
{
    static const char *const specs[] = { SEEDED, SEEDED " layout=blocked", SEEDED " layout=partitioned",
                                         "bits=100003 hashes=7 segments=3 seed=1" };
    char loaded[TEST_NAME_SIZE], added[TEST_NAME_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        test_name(loaded);
        test_name(added);
        assert_loaded("a\nb\n\nb\nlast", "5", ARGS("load", loaded, "-s", specs[i]));
        assert_run("", 0, "added 4, new 4\n", "", "add", added, "-s", specs[i], "a", "b", "", "last");
        assert_run("", 0, "maybe\ta\nmaybe\tb\nmaybe\t\nmaybe\tlast\n", "", "check", loaded, "a", "b", "", "last");
        assert_same_bits(loaded, added);
    }
}

static void load_takes_nothing_away(void **state)
{
    char name[TEST_NAME_SIZE];

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", name, SURE, "first");
    assert_loaded("second\n", "1", ARGS("load", name));
    assert_loaded("", "0", ARGS("load", name, SURE));
    assert_run("", 0, "maybe\tfirst\nmaybe\tsecond\n", "", "check", name, "first", "second");
}

static void load_leaves_out_what_is_excluded(void **state)
{
    static const char spec[] = "hash=poly bits=65536 hashes=2 seeds=3,5 empty=excluded";
    char name[TEST_NAME_SIZE];

    (void)state;
    test_name(name);
    assert_loaded("a\n\nb\n\n", "2", ARGS("load", name, "-s", spec));
    assert_run("", 1, "maybe\ta\nno\t\n", "", "check", name, "a", "");
}

static void load_joins_a_bare_bitmap(void **state)
{
    static const char preset[] = "py-mmh3-redis capacity=1000 error=0.01", unseeded[] = "bits=10007 hashes=7";
    redisContext *redis = test_redis();
    char name[TEST_NAME_SIZE];

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", "--bare", name, "-s", preset, "theirs");
    assert_loaded("ours\n", "1", ARGS("load", "--bare", name, "-s", preset));
    assert_run("", 1, "maybe\ttheirs\nmaybe\tours\nno\tx\n", "", "check", "--bare", name, "-s", preset, "theirs",
               "ours", "x");
    assert_int_equal(test_command(redis, "EXISTS {%s}:spec", name), 0);
    test_name(name);
    assert_loaded("ours\n", "1", ARGS("load", "--bare", name, "-s", unseeded));
    assert_run("", 1, "maybe\tours\nno\tx\n", "", "check", "--bare", name, "-s", unseeded, "ours", "x");
    redisFree(redis);
}

static void a_load_that_fails_adds_nothing(void **state)
{
    const int directory = open("/", O_RDONLY | O_CLOEXEC);
    char name[TEST_NAME_SIZE];
    struct program p;

    (void)state;
    test_name(name);
    assert_run("a\n", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "load", name);
    assert_none(name);
    assert_run("", 0, "", "", "create", name, SURE);
    assert_run("a\n", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "load", name, "-n", "1", "-p", "0.1");
    program_start(&p, ARGS("load", name), &(struct program_files){ directory, PIPE, PIPE });
    program_end(&p);
    assert_int_equal(p.exit, 2);
    assert_string_equal(p.said.data, "");
    assert_non_null(strstr(p.complained.data, strerror(EISDIR)));
    program_free(&p);

    /* nothing comes through before all of it does */
    program_start(&p, ARGS("load", name), NULL);
    program_write(&p, "a\nb\n", 4);
    test_sleep_ms(100);
    assert_run("", 1, "no\ta\n", "", "check", name, "a");
    kill(p.pid, SIGKILL);
    program_end(&p);
    program_free(&p);
    assert_run("", 1, "no\ta\n", "", "check", name, "a");
    close(directory);
}

/* ---- save and restore ------------------------------------------------------------ */

static void restore_makes_again_what_was_saved(void **state)
{
    char name[TEST_NAME_SIZE], *dir = temp_dir_make(), *file = temp_dir_path(dir, "file");
    struct stat st;

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", name, SURE, "a", "b");
    assert_run("", 0, "", "", "save", name, file);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_run("", 0, "", "", "drop", name);
    assert_run("", 0, "", "", "restore", name, file);
    assert_run("", 1, "maybe\ta\nmaybe\tb\nno\tc\n", "", "check", name, "a", "b", "c");

    /* a union with what is there since */
    assert_run("", 0, "", "", "clear", name);
    assert_run("", 0, NULL, "", "add", name, "c");
    assert_run("", 0, "", "", "restore", name, file);
    assert_run("", 0, "maybe\ta\nmaybe\tb\nmaybe\tc\n", "", "check", name, "a", "b", "c");
    free(file);
    temp_dir_remove(dir);
}

static void bare_bitmaps_are_saved_and_restored(void **state)
{
    static const char preset[] = "php-poly8 bits=1013";
    char name[TEST_NAME_SIZE], *dir = temp_dir_make(), *file = temp_dir_path(dir, "file");

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", "--bare", name, "-s", preset, "a", "b");
    assert_run("", 0, "", "", "save", "--bare", name, "-s", preset, file);
    assert_run("", 0, "", "", "drop", "--bare", name, "-s", preset);
    assert_run("", 0, "", "", "restore", "--bare", name, "-s", preset, file);
    assert_run("", 0, "maybe\ta\nmaybe\tb\n", "", "check", "--bare", name, "-s", preset, "a", "b");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "restore", "--bare", name, "-s", "php-poly8 bits=1014",
               file);
    free(file);
    temp_dir_remove(dir);
}

static void files_that_are_none_are_trouble_in_the_system_s_words(void **state)
{
    char name[TEST_NAME_SIZE], *dir = temp_dir_make(), *file = temp_dir_path(dir, "no/file");

    (void)state;
    test_name(name);
    assert_run("", 2, "", strerror(ENOENT), "restore", name, file);
    assert_run("", 2, "", file, "restore", name, file);
    assert_run("", 2, "", strerror(EISDIR), "restore", name, dir);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ECORRUPT), "restore", name, program_path());
    assert_none(name);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "save", name, file);
    assert_run("", 0, "", "", "create", name, SURE);
    assert_run("", 2, "", strerror(ENOENT), "save", name, file);
    assert_run("", 2, "", file, "save", name, file);
    free(file);
    temp_dir_remove(dir);
}

static void a_file_of_another_filter_is_not_restored(void **state)
{
    char name[TEST_NAME_SIZE], *dir = temp_dir_make(), *file = temp_dir_path(dir, "file");

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", name, "-s", SEEDED, "a");
    assert_run("", 0, "", "", "save", name, file);
    assert_run("", 0, "", "", "drop", name);
    assert_run("", 0, "", "", "create", name, SURE);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "restore", name, file);
    assert_run("", 1, "no\ta\n", "", "check", name, "a");
    free(file);
    temp_dir_remove(dir);
}

/* ---- merge ------------------------------------------------------------------------ */

static void merge_adds_what_is_in_all_of_them(void **state)
{
    char all[TEST_NAME_SIZE], one[TEST_NAME_SIZE], two[TEST_NAME_SIZE];

    (void)state;
    test_name(all);
    test_name(one);
    test_name(two);
    assert_run("", 0, NULL, "", "add", one, "-s", SEEDED, "1");
    assert_run("", 0, NULL, "", "add", two, "-s", SEEDED, "2");
    assert_run("", 0, "", "", "merge", all, one, two); /* makes it */
    assert_run("", 1, "maybe\t1\nmaybe\t2\nno\t3\n", "", "check", all, "1", "2", "3");
    assert_run("", 0, NULL, "", "add", all, "3");
    assert_run("", 0, NULL, "", "add", one, "4");
    assert_run("", 0, "", "", "merge", all, one, all, one);
    assert_run("", 0, "maybe\t2\nmaybe\t3\nmaybe\t4\n", "", "check", all, "2", "3", "4");
    assert_run("", 1, "no\t2\n", "", "check", one, "2");
}

static void a_merge_with_a_wrong_name_or_spec_changes_nothing(void **state)
{
    char all[TEST_NAME_SIZE], one[TEST_NAME_SIZE], none[TEST_NAME_SIZE], other[TEST_NAME_SIZE];

    (void)state;
    test_name(all);
    test_name(one);
    test_name(none);
    test_name(other);
    assert_run("", 0, NULL, "", "add", one, "-s", SEEDED, "1");
    assert_run("", 2, "", none, "merge", all, one, none);
    assert_none(all);
    assert_none(none);
    assert_run("", 0, "", "", "create", all, "-s", SEEDED);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "merge", all, one, none);
    assert_run("", 0, NULL, "", "add", other, SURE, "1");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "merge", all, other);
    assert_run("", 1, "no\t1\n", "", "check", all, "1");
    assert_run("", 2, "", other, "merge", all, one, other);
}

static void filters_of_another_server_are_merged(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    const char *there = redis_server_uri(server);
    char all[TEST_NAME_SIZE], one[TEST_NAME_SIZE];

    (void)state;
    test_name(all);
    test_name(one);
    assert_run("", 0, NULL, "", "-u", there, "add", one, "-s", SEEDED, "1");
    assert_run("", 0, NULL, "", "-u", there, "add", all, "-s", SEEDED, "2");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "merge", all, one);
    assert_run("", 0, "", "", "merge", "--from", there, all, one, all);
    assert_run("", 0, "maybe\t1\nmaybe\t2\n", "", "check", all, "1", "2");
    assert_run("", 1, "no\t1\n", "", "-u", there, "check", all, "1");
    redis_server_stop(server);
}

/* ---- copy ------------------------------------------------------------------------- */

static void a_copy_is_the_same_filter_elsewhere(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    const char *there = redis_server_uri(server);
    char from[TEST_NAME_SIZE], to[TEST_NAME_SIZE];

    (void)state;
    test_name(from);
    test_name(to);
    assert_run("", 0, NULL, "", "add", from, SURE, "a", "b"); /* with a seed that was drawn */
    assert_run("", 0, "", "", "copy", from, to);
    assert_run("", 1, "maybe\ta\nmaybe\tb\nno\tc\n", "", "check", to, "a", "b", "c");
    assert_run("", 0, "", "", "copy", from, from, "--to", there);
    assert_run("", 1, "maybe\ta\nmaybe\tb\nno\tc\n", "", "-u", there, "check", from, "a", "b", "c");
    assert_run("", 0, "", "", "merge", to, from, "--from", there); /* the seed went with it */
    redis_server_stop(server);
}

static void a_copy_is_never_a_merge(void **state)
{
    char from[TEST_NAME_SIZE], to[TEST_NAME_SIZE];

    (void)state;
    test_name(from);
    test_name(to);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "copy", from, to);
    assert_none(to);
    assert_run("", 0, NULL, "", "add", from, "-s", SEEDED, "a");
    assert_run("", 0, "", "", "create", to, "-s", SEEDED);
    assert_run("", 2, "", "is there already", "copy", from, to);
    assert_run("", 1, "no\ta\n", "", "check", to, "a");
    assert_run("", 2, "", "is there already", "copy", from, from);
    assert_run("", 0, "", "", "drop", to);
    assert_run("", 0, NULL, "", "add", "--bare", to, "-s", SEEDED, "b");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "copy", from, to);
    assert_run("", 1, "no\ta\nmaybe\tb\n", "", "check", "--bare", to, "-s", SEEDED, "a", "b");
}

static void a_copy_that_fails_half_way_does_not_stay(void **state)
{
    static const char *const no_bitop[] = { "--rename-command", "BITOP", "HIDDEN", NULL };
    struct redis_server *server = redis_server_start(no_bitop);
    char from[TEST_NAME_SIZE];

    (void)state;
    test_name(from);
    assert_run("", 0, NULL, "", "add", from, SURE, "a");
    assert_run("", 2, "", "BITOP", "copy", from, from, "--to", redis_server_uri(server));
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "-u", redis_server_uri(server), "check", from, "a");
    redis_server_stop(server);
}

/* ---- compare ---------------------------------------------------------------------- */

#define WORDS(u, i, s) "union items           " u "\nintersection items    " i "\nsimilarity            " s "\n"
#define JSON(u, i, s) "{\n  \"union_items\": " u ",\n  \"intersection_items\": " i ",\n  \"similarity\": " s "\n}\n"

static void compare_says_what_two_filters_have_in_common(void **state)
{
    char a[TEST_NAME_SIZE], b[TEST_NAME_SIZE];

    (void)state;
    test_name(a);
    test_name(b);
    assert_run("", 0, "", "", "create", a, "-s", SEEDED);
    assert_run("", 0, "", "", "copy", a, b);
    assert_run("", 0, WORDS("0", "0", "1"), "", "compare", a, b);
    assert_run("", 0, NULL, "", "add", a, "1", "2", "3");
    assert_run("", 0, WORDS("3", "0", "0"), "", "compare", a, b);
    assert_run("", 0, JSON("3", "0", "0"), "", "compare", a, b, "--json");
    assert_run("", 0, "", "", "merge", b, a);
    assert_run("", 0, WORDS("3", "3", "1"), "", "compare", b, a);
    assert_run("", 0, WORDS("3", "3", "1"), "", "compare", a, a);
}

static void compare_says_what_is_no_number(void **state)
{
    static const char spec[] = "hash=poly bits=1 hashes=1 seeds=3";
    char a[TEST_NAME_SIZE], b[TEST_NAME_SIZE];

    (void)state;
    test_name(a);
    test_name(b);
    assert_run("", 0, NULL, "", "add", a, "-s", spec, "a");
    assert_run("", 0, "", "", "create", b, "-s", spec);
    assert_run("", 0, WORDS("infinite", "unknown", "unknown"), "", "compare", a, b);
    assert_run("", 0, JSON("null", "null", "null"), "", "compare", "--json", a, b);
}

static void what_cannot_be_compared_is_trouble(void **state)
{
    char a[TEST_NAME_SIZE], b[TEST_NAME_SIZE];

    (void)state;
    test_name(a);
    test_name(b);
    assert_run("", 0, "", "", "create", a, SURE);
    assert_run("", 2, "", b, "compare", a, b);
    assert_run("", 2, "", b, "compare", b, a);
    assert_run("", 0, "", "", "create", b, SURE); /* another seed */
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "compare", a, b);
}

/* ---- The command line ---------------------------------------------------------------- */

static void a_wrong_command_line_is_trouble(void **state)
{
    static const char nowhere[] = "unix:///nonexistent/hibloom.sock";

    (void)state;
    assert_run("", 2, "", "something is missing: hibloom load NAME [", "-u", nowhere, "load");
    assert_run("", 2, "", "a is one too many", "-u", nowhere, "load", "name", "a");
    assert_run("", 2, "", "something is missing: hibloom save NAME FILE", "-u", nowhere, "save", "name");
    assert_run("", 2, "", "something is missing: hibloom restore NAME FILE", "-u", nowhere, "restore", "name");
    assert_run("", 2, "", "something is missing: hibloom merge NAME FROM... [--from URI]", "-u", nowhere, "merge", "a");
    assert_run("", 2, "", "something is missing: hibloom copy FROM TO [--to URI]", "-u", nowhere, "copy", "a");
    assert_run("", 2, "", "c is one too many", "-u", nowhere, "copy", "a", "b", "c");
    assert_run("", 2, "", "something is missing: hibloom compare A B [--json]", "-u", nowhere, "compare", "a");
    assert_run("", 2, "", "--from needs a value", "-u", nowhere, "merge", "a", "b", "--from");
    assert_run("", 2, "", "does not take --to", "-u", nowhere, "merge", "a", "b", "--to", nowhere);
    assert_run("", 2, "", "does not take --from", "-u", nowhere, "copy", "a", "b", "--from", nowhere);
    assert_run("", 2, "", "does not take --from", "-u", nowhere, "compare", "a", "b", "--from", nowhere);
    assert_run("", 2, "", "does not take --commands", "-u", nowhere, "load", "a", "--commands", "setbit");
    assert_run("", 2, "", "with --bare only", "-u", nowhere, "save", "a", "b", "-s", "php-uids");
    assert_run("", 2, "", "with --bare only", "-u", nowhere, "restore", "a", "b", "-s", "php-uids");
    assert_run("", 2, "", "--bare needs -s", "-u", nowhere, "load", "a", "--bare");
    assert_run("", 0, NULL, "", "load", "--help");
}

static void neither_uri_is_ever_said(void **state)
{
    static const char *const uris[] = { "redis://:s3cr3t@127.0.0.1:1", "redis://u:s3cr3t@127.0.0.1:x",
                                        "rediss://:s3cr3t@localhost", "s3cr3t" };
    char name[TEST_NAME_SIZE];
    struct program p;

    (void)state;
    test_name(name);
    assert_run("", 0, "", "", "create", name, SURE);
    for (size_t i = 0; i < 4 * sizeof uris / sizeof *uris; i++) {
        const char *uri = uris[i / 4];
        program_run(&p, "", 0,
                    i % 4 == 0   ? ARGS("merge", name, name, "--from", uri)
                    : i % 4 == 1 ? ARGS("copy", name, name, "--to", uri)
                    : i % 4 == 2 ? ARGS("-u", uri, "load", name, SURE)
                                 : ARGS("compare", name, name, "--from", uri));
        assert_int_equal(p.exit, 2);
        assert_int_not_equal(p.complained.len, 0);
        assert_null(strstr(p.complained.data, "s3cr3t"));
        program_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_sets_the_bits_that_add_sets),
        cmocka_unit_test(load_takes_nothing_away),
        cmocka_unit_test(load_leaves_out_what_is_excluded),
        cmocka_unit_test(load_joins_a_bare_bitmap),
        cmocka_unit_test(a_load_that_fails_adds_nothing),
        cmocka_unit_test(restore_makes_again_what_was_saved),
        cmocka_unit_test(bare_bitmaps_are_saved_and_restored),
        cmocka_unit_test(files_that_are_none_are_trouble_in_the_system_s_words),
        cmocka_unit_test(a_file_of_another_filter_is_not_restored),
        cmocka_unit_test(merge_adds_what_is_in_all_of_them),
        cmocka_unit_test(a_merge_with_a_wrong_name_or_spec_changes_nothing),
        cmocka_unit_test(filters_of_another_server_are_merged),
        cmocka_unit_test(a_copy_is_the_same_filter_elsewhere),
        cmocka_unit_test(a_copy_is_never_a_merge),
        cmocka_unit_test(a_copy_that_fails_half_way_does_not_stay),
        cmocka_unit_test(compare_says_what_two_filters_have_in_common),
        cmocka_unit_test(compare_says_what_is_no_number),
        cmocka_unit_test(what_cannot_be_compared_is_trouble),
        cmocka_unit_test(a_wrong_command_line_is_trouble),
        cmocka_unit_test(neither_uri_is_ever_said),
    };

    return cmocka_run_group_tests_name("cli: transfer", tests, program_setup, NULL);
}
