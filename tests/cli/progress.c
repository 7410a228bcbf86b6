/* The progress bar, on a terminal of the test's own: that long work shows it,
 * that nothing else does, and that it is gone before anything else is said. */
#include "cli/program.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>

/* A terminal: what is written to *slave is read from the result. A bare
 * chroot has none to give; the test is skipped there. */
static int open_terminal(int *slave)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    *slave = -1;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0)
        *slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave < 0)
        skip();
    return master;
}

static bool ends_with(const struct text *text, const char *end)
{
    return text->len >= strlen(end) && strcmp(text->data + text->len - strlen(end), end) == 0;
}

/* Bars in what was written to the terminal. Each must be followed by what
 * returns to its start: the next bar, or what erases it. */
static int count_bars(const struct text *text)
{
    static const char end_of_bar[] = "/s\033[K";
    int bars = 0;

    for (const char *bar = text->data; bar != NULL && (bar = strstr(bar, end_of_bar)) != NULL; bars++) {
        bar += strlen(end_of_bar);
        assert_true(bar[0] == '\r' || bar[0] == '\0');
    }
    return bars;
}

/* Feeds it a line each 100 ms: until that many bars were shown or, if 0, for
 * longer than one takes. Returns how many lines that were. */
static int feed_slowly(struct program *p, int bars)
{
    const char *nothing = NULL;
    size_t none = 0;
    char line[16];
    int n = 0;

    while (bars > 0 ? count_bars(&p->complained) < bars : n < 15) {
        snprintf(line, sizeof line, "%d\n", n++);
        program_write(p, line, strlen(line));
        test_sleep_ms(100);
        program_step(p, &nothing, &none);
    }
    return n;
}

/* What add says of so many new lines. */
static void assert_added(const struct program *p, int n)
{
    char said[64];

    snprintf(said, sizeof said, "added %d, new %d\n", n, n);
    assert_string_equal(p->said.data, said);
    assert_int_equal(p->exit, 0);
}

static void long_work_shows_a_bar_on_a_terminal(void **state)
{
    struct program_files files = {PIPE, PIPE, PIPE};
    char name[TEST_NAME_SIZE];
    struct program p;
    int terminal, n;

    (void)state;
    test_name(name);
    terminal = open_terminal(&files.err);
    const uint64_t since = test_now_ms();
    program_start(&p, ARGS("add", name, SURE), &files);
    close(files.err);
    p.err = terminal;
    n = feed_slowly(&p, 1);
    assert_true(test_now_ms() - since >= 1000); /* not at once */
    program_end(&p);
    assert_added(&p, n);
    assert_non_null(strstr(p.complained.data, " items  "));
    assert_true(count_bars(&p.complained) > 0);
    assert_true(ends_with(&p.complained, "\r\033[K"));
    program_free(&p);
}

static void no_bar_is_shown_elsewhere_or_for_short_work(void **state)
{
    struct program_files files = {PIPE, PIPE, PIPE};
    char name[TEST_NAME_SIZE];
    struct program p;
    int terminal;

    (void)state;
    test_name(name);
    program_start(&p, ARGS("add", name, SURE), NULL);
    feed_slowly(&p, 0);
    program_end(&p);
    assert_string_equal(p.complained.data, "");
    program_free(&p);
    terminal = open_terminal(&files.err);
    program_start(&p, ARGS("add", name), &files);
    close(files.err);
    p.err = terminal;
    program_write(&p, "a\nb\nc\n", 6);
    program_end(&p);
    assert_string_equal(p.complained.data, "");
    program_free(&p);
}

static void no_bar_garbles_what_is_typed(void **state)
{
    struct program_files files = {PIPE, PIPE, PIPE};
    char name[TEST_NAME_SIZE];
    struct program p;
    int terminal, n;

    (void)state;
    test_name(name);
    terminal = open_terminal(&files.err);
    files.in = files.err;
    program_start(&p, ARGS("add", name, SURE), &files);
    close(files.err);
    p.err = terminal;
    p.in = dup(terminal);
    n = feed_slowly(&p, 0);
    program_write(&p, "\004", 1); /* ^D at the start of a line: its end */
    program_end(&p);
    assert_added(&p, n);
    assert_non_null(strstr(p.complained.data, "14\r\n")); /* its echo */
    assert_null(strstr(p.complained.data, "items"));
    program_free(&p);
}

