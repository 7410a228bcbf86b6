/* Runs the command `hibloom` as a shell would, and reads what it prints. So the
 * tests see what a user sees: exit statuses, bytes, promptness. No run can hang
 * a test: past the deadline it is killed, and the test fails.
 *
 * A header alone, because only the test programs in tests/cli include it. */
#ifndef HIBLOOM_TEST_PROGRAM_H
#define HIBLOOM_TEST_PROGRAM_H

#include "../support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM_DEADLINE_MS 60000 /* generous: machines are busy, sanitizers slow */

/* Bytes with a zero after them. */
struct text {
    char *data;
    size_t len;
};

/* Room for a text of that length: a power of two, so that it seldom moves. */
static inline size_t text_room(size_t len)
{
    size_t room = 64;

    while (room <= len)
        room *= 2;
    return room;
}

static inline void text_append(struct text *text, const char *data, size_t len)
{
    if (text->data == NULL || text_room(text->len + len) > text_room(text->len))
        text->data = realloc(text->data, text_room(text->len + len));
    assert_non_null(text->data);
    memcpy(text->data + text->len, data, len);
    text->len += len;
    text->data[text->len] = '\0';
}

static inline void text_free(struct text *text)
{
    free(text->data);
    *text = (struct text){NULL, 0};
}

/* One run. Its pipes are -1 where they are closed or were not asked for. */
struct program {
    pid_t pid;
    int in, out, err;
    struct text said, complained;
    int exit; /* the exit status, or minus the signal it died of */
    uint64_t deadline;
};

/* $HIBLOOM_PROGRAM, or the one that was built beside this test program: BUILD/hibloom for BUILD/tests/cli/NAME. */
static inline const char *program_path(void)
{
    static char path[4096];
    const char *given = getenv("HIBLOOM_PROGRAM");
    ssize_t len;

    if (given != NULL && given[0] != '\0')
        return given;
    len = readlink("/proc/self/exe", path, sizeof path - sizeof "hibloom");
    assert_true(len > 0);
    path[len] = '\0';
    for (int i = 0; i < 3; i++)
        *strrchr(path, '/') = '\0';
    strcat(path, "/hibloom");
    return path;
}

/* An example stands beside the command. */
static inline const char *example_path(const char *name)
{
    static char path[4096];

    snprintf(path, sizeof path, "%s", program_path());
    snprintf(strrchr(path, '/') + 1, 64, "examples/%s", name);
    return path;
}

/* How a run's standard files differ from pipes: an open file, or NONE closed. */
enum { PIPE = -1, NONE = -2 };

struct program_files {
    int in, out, err;
};

static inline void program_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static inline void program_child(const char *path, const char *const args[], const int fds[3])
{
    const char *argv[64] = {path};
    size_t n = 0;

    for (; args[n] != NULL && n + 2 < sizeof argv / sizeof *argv; n++)
        argv[n + 1] = args[n];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    for (int fd = 0; fd < 3; fd++)
        if (fds[fd] == NONE)
            close(fd);
        else
            dup2(fds[fd], fd);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0); /* that takes half of the time */
    execvp(argv[0], (char *const *)(const void *)argv);
    _exit(126);
}

/* Starts a program, this one or another, with the arguments, NULL at their end; files may be NULL. */
static inline void program_start_at(struct program *p, const char *path, const char *const args[],
                                    const struct program_files *files)
{
    const int given[3] = {files != NULL ? files->in : PIPE, files != NULL ? files->out : PIPE,
                          files != NULL ? files->err : PIPE};
    int *const ends[3] = {&p->in, &p->out, &p->err};
    int fds[3], pair[2];

    signal(SIGPIPE, SIG_IGN); /* a run may end before it has read its input */
    *p = (struct program){.in = -1, .out = -1, .err = -1, .deadline = test_now_ms() + PROGRAM_DEADLINE_MS};
    for (int i = 0; i < 3; i++) {
        fds[i] = given[i];
        if (given[i] != PIPE)
            continue;
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        fds[i] = pair[i == 0 ? 0 : 1];
        *ends[i] = pair[i == 0 ? 1 : 0];
        fcntl(*ends[i], F_SETFL, O_NONBLOCK);
    }
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0)
        program_child(path, args, fds);
    for (int i = 0; i < 3; i++)
        if (given[i] == PIPE)
            close(fds[i]);
}

static inline void program_start(struct program *p, const char *const args[], const struct program_files *files)
{
    program_start_at(p, program_path(), args, files);
}

static inline void program_give_up(struct program *p, const char *what)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    fail_msg("hibloom %s; it said \"%s\" and complained \"%s\"", what, p->said.data, p->complained.data);
}

