/* save and restore: what is in the filter afterwards, and which files are
 * refused, in which words. */
#include "cli/redis.h"
#include "support/files.h"
#include "support/temp_dir.h"

#include <sys/stat.h>

#define SEEDED "capacity=100000 error=1e-12 seed=5eed"

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
    assert_int_equal(count_keys(name), 0);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "save", name, file);
    assert_run("", 0, "", "", "create", name, SURE);
    assert_run("", 2, "", strerror(ENOENT), "save", name, file);
    assert_run("", 2, "", file, "save", name, file);
    assert_run("", 2, "", "not to standard output", "save", name, "-");
    free(file);
    temp_dir_remove(dir);
}

/* The first n bytes of a file in another, of the last of them another bit. */
static void copy_altered(const char *from, const char *to, size_t n)
{
    char bytes[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    size_t len;

    assert_true(in != NULL && out != NULL);
    len = fread(bytes, 1, n < sizeof bytes ? n : sizeof bytes, in);
    bytes[len - 1] ^= 1;
    assert_int_equal(fwrite(bytes, 1, len, out), len);
    fclose(in);
    fclose(out);
}

/* "damaged" is what hibloom save wrote, and nothing else is. */
static void a_file_is_refused_as_damaged_or_as_no_hibloom_file(void **state)
{
    static const char spec[] = "bits=1000 hashes=3 seed=1";
    char name[TEST_NAME_SIZE], bare[TEST_NAME_SIZE], *dir = temp_dir_make(), *file = temp_dir_path(dir, "file");
    char *other = temp_dir_path(dir, "other");
    static const size_t lengths[] = {4, 8, 9, 30, 100, 60000};

    (void)state;
    test_name(name);
    test_name(bare);
    assert_run("", 0, "", "", "create", name, "-s", spec);
    assert_run("", 0, "", "", "save", name, file);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const bool is_one = lengths[i] > 8; /* the first eight bytes are not altered */
        struct program p;

        copy_altered(file, other, lengths[i]);
        for (int with_bare = 0; with_bare < 2; with_bare++) {
            program_run(&p, "", 0,
                        with_bare ? ARGS("restore", bare, other, "--bare", "-s", spec) : ARGS("restore", name, other));
            assert_int_equal(p.exit, 2);
            assert_non_null(strstr(p.complained.data, other));
            assert_int_equal(strstr(p.complained.data, "not a hibloom file") != NULL, !is_one);
            assert_true(is_one || strstr(p.complained.data, "damaged") == NULL);
            assert_null(strstr(p.complained.data, "the stored filter is damaged"));
            program_free(&p);
        }
    }
    assert_run("", 2, "", "not a hibloom file", "restore", name, program_path());
    free(other);
    free(file);
    temp_dir_remove(dir);
}

/* What else people have at hand. */
static void a_file_of_another_kind_is_told_where_to_go(void **state)
{
    static const struct {
        const char *bytes, *words;
    } files[] = {
        {"", "is not a hibloom file: it is empty\n"},
        {"REDIS0011\xfa\tredis-ver", "did not write it\nhibloom: hint: it is a dump of a whole Redis server: "},
        {"1\nrest", "hint: if it is what redis-cli prints of BF.SCANDUMP: hibloom import NAME --redisbloom-file /"},
        {"12345 no line", "did not write it\n"},
    };
    char name[TEST_NAME_SIZE], *dir = temp_dir_make(), *file = temp_dir_path(dir, "file");
    struct program p;

    test_name(name);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_file(file, files[i].bytes, strlen(files[i].bytes));
        program_run(&p, "", 0, ARGS("restore", name, file));
        assert_int_equal(p.exit, 2);
        if (strstr(p.complained.data, files[i].words) == NULL)
            fail_msg("not \"%s\", but: %s", files[i].words, p.complained.data);
        assert_int_equal(strstr(p.complained.data, "hint") != NULL, strstr(files[i].words, "hint") != NULL);
        program_free(&p);
    }
    assert_run("", 2, "", "/dev/null: is not a regular file", "restore", name, "/dev/null");
    assert_run("", 0, "", "", "create", name, "-n", "10", "-p", "0.1");
    assert_run("", 0, "", "", "save", name, file);
    test_name(name);
    assert_run("", 2, "", "\nhibloom: hint: hibloom save wrote it: hibloom restore ", "import", name,
               "--redisbloom-file", file);
    free(file);
    temp_dir_remove(dir);
}

static void a_file_with_another_seed_is_refused_with_a_hint_at_copy(void **state)
{
    char a[TEST_NAME_SIZE], b[TEST_NAME_SIZE], *dir = temp_dir_make(), *file = temp_dir_path(dir, "file");
    struct program p;

    (void)state;
    test_name(a);
    test_name(b);
    assert_run("", 0, NULL, "", "add", a, SURE, "a");
    assert_run("", 0, "", "", "create", b, SURE);
    assert_run("", 0, "", "", "save", a, file);
    assert_run("", 2, "", "have different seeds", "restore", b, file);
    assert_run("", 2, "", "hibloom copy", "restore", b, file);
    assert_run("", 1, "no\ta\n", "", "check", b, "a");
    test_name(b); /* of another size: the seed is not what differs */
    assert_run("", 0, "", "", "create", b, "-n", "10", "-p", "0.1");
    program_run(&p, "", 0, ARGS("restore", b, file));
    assert_int_equal(p.exit, 2);
    assert_null(strstr(p.complained.data, "different seeds"));
    program_free(&p);
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
    assert_run("", 2, "", "nothing else, hibloom restore", "restore", name, file);
    assert_run("", 1, "no\ta\n", "", "check", name, "a");
    free(file);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restore_makes_again_what_was_saved),
        cmocka_unit_test(bare_bitmaps_are_saved_and_restored),
        cmocka_unit_test(files_that_are_none_are_trouble_in_the_system_s_words),
        cmocka_unit_test(a_file_is_refused_as_damaged_or_as_no_hibloom_file),
        cmocka_unit_test(a_file_of_another_kind_is_told_where_to_go),
        cmocka_unit_test(a_file_with_another_seed_is_refused_with_a_hint_at_copy),
        cmocka_unit_test(a_file_of_another_filter_is_not_restored),
    };

    return cmocka_run_group_tests_name("cli: files", tests, program_setup, NULL);
}
