/* load: it sets the bits that add sets, and adds nothing if it fails. And hibloom replace, load, restore and import with
 * --replace: what has the name afterwards, that nothing is left beside it, and that whatever is refused changes nothing. */
#include "cli/redis.h"
#include "support/acl_lines.h"
#include "support/module_dump.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"

#define SEEDED "capacity=100000 error=1e-12 seed=5eed"

/* Three links, with these. */
#define GROWING "capacity=4 error=1e-9 growth=2"
#define LINES "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"

/* ---- load ---------------------------------------------------------------------- */

/* "loaded N in S s, R/s" with this N, and nothing else. */
static void assert_loaded(const char *input, unsigned long n, const char *const args[])
{
    const struct program *p = ran(input, args);
    unsigned long loaded;
    long end = 0;
    double seconds;

    if (p->exit != 0 || p->complained.len > 0)
        fail_msg("%s", p->complained.data);
    assert_int_equal(sscanf(p->said.data, "loaded %lu in %lf s, %*f%*[ kM]/s%*1[\n]%ln", &loaded, &seconds, &end), 2);
    assert_int_equal(loaded, n);
    assert_int_equal(end, p->said.len);
}

/* Two filters with the same seed have the same bits if what is saved of them is equal. */
static void assert_same_bits(const char *a, const char *b)
{
    struct program of_a;

    program_run(&of_a, "", 0, ARGS("save", a, "-"));
    const struct program *of_b = ran("", ARGS("save", b, "-"));
    assert_int_equal(of_a.exit + of_b->exit, 0);
    assert_int_equal(of_a.said.len, of_b->said.len);
    assert_memory_equal(of_a.said.data, of_b->said.data, of_a.said.len);
    program_free(&of_a);
}

static void load_sets_the_bits_that_add_sets(void **state)
{
    static const char *const specs[] = {SEEDED, SEEDED " layout=blocked", SEEDED " layout=partitioned",
                                        "bits=100003 hashes=7 segments=3 seed=1"};

    for (size_t i = 0; i < COUNT(specs); i++) {
        const char *loaded = TEST_NAME, *added = TEST_NAME;
        assert_loaded("a\nb\n\nb\nlast", 5, ARGS("load", loaded, "-s", specs[i]));
        assert_run("", 0, "added 4, new 4\n", "", "add", added, "-s", specs[i], "a", "b", "", "last");
        assert_run("", 0, "maybe\ta\nmaybe\tb\nmaybe\t\nmaybe\tlast\n", "", "check", loaded, "a", "b", "", "last");
        assert_same_bits(loaded, added);
    }
}

static void load_joins_a_bare_bitmap(void **state)
{
    static const char preset[] = "py-mmh3-redis capacity=1000 error=0.01", unseeded[] = "hash=xxh3 bits=10007 hashes=7";
    const char *name = TEST_NAME;

    assert_run("", 0, NULL, "", "add", "--bare", name, "-s", preset, "theirs");
    assert_loaded("ours\n", 1, ARGS("load", "--bare", name, "-s", preset));
    assert_run("", 1, "maybe\ttheirs\nmaybe\tours\nno\tx\n", "", "check", "--bare", name, "-s", preset, "theirs",
               "ours", "x");
    assert_int_equal(count_keys(name), 1); /* nothing is stored beside it */
    name = TEST_NAME;
    assert_loaded("ours\n", 1, ARGS("load", "--bare", name, "-s", unseeded));
    assert_run("", 1, "maybe\tours\nno\tx\n", "", "check", "--bare", name, "-s", unseeded, "ours", "x");
}

/* Into an empty one it is exact; further items go where add would put them: so the error rate is kept. */
static void load_fills_a_growing_filter(void **state)
{
    const char *name = TEST_NAME;

    assert_loaded(LINES, 15, ARGS("load", name, "-s", GROWING));
    assert_int_equal(count_keys(name), 3);
    assert_run("", 0, "added 15, new 0\n", "", "add", name, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11",
               "12", "13", "14", "15");
    const long long bits = ask("BITCOUNT", name);
    assert_loaded("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\nq\nr\ns\nt\nu\nv\nw\nx\ny\nz\n" LINES, 41,
                  ARGS("load", name));
    assert_int_equal(count_keys(name), 4);         /* what was in already took no room, */
    assert_int_equal(ask("BITCOUNT", name), bits); /* and the first link is as full as it was */
    assert_run("", 1, "maybe\t1\nmaybe\tz\nno\tA\n", "", "check", name, "1", "z", "A");
}

