/* load: it sets the bits that add sets, and adds nothing if it fails. */
#include "cli/redis.h"
#include "support/temp_dir.h"

#define SEEDED "capacity=100000 error=1e-12 seed=5eed"

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

/* The whole file; to be freed. */
static struct text read_file(const char *path)
{
    struct text text = {NULL, 0};
    FILE *file = fopen(path, "rb");
    char bytes[4096];
    size_t n;

    assert_non_null(file);
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        text_append(&text, bytes, n);
    fclose(file);
    return text;
}

/* Two filters with the same seed have the same bits if their files are equal. */
static void assert_same_bits(const char *a, const char *b)
{
    char *dir = temp_dir_make(), *file_a = temp_dir_path(dir, "a"), *file_b = temp_dir_path(dir, "b");
    struct text bytes_a, bytes_b;

    assert_run("", 0, "", "", "save", a, file_a);
    assert_run("", 0, "", "", "save", b, file_b);
    bytes_a = read_file(file_a);
    bytes_b = read_file(file_b);
    assert_int_equal(bytes_a.len, bytes_b.len);
    assert_memory_equal(bytes_a.data, bytes_b.data, bytes_a.len);
    text_free(&bytes_a);
    text_free(&bytes_b);
    free(file_a);
    free(file_b);
    temp_dir_remove(dir);
}

static void load_sets_the_bits_that_add_sets(void **state)
{
    static const char *const specs[] = {SEEDED, SEEDED " layout=blocked", SEEDED " layout=partitioned",
                                        "bits=100003 hashes=7 segments=3 seed=1"};
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
    char name[TEST_NAME_SIZE];

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", "--bare", name, "-s", preset, "theirs");
    assert_loaded("ours\n", "1", ARGS("load", "--bare", name, "-s", preset));
    assert_run("", 1, "maybe\ttheirs\nmaybe\tours\nno\tx\n", "", "check", "--bare", name, "-s", preset, "theirs",
               "ours", "x");
    assert_int_equal(count_keys(name), 1); /* nothing is stored beside it */
    test_name(name);
    assert_loaded("ours\n", "1", ARGS("load", "--bare", name, "-s", unseeded));
    assert_run("", 1, "maybe\tours\nno\tx\n", "", "check", "--bare", name, "-s", unseeded, "ours", "x");
}

static void a_load_that_fails_adds_nothing(void **state)
{
    const int directory = open("/", O_RDONLY | O_CLOEXEC);
    char name[TEST_NAME_SIZE];
    struct program p;

    (void)state;
    test_name(name);
    assert_run("a\n", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "load", name);
    assert_int_equal(count_keys(name), 0);
    assert_run("", 0, "", "", "create", name, SURE);
    assert_run("a\n", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "load", name, "-n", "1", "-p", "0.1");
    program_start(&p, ARGS("load", name), &(struct program_files){directory, PIPE, PIPE});
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_sets_the_bits_that_add_sets), cmocka_unit_test(load_takes_nothing_away),
        cmocka_unit_test(load_leaves_out_what_is_excluded), cmocka_unit_test(load_joins_a_bare_bitmap),
        cmocka_unit_test(a_load_that_fails_adds_nothing),
    };

    return cmocka_run_group_tests_name("cli: load", tests, program_setup, NULL);
}
