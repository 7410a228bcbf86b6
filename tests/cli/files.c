/* save and restore: what is in the filter afterwards, and which files are refused, in which words. */
#include "cli/redis.h"
#include "support/files.h"
#include "support/temp_dir.h"

#include <pty.h>
#include <sys/stat.h>

static void restore_makes_again_what_was_saved(void **state)
{
    char name[TEST_NAME_SIZE], *dir = temp_dir_make(), *file = temp_dir_path(dir, "file");
    struct stat st;

    test_name(name);
    assert_run("", 0, NULL, "", "add", name, SURE, "a", "b");
    assert_run("", 0, "", "", "save", name, file);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_run("", 0, "", "", "drop", name);
    assert_run("", 0, "", "", "restore", name, file);
    assert_run("", 1, "maybe\ta\nmaybe\tb\nno\tc\n", "", "check", name, "a", "b", "c");
    free(file);
    temp_dir_remove(dir);
}

static void files_that_are_none_are_trouble_in_the_system_s_words(void **state)
{
    static const char file[] = "/nonexistent/file";
    static const char words[] = "/nonexistent/file: No such file or directory";
    const char *name = TEST_NAME;

    assert_run("", 2, "", words, "restore", name, file);
    assert_run("", 2, "", strerror(EISDIR), "restore", name, "/");
    assert_int_equal(count_keys(name), 0);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "save", name, file);
    assert_run("", 0, "", "", "create", name, SURE);
    assert_run("", 2, "", words, "save", name, file);
}

/* Without a terminal, save prints the bytes of its file, and restore reads them. */
static void a_filter_goes_through_a_pipe(void **state)
{
    char name[TEST_NAME_SIZE], *dir = temp_dir_make(), *file = temp_dir_path(dir, "file");
    struct program saved;

    test_name(name);
    assert_run("", 0, NULL, "", "add", name, SURE, "a", "b");
    assert_run("", 0, "", "", "save", name, file);
    program_run(&saved, "", 0, ARGS("save", name, "-"));
    assert_int_equal(saved.exit, 0);
    assert_file(file, saved.said.data, saved.said.len);
    assert_int_equal(unlink(file), 0);
    setenv("TMPDIR", dir, 1);
    for (int i = 0; i < 3; i++) { /* into nothing; into what is there; in its place */
        struct program p;
        assert_run("", 0, NULL, "", "add", name, SURE, "c");
        if (i == 0)
            assert_run("", 0, "", "", "drop", name);
        program_run(&p, saved.said.data, saved.said.len,
                    i < 2 ? ARGS("restore", name, "-") : ARGS("restore", name, "-", "--replace"));
        if (p.exit != 0)
            fail_msg("%s", p.complained.data);
        assert_run("", i != 1, i == 1 ? "maybe\ta\nmaybe\tc\n" : "maybe\ta\nno\tc\n", "", "check", name, "a", "c");
        program_free(&p);
    }
    assert_int_equal(files_in(dir), 0);
    unsetenv("TMPDIR");
    program_free(&saved);
    free(file);
    temp_dir_remove(dir);
}

static void a_stream_that_was_cut_or_is_none_is_refused(void **state)
{
    const char *name = TEST_NAME, *none = TEST_NAME;
    struct program saved, p;

    assert_run("", 0, NULL, "", "add", name, SURE, "a");
    program_run(&saved, "", 0, ARGS("save", name, "-"));
    assert_run("", 0, "", "", "clear", name);
    program_run(&p, saved.said.data, saved.said.len - 9, ARGS("restore", name, "-"));
    assert_int_equal(p.exit, 2);
    assert_non_null(strstr(p.complained.data, "/dev/stdin: is a damaged hibloom file"));
    program_free(&p);
    saved.said.data[saved.said.len - 9] ^= 1; /* only the checksum shows it */
    program_run(&p, saved.said.data, saved.said.len, ARGS("restore", none, "-"));
    assert_int_equal(p.exit, 2);
    program_free(&p);
    program_free(&saved);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "check", none, "a"); /* not "no" */
    assert_run("", 1, "no\ta\n", "", "check", name, "a");
    setenv("TMPDIR", "/nonexistent", 1);
    assert_run("", 2, "", "standard input could not be kept in a file: No such file", "restore", name, "-");
    unsetenv("TMPDIR");
}

static void a_stream_that_cannot_be_written_is_trouble(void **state)
{
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    const char *name = TEST_NAME;
    struct program p;
    int terminal, slave;

    assert_run("", 0, "", "", "create", name, SURE);
    program_start(&p, ARGS("save", name, "-"), &(struct program_files){PIPE, full, PIPE});
    program_end(&p);
    assert_int_equal(p.exit, 2);
    assert_non_null(strstr(p.complained.data, "standard output: No space left on device"));
    program_free(&p);
    close(full);
    assert_int_equal(openpty(&terminal, &slave, NULL, NULL, NULL), 0);
    program_start(&p, ARGS("save", name, "-"), &(struct program_files){PIPE, slave, PIPE});
    program_end(&p);
    assert_int_equal(p.exit, 2);
    assert_non_null(strstr(p.complained.data, "standard output is a terminal"));
    program_free(&p);
    close(terminal);
    close(slave);
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

    test_name(name);
    for (size_t i = 0; i < COUNT(files); i++) {
        write_file(file, files[i].bytes, strlen(files[i].bytes));
        const char *said = complaint(ARGS("restore", name, file));
        if (strstr(said, files[i].words) == NULL)
            fail_msg("not \"%s\", but: %s", files[i].words, said);
        assert_int_equal(strstr(said, "hint") != NULL, strstr(files[i].words, "hint") != NULL);
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
    const char *a = TEST_NAME, *b = TEST_NAME;
    char *dir = temp_dir_make(), *file = temp_dir_path(dir, "file");

    assert_run("", 0, NULL, "", "add", a, SURE, "a");
    assert_run("", 0, "", "", "create", b, SURE);
    assert_run("", 0, "", "", "save", a, file);
    const char *said = complaint(ARGS("restore", b, file));
    assert_non_null(strstr(said, "have different seeds"));
    assert_non_null(strstr(said, "hibloom copy"));
    assert_run("", 1, "no\ta\n", "", "check", b, "a");
    b = TEST_NAME; /* of another size: the seed is not what differs */
    assert_run("", 0, "", "", "create", b, "-n", "10", "-p", "0.1");
    assert_null(strstr(complaint(ARGS("restore", b, file)), "different seeds"));
    b = TEST_NAME;
    assert_run("", 0, "", "", "create", b, SURE, "--window", "60s");
    assert_run("", 2, "", "a sliding window is not restored, since a file has no clock\n", "restore", b, file);
    free(file);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restore_makes_again_what_was_saved),
        cmocka_unit_test(files_that_are_none_are_trouble_in_the_system_s_words),
        cmocka_unit_test(a_filter_goes_through_a_pipe),
        cmocka_unit_test(a_stream_that_was_cut_or_is_none_is_refused),
        cmocka_unit_test(a_stream_that_cannot_be_written_is_trouble),
        cmocka_unit_test(a_file_of_another_kind_is_told_where_to_go),
        cmocka_unit_test(a_file_with_another_seed_is_refused_with_a_hint_at_copy),
    };

    return cmocka_run_group_tests_name("cli: files", tests, program_setup, NULL);
}