/* ---- --replace --------------------------------------------------------------------- */

static void load_replaces_what_is_there(void **state)
{
    const char *name = TEST_NAME;

    assert_run("a\n", 2, "", "give -n and -p", "load", name, "--replace");
    assert_run("a\nb\n", 0, NULL, "", "load", name, "--replace", SURE); /* where there is none, it is made */
    assert_int_equal(count_keys(name), 1);
    assert_int_equal(ask("TTL", name), -1);
    assert_run("", 0, "", "", "expire", name, "5000s");
    assert_run("b\nc\n", 0, NULL, "", "load", name, "--replace"); /* as the old one */
    assert_run("", 1, "no\ta\nmaybe\tb\nmaybe\tc\n", "", "check", name, SURE, "a", "b", "c");
    assert_int_equal(count_keys(name), 1);
    assert_in_range(ask("TTL", name), 4900, 5000);
    assert_run("d\n", 0, NULL, "", "load", name, "--replace", "-s", "capacity=1000 error=1e-9 segments=3");
    assert_run("", 1, "no\tc\nmaybe\td\n", "", "check", name, "c", "d");
    assert_int_equal(count_keys(name), 3);
    assert_run("e\n", 2, "", "new.ttl= has no effect", "load", name, "--replace", "-s",
               "capacity=9 error=0.1 new.ttl=1h");
    assert_run("e\n", 0, NULL, "", "load", name, "--replace", SURE);
    assert_run("", 1, "no\td\nmaybe\te\n", "", "check", name, "d", "e");
    assert_int_equal(count_keys(name), 1);
}

/* Whether it comes at once or in pieces, as through a pipe. */
static void a_saved_file_is_not_taken_for_lines(void **state)
{
    static const char words[] = "use hibloom restore";
    const char *name = TEST_NAME;
    struct program p, saved;

    assert_run("", 0, NULL, "", "add", name, SURE, "old");
    program_run(&saved, "", 0, ARGS("save", name, "-"));
    static const char *const commands[][3] = {{"load", "--replace"}, {"load", "--"}, {"add", "--"}, {"check", "--"}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        program_run(&p, saved.said.data, saved.said.len, ARGS(commands[i][0], name, commands[i][1]));
        assert_int_equal(p.exit, 2);
        assert_string_equal(p.said.data, "");
        assert_non_null(strstr(p.complained.data, words));
        program_free(&p);
    }
    program_start(&p, ARGS("load", name, "--replace"), NULL);
    program_write(&p, saved.said.data, 6); /* up to its first newline */
    test_sleep_ms(100);
    program_write(&p, saved.said.data + 6, saved.said.len - 6);
    program_end(&p);
    assert_int_equal(p.exit, 2);
    assert_non_null(strstr(p.complained.data, words));
    program_free(&p);
    assert_run("", 0, "maybe\told\n", "", "check", name, "old");
    assert_int_equal(count_keys(name), 1);
    assert_run("\x89HBL\r\n", 0, "added 1, new 1\n", "most lines end in CR", "add", name); /* less of it is a line */
    program_free(&saved);
}

/* The line of docs/access.md: no word of it is too many. */
static void who_may_replace_needs_the_words_of_its_line(void **state)
{
    static const char *const words[] = {"+eval",   "+getrange", "+strlen",  "+pttl",    "+bitcount",
                                        "+time",   "+setrange", "+pexpire", "+persist", "+unlink",
                                        "+rename", "+bitop",    "+psetex"};
    enum { WORDS = sizeof words / sizeof *words };
    static const char *const forms[] = {"capacity=1000 error=1e-9", "capacity=1000 error=1e-9 segments=3", GROWING};
    struct redis_server *server = redis_server_start_tcp(NULL);
    redisContext *outside = redis_server_connect(server);
    char uri[128], line[512];

    snprintf(uri, sizeof uri, "redis://replacer:p@127.0.0.1:%d", redis_server_port(server));
    for (int without = -1; without < WORDS; without++) {
        snprintf(line, sizeof line, "ACL SETUSER replacer reset on >p ~seen ~seen:* ~{seen}.new-*");
        for (int w = 0; w < WORDS; w++)
            if (w != without)
                snprintf(line + strlen(line), sizeof line - strlen(line), " %s", words[w]);
        bool denied = false;
        for (int i = 0; i < 5 && !denied; i++) { /* each form over each form, one with a time to live */
            const char *const old = forms[i < 4 ? i % 2 : 2], *const new = forms[i < 4 ? i / 2 : 2];
            assert_run(LINES, 0, NULL, "", "-u", redis_server_uri(server), "add", "seen", "-s", old);
            test_command(outside, i == 3 ? "EXPIRE seen:0 1000" : "PING");
            test_command(outside, line);
            const char *const input = i == 2 ? "a\n" : LINES; /* so segments are without an item */
            const struct program *p = ran(input, ARGS("-u", uri, "load", "seen", "--replace", "-s", new));
            if (p->exit != 0 && (without < 0 || strstr(p->complained.data, hibloom_strerror(HIBLOOM_EDENIED)) == NULL))
                fail_msg("without %s: %s", without < 0 ? "nothing" : words[without], p->complained.data);
            denied = p->exit != 0;
            test_command(outside, "FLUSHALL");
        }
        if (denied != (without >= 0))
            fail_msg("%s is not needed", words[without]);
    }
    redisFree(outside);
    redis_server_stop(server);
}

