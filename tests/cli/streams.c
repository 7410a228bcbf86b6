/* The standard files of the command: pipes that are slow or close, disks that are full, files that are closed. */
#include "cli/program.h"

static void uniq_is_as_prompt_as_its_input(void **state)
{
    struct program p;

    program_start(&p, ARGS("uniq", TEST_NAME, SURE), NULL);
    program_write(&p, "a\n", 2);
    program_wait_for(&p, 2, false);
    assert_string_equal(p.said.data, "a\n");
    program_write(&p, "b\na\nc", 5); /* c is no line yet */
    program_wait_for(&p, 4, false);
    assert_string_equal(p.said.data, "a\nb\n");
    program_write(&p, "d\n", 2);
    program_wait_for(&p, 7, false);
    assert_string_equal(p.said.data, "a\nb\ncd\n");
    program_end(&p);
    assert_int_equal(p.exit, 0);
    assert_string_equal(p.said.data, "a\nb\ncd\n");
    program_free(&p);
}

static void a_closed_pipe_ends_it_quietly(void **state)
{
    struct program p;

    program_start(&p, ARGS("uniq", TEST_NAME, SURE), NULL);
    program_write(&p, "a\n", 2);
    program_wait_for(&p, 2, false);
    program_close(&p.out);
    program_write(&p, "b\n", 2);
    program_end(&p);
    assert_int_equal(p.exit, -SIGPIPE);
    assert_string_equal(p.complained.data, "");
    program_free(&p);
}

static void a_closed_pipe_is_trouble_where_its_signal_is_ignored(void **state)
{
    static const char script[] = "trap '' PIPE; exec \"$0\" positions php-uids";
    struct program p;

    program_start_at(&p, "sh", ARGS("-c", script, program_path()), NULL);
    program_close(&p.out);
    program_write(&p, "a\n", 2);
    program_end(&p);
    assert_int_equal(p.exit, 2);
    assert_string_equal(p.complained.data, "hibloom: write error: Broken pipe\n");
    program_free(&p);
}

/* A run with its input and output as given that must exit and complain so. */
static void assert_run_on(int in, int out, int exit_status, const char *complained, const char *const args[])
{
    const struct program_files files = {in, out, PIPE};
    struct program p;

    program_start(&p, args, &files);
    if (in == PIPE)
        program_write(&p, "a\nb\n", 4);
    program_end(&p);
    assert_string_equal(p.complained.data, complained);
    assert_int_equal(p.exit, exit_status);
    program_free(&p);
}

static void a_full_disk_is_trouble(void **state)
{
    static const char words[] = "hibloom: write error: No space left on device\n";
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    const char *name = TEST_NAME;

    assert_true(full >= 0);
    assert_run_on(PIPE, full, 2, words, ARGS("uniq", name, SURE));
    assert_run_on(PIPE, full, 2, words, ARGS("add", name));
    assert_run_on(PIPE, full, 2, words, ARGS("check", name)); /* not 0 nor 1: the answer is lost */
    assert_run_on(PIPE, full, 2, words, ARGS("info", name));
    assert_run_on(PIPE, full, 2, words, ARGS("positions", "php-uids"));
    assert_run_on(PIPE, full, 2, words, ARGS("plan", "-n", "10", "-p", "0.1"));
    assert_run_on(PIPE, full, 2, words, ARGS("--help"));
    assert_run_on(PIPE, full, 2, words, ARGS("--version"));
    assert_run_on(PIPE, full, 0, "", ARGS("clear", name)); /* says nothing, so loses nothing */
    close(full);
}

static void closed_files_are_trouble_where_they_are_needed(void **state)
{
    static const char unreadable[] = "hibloom: standard input: Bad file descriptor\n";
    static const char unwritable[] = "hibloom: write error: Bad file descriptor\n";
    const char *name = TEST_NAME;

    assert_run_on(NONE, PIPE, 2, unreadable, ARGS("add", name, SURE));
    assert_run_on(NONE, PIPE, 2, unreadable, ARGS("check", name));
    assert_run_on(NONE, PIPE, 2, unreadable, ARGS("uniq", name));
    assert_run_on(NONE, PIPE, 2, unreadable, ARGS("positions", "php-uids"));
    assert_run_on(NONE, PIPE, 0, "", ARGS("add", name, "item"));
    assert_run_on(PIPE, NONE, 2, unwritable, ARGS("check", name));
    assert_run_on(PIPE, NONE, 2, unwritable, ARGS("add", name));
    assert_run_on(NONE, NONE, 2, unwritable, ARGS("add", name, "item"));
    assert_run_on(NONE, NONE, 0, "", ARGS("clear", name));
}

static void an_input_that_cannot_be_read_is_trouble(void **state)
{
    const int directory = open("/", O_RDONLY | O_CLOEXEC);

    assert_run_on(directory, PIPE, 2, "hibloom: standard input: Is a directory\n", ARGS("add", TEST_NAME, SURE));
    close(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniq_is_as_prompt_as_its_input),
        cmocka_unit_test(a_closed_pipe_ends_it_quietly),
        cmocka_unit_test(a_closed_pipe_is_trouble_where_its_signal_is_ignored),
        cmocka_unit_test(a_full_disk_is_trouble),
        cmocka_unit_test(closed_files_are_trouble_where_they_are_needed),
        cmocka_unit_test(an_input_that_cannot_be_read_is_trouble),
    };

    return cmocka_run_group_tests_name("cli: standard files", tests, program_setup, NULL);
}