static void output_on_the_terminal_erases_the_bar(void **state)
{
    struct program_files files = {PIPE, PIPE, PIPE};
    char name[TEST_NAME_SIZE], last[32];
    struct program p;
    int terminal, n;

    (void)state;
    test_name(name);
    terminal = open_terminal(&files.err);
    files.out = files.err;
    program_start(&p, ARGS("uniq", name, SURE), &files);
    close(files.err);
    p.err = terminal;
    n = feed_slowly(&p, 3);
    program_end(&p);
    assert_int_equal(p.exit, 0);
    assert_true(count_bars(&p.complained) >= 3);
    snprintf(last, sizeof last, "%d\r\n", n - 1);
    assert_non_null(strstr(p.complained.data, last));
    program_free(&p);
}

/* A file of `n` lines, open at its start. */
static int file_of_lines(int n)
{
    FILE *file = tmpfile();
    int fd;

    assert_non_null(file);
    for (int i = 0; i < n; i++)
        fprintf(file, "%d\n", i);
    assert_int_equal(fflush(file), 0);
    fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    fclose(file);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void wait_for_bits(const struct redis_server *server, const char *name)
{
    redisContext *redis = redis_server_connect(server);
    const uint64_t deadline = test_now_ms() + PROGRAM_DEADLINE_MS;
    bool set = false;

    while (!set) {
        redisReply *reply = redisCommand(redis, "BITCOUNT %s 0 999999", name); /* bits only, of 1.2 MB */

        assert_true(reply != NULL && test_now_ms() < deadline);
        set = reply->integer > 0;
        freeReplyObject(reply);
    }
    redisFree(redis);
}

static void the_bar_of_a_file_shows_its_share(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    struct program_files files = {file_of_lines(300000), PIPE, PIPE};
    struct program p;
    int terminal;

    (void)state;
    terminal = open_terminal(&files.err);
    program_start(&p, ARGS("-u", redis_server_uri(server), "add", "name", "-n", "1M", "-p", "0.01"), &files);
    close(files.err);
    close(files.in);
    p.err = terminal;
    wait_for_bits(server, "name");
    redis_server_pause(server);
    test_sleep_ms(1500); /* now the work has lasted, whatever the machine */
    redis_server_resume(server);
    program_end(&p);
    if (p.exit != 0)
        fail_msg("exit %d: %s", p.exit, p.complained.data);
    assert_int_equal(strncmp(p.said.data, "added 300000, new ", 18), 0);
    assert_non_null(strstr(p.complained.data, "\r[="));
    assert_non_null(strstr(p.complained.data, " %  "));
    assert_true(ends_with(&p.complained, "\r\033[K"));
    program_free(&p);
    redis_server_stop(server);
}

static void a_complaint_erases_the_bar(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    struct program_files files = {PIPE, PIPE, PIPE};
    struct program p;
    int terminal;

    (void)state;
    terminal = open_terminal(&files.err);
    program_start(&p, ARGS("--retry", "0", "-u", redis_server_uri(server), "add", "name", SURE), &files);
    close(files.err);
    p.err = terminal;
    feed_slowly(&p, 1);
    redis_server_kill(server);
    program_write(&p, "more\n", 5);
    program_end(&p);
    assert_int_equal(p.exit, 2);
    assert_non_null(strstr(p.complained.data, " items  "));
    assert_non_null(strstr(p.complained.data, "\r\033[Khibloom: name: "));
    program_free(&p);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_work_shows_a_bar_on_a_terminal),
        cmocka_unit_test(no_bar_is_shown_elsewhere_or_for_short_work),
        cmocka_unit_test(no_bar_garbles_what_is_typed),
        cmocka_unit_test(output_on_the_terminal_erases_the_bar),
        cmocka_unit_test(the_bar_of_a_file_shows_its_share),
        cmocka_unit_test(a_complaint_erases_the_bar),
    };

    return cmocka_run_group_tests_name("cli: progress", tests, program_setup, NULL);
}