/* ---- replace, restore --replace and import --replace ------------------------------------- */

#define SEGMENTS "capacity=1000 error=1e-9 segments=3"

static void a_filter_takes_the_place_of_another(void **state)
{
    static const char *const specs[] = {"capacity=100 error=1e-9", SEGMENTS, GROWING, "php-mt bits=10000 capacity=100",
                                        "capacity=100 error=1e-9 counters=4"};
    static const size_t keys[] = {1, 3, 3, 1, 1};
    const char *name = TEST_NAME, *by = TEST_NAME;

    assert_run("", 0, NULL, "", "add", by, SURE, "old");
    assert_run("", 0, "", "", "replace", name, by); /* where there is none, it is a renaming */
    assert_run("", 0, "maybe\told\n", "", "check", name, "old");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        assert_run(LINES, 0, NULL, NULL, "add", by, "-s", specs[i]); /* NULL: perhaps it is past its capacity */
        assert_run("", 0, "", "", "expire", name, "5000s");
        assert_run("", 0, "", "", "expire", by, "100000s");
        assert_run("", 0, "", "", "replace", name, by);
        assert_run("", 1, "no\told\nmaybe\t1\nmaybe\t15\n", "", "check", name, "old", "1", "15");
        assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "check", by, "1");
        assert_int_equal(count_keys(by), 0);
        assert_int_equal(count_keys(name), keys[i]);
        assert_int_equal(count_keys(".new-"), 0);
        char first[TEST_NAME_SIZE + 2];
        snprintf(first, sizeof first, "%s%s", name, specs[i] == specs[1] ? ":0" : "");
        assert_in_range(ask("TTL", first), 4900, 5000);
    }
}

static void what_cannot_replace_or_be_replaced_is_told(void **state)
{
    const char *name = TEST_NAME, *window = TEST_NAME, *bare = TEST_NAME;

    assert_run("", 0, NULL, "", "add", name, SURE, "old");
    assert_run("", 2, "", "there is no filter", "replace", name, bare);
    assert_run("", 0, NULL, "", "add", window, "-n", "10", "-p", "1e-9", "--window", "1h", "w");
    assert_run("", 2, "", "sliding window", "replace", name, window);
    assert_run("", 2, "", "sliding window", "replace", window, name);
    assert_run("", 0, "maybe\tw\n", "", "check", window, "w");
    set_bit(bare, 12345);
    for (int i = 0; i < 2; i++) {
        const char *said = complaint(i == 0 ? ARGS("replace", name, bare) : ARGS("replace", bare, name));
        assert_non_null(strstr(said, "is a bitmap without a spec"));
        assert_null(strstr(said, "--bare")); /* which it does not take */
    }
    assert_int_equal(ask("BITCOUNT", bare), 1);
    assert_run("", 0, "", "", "replace", name, name); /* is done already */
    assert_run("", 0, "maybe\told\n", "", "check", name, "old");
}

/* ---- restore --replace, import --replace ------------------------------------------------ */