static inline void program_read(int *fd, struct text *text)
{
    char bytes[65536];
    ssize_t n = read(*fd, bytes, sizeof bytes);

    if (n > 0)
        text_append(text, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        program_close(fd);
}

/* Reads, and writes some of *input, once something of that is possible. */
static inline void program_step(struct program *p, const char **input, size_t *len)
{
    struct pollfd fds[3] = {{.fd = *len > 0 ? p->in : -1, .events = POLLOUT},
                            {.fd = p->out, .events = POLLIN},
                            {.fd = p->err, .events = POLLIN}};
    ssize_t n;

    if (test_now_ms() > p->deadline)
        program_give_up(p, "came to no end");
    poll(fds, 3, 100);
    if (fds[0].revents != 0) {
        n = write(p->in, *input, *len);
        if (n > 0) {
            *input += n;
            *len -= (size_t)n;
        } else if (errno == EPIPE) { /* it reads no more, as is its right */
            *len = 0;
        }
    }
    if (fds[1].revents != 0)
        program_read(&p->out, &p->said);
    if (fds[2].revents != 0)
        program_read(&p->err, &p->complained);
}

static inline void program_write(struct program *p, const char *input, size_t len)
{
    while (len > 0)
        program_step(p, &input, &len);
}

/* Waits until it has said, or if it is complaints complained, `len` bytes. */
static inline void program_wait_for(struct program *p, size_t len, bool complaints)
{
    const char *nothing = NULL;
    size_t none = 0;

    while ((complaints ? p->complained.len : p->said.len) < len) {
        if (complaints ? p->err < 0 : p->out < 0)
            program_give_up(p, "said too little");
        program_step(p, &nothing, &none);
    }
}

/* Closes its input, reads all that it prints, and waits for its end. */
static inline void program_end(struct program *p)
{
    const char *nothing = NULL;
    size_t none = 0;
    int status;

    program_close(&p->in);
    while (p->out >= 0 || p->err >= 0)
        program_step(p, &nothing, &none);
    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        if (test_now_ms() > p->deadline)
            program_give_up(p, "closed its output and did not end");
        test_sleep_ms(1);
    }
    p->exit = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    /* Never NULL, for the assertions' sake. */
    text_append(&p->said, "", 0);
    text_append(&p->complained, "", 0);
}

static inline void program_free(struct program *p)
{
    program_close(&p->in);
    program_close(&p->out);
    program_close(&p->err);
    text_free(&p->said);
    text_free(&p->complained);
}

/* A whole run: its input, all that it prints, its end. */
static inline void program_run(struct program *p, const char *input, size_t len, const char *const args[])
{
    program_start(p, args, NULL);
    program_write(p, input, len);
    program_end(p);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A run of it, or of another program, with this text as its input, for a look at what came of it. It lasts until the
 * next one, which may read what it said. */
static inline const struct program *ran_by(const char *path, const char *input, const char *const args[])
{
    static struct program last = {.in = -1, .out = -1, .err = -1};
    struct program p;

    program_start_at(&p, path, args, NULL);
    program_write(&p, input, strlen(input));
    program_end(&p);
    program_free(&last);
    last = p;
    return &last;
}

static inline const struct program *ran(const char *input, const char *const args[])
{
    return ran_by(program_path(), input, args);
}

/* What it complains of when it exits 2; what it says when it exits 0 and complains of nothing. */
static inline const char *complaint(const char *const args[])
{
    const struct program *p = ran("", args);

    assert_int_equal(p->exit, 2);
    assert_int_equal(strncmp(p->complained.data, "hibloom: ", 9), 0);
    return p->complained.data;
}

static inline const char *said_by(const char *const args[])
{
    const struct program *p = ran("", args);

    assert_string_equal(p->complained.data, "");
    assert_int_equal(p->exit, 0);
    return p->said.data;
}

/* How often the words are in the text. */
static inline unsigned count_words(const char *text, const char *words)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, words)) != NULL; at += strlen(words))
        n++;
    return n;
}

/* A run with this text as its input that must exit, say and complain so;
 * NULL = whatever. Complaints are compared by what they contain. */
#define assert_run(input, exit, said, complained, ...) \
    program_assert((input), (exit), (said), (complained), ARGS(__VA_ARGS__), __FILE__, __LINE__)

static inline void program_assert(const char *input, int exit_status, const char *said, const char *complained,
                                  const char *const args[], const char *file, int line)
{
    struct program p;
    bool good;

    program_run(&p, input, strlen(input), args);
    good = p.exit == exit_status && (said == NULL || strcmp(p.said.data, said) == 0);
    if (complained != NULL)
        good = good && (complained[0] == '\0' ? p.complained.len == 0
                                              : strncmp(p.complained.data, "hibloom: ", 9) == 0 &&
                                                    strstr(p.complained.data, complained) != NULL);
    if (!good) {
        print_error("hibloom");
        for (size_t i = 0; args[i] != NULL; i++)
            print_error(" '%s'", args[i]);
        print_error(": exit %d, not %d\nsaid: %s\ncomplained: %s\n", p.exit, exit_status, p.said.data,
                    p.complained.data);
        _fail(file, line);
    }
    program_free(&p);
}

/* Options of a filter in which chance disturbs no test. */
#define SURE "-n", "100k", "-p", "1e-12"

/* All runs then find the tests' Redis by $HIBLOOM_URL. A group's setup. */
static inline int program_setup(void **state)
{
    return setenv("HIBLOOM_URL", test_uri(), 1);
}

#endif