static void restore_replaces_what_is_there(void **state)
{
    static const char *const specs[] = {"capacity=100 error=1e-9", SEGMENTS, GROWING};
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file"), *none = temp_dir_path(dir, "none");
    char name[TEST_NAME_SIZE], from[TEST_NAME_SIZE];

    test_name(name);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        test_name(from);
        assert_run(LINES, 0, NULL, NULL, "add", from, "-s", specs[i]);
        assert_run("", 0, "", "", "save", from, path);
        if (i == 0)
            assert_run("", 0, NULL, "", "add", name, SURE, "old");
        assert_run("", 2, "", "--replace", "restore", name, path); /* the hint */
        assert_run("", 0, "", "", "expire", name, "5000s");
        assert_run("", 0, "", "", "restore", name, path, "--replace");
        assert_run("", 1, "no\told\nmaybe\t1\nmaybe\t15\n", "", "check", name, "old", "1", "15");
        assert_int_equal(count_keys(name), count_keys(from));
        assert_run("", 0, NULL, "", "add", name, "old");
        assert_run("", 0, "", "", "restore", name, path, "--replace"); /* what came since is not in the file */
        assert_run("", 1, "no\told\nmaybe\t1\n", "", "check", name, "old", "1");
    }
    assert_in_range(ask("TTL", name), 4900, 5000);
    assert_run("", 2, "", "No such file", "restore", name, none, "--replace");
    test_name(name);
    assert_run("", 0, "", "", "restore", name, path, "--replace"); /* where there is none, it is made */
    assert_int_equal(ask("TTL", name), -1);
    assert_int_equal(count_keys(".new-"), 0);
    free(none);
    free(path);
    temp_dir_remove(dir);
}

/* ---- A cluster, and who may ---------------------------------------------------------- */

/* With the line of docs/access.md, and for hibloom replace the keys of what replaces. */
static void who_may_load_so_may_restore_and_import_so(void **state)
{
    struct redis_server *server = redis_server_start_tcp(NULL);
    redisContext *outside = redis_server_connect(server);
    const char *all = redis_server_uri(server);
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file"), uri[128];
    struct module_dump dump;

    snprintf(uri, sizeof uri, "redis://replacer:p@127.0.0.1:%d", redis_server_port(server));
    test_command(outside, "ACL SETUSER replacer reset on >p " REPLACING);
    assert_run("", 0, NULL, "", "-u", all, "add", "next", SURE, "new");
    assert_run("", 0, "", "", "-u", all, "save", "next", path);
    assert_run("", 0, NULL, "", "-u", all, "add", "seen", "-s", SEGMENTS, "old");
    assert_run("", 0, "", "", "-u", uri, "restore", "seen", path, "--replace");
    assert_run("", 1, "no\told\nmaybe\tnew\n", "", "-u", all, "check", "seen", "old", "new");
    assert_run("", 0, NULL, "", "-u", all, "add", "seen", "old");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EDENIED), "-u", uri, "replace", "seen", "next");
    assert_run("", 0, "maybe\told\n", "", "-u", all, "check", "seen", "old");
    test_command(outside, "ACL SETUSER replacer ~next ~next:*");
    assert_run("", 0, "", "", "-u", uri, "replace", "seen", "next");
    assert_run("", 1, "no\told\nmaybe\tnew\n", "", "-u", all, "check", "seen", "old", "new");
    module_dump_make_growing(&dump, 1e-9, 10, 2);
    (void)module_dump_fill(&dump, 55);
    module_dump_write(&dump, path);
    assert_run("", 0, "", "", "-u", uri, "import", "seen", "--redisbloom-file", path, "--replace");
    assert_run("", 1, "no\tnew\nmaybe\tin 50\n", "", "-u", all, "check", "seen", "new", "in 50");
    module_dump_free(&dump);
    redisFree(outside);
    free(path);
    temp_dir_remove(dir);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_sets_the_bits_that_add_sets),
        cmocka_unit_test(load_fills_a_growing_filter),
        cmocka_unit_test(load_joins_a_bare_bitmap),
        cmocka_unit_test(load_replaces_what_is_there),
        cmocka_unit_test(a_saved_file_is_not_taken_for_lines),
        cmocka_unit_test(who_may_replace_needs_the_words_of_its_line),
        cmocka_unit_test(a_filter_takes_the_place_of_another),
        cmocka_unit_test(what_cannot_replace_or_be_replaced_is_told),
        cmocka_unit_test(restore_replaces_what_is_there),
        cmocka_unit_test(who_may_load_so_may_restore_and_import_so),
    };

    return cmocka_run_group_tests_name("cli: load and replace", tests, program_setup, NULL);
}
