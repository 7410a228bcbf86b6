/* Saving a filter is all or nothing: whatever cannot be written, or runs out of room, the old file is there. */
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- A save is all or nothing ------------------------------------------------------ */

static void assert_not_saved(const struct tiny_file *p, const char *path, const char *words)
{
    const unsigned files = files_in(p->dir);

    alarm(20);
    assert_status(hibloom_save(p->filter, path), HIBLOOM_EIO, p->store);
    alarm(0);
    assert_words(p->store, path);
    assert_words(p->store, words);
    assert_int_equal(files_in(p->dir), files);
}

static void what_cannot_be_written_is_left_alone(void **state)
{
    const struct tiny_file *p = *state;
    char *fifo = temp_dir_path(p->dir, "fifo"), *link = temp_dir_path(p->dir, "link");
    char *below = temp_dir_path(p->dir, "missing/file"), *slash = temp_dir_path(p->dir, "missing/");

    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink("missing", link), 0);
    assert_not_saved(p, below, strerror(ENOENT));
    assert_not_saved(p, slash, strerror(ENOENT));
    assert_not_saved(p, "", strerror(ENOENT));
    assert_not_saved(p, "/proc/hibloom", strerror(ENOENT)); /* nobody may write there, root neither */
    assert_not_saved(p, p->dir, "not a regular file");
    assert_not_saved(p, "/dev/null", "not a regular file");
    assert_not_saved(p, fifo, "not a regular file");
    assert_not_saved(p, link, "link to nothing");
    free(fifo);
    free(link);
    free(below);
    free(slash);
}

static void a_path_of_any_length_is_taken_or_refused(void **state)
{
    const struct tiny_file *p = *state;
    char path[3 * 4096];

    for (size_t len = strlen(p->dir) + 10; len < sizeof path; len += len < 4000 || len > 4200 ? 500 : 2) {
        /* dir/././././file */
        memset(path, '/', len);
        memcpy(path, p->dir, strlen(p->dir));
        for (size_t i = strlen(p->dir) + 1; i + 6 < len; i += 2)
            path[i] = '.';
        path[len - 5] = '/';
        strcpy(path + len - 4, "file");
        const hibloom_status status = hibloom_save(p->filter, path);
        assert_int_equal(status, len + strlen(".hibloom-") < 4094 ? HIBLOOM_OK : HIBLOOM_EIO);
        if (status != HIBLOOM_OK)
            assert_words(p->store, strerror(ENAMETOOLONG));
        assert_int_equal(files_in(p->dir), status == HIBLOOM_OK);
        unlink(p->path);
    }
}

static void a_filter_that_is_gone_is_not_saved(void **state)
{
    const struct tiny_file *p = *state;

    assert_ok(hibloom_save(p->filter, p->path), p->store);
    assert_ok(hibloom_drop(p->filter), p->store);
    assert_status(hibloom_save(p->filter, p->path), HIBLOOM_ENOTFOUND, p->store);
    assert_file(p->path, tiny_bytes, TINY_BYTES);
    assert_int_equal(files_in(p->dir), 1);
}

/* In a child whose files may have `room` bytes: exits 0 if the save fails as it
 * ought to, leaving the directory as it was. */
static void save_without_room(const struct tiny_file *p, rlim_t room)
{
    const struct rlimit limit = {room, room};
    char cut[4096];

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(2);
    const hibloom_status status = hibloom_save(p->filter, p->path);
    snprintf(cut, sizeof cut, "%s: %s", p->path, strerror(EFBIG));
    if (status != HIBLOOM_EIO || strcmp(hibloom_store_error(p->store), cut) != 0)
        _exit(3);
    _exit(files_in(p->dir) == 1 ? 0 : 4);
}

static void a_save_that_runs_out_of_room_leaves_the_old_file(void **state)
{
    const struct tiny_file *p = *state;

    write_file(p->path, "old", 3);
    for (rlim_t room = 0; room < TINY_BYTES; room++) {
        int status;
        const pid_t child = fork();
        if (child == 0)
            save_without_room(p, room);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_file(p->path, "old", 3);
    }
    assert_ok(hibloom_save(p->filter, p->path), p->store);
    assert_file(p->path, tiny_bytes, TINY_BYTES);
    assert_int_equal(files_in(p->dir), 1);
}

static void assert_mode(const char *path, mode_t mode)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, mode);
}

static void a_new_file_is_its_owner_s_and_an_old_one_keeps_its_mode(void **state)
{
    static const mode_t modes[] = {0600, 0640, 0644, 0666, 0400, 04755};
    const struct tiny_file *p = *state;
    const mode_t before = umask(0);

    assert_ok(hibloom_save(p->filter, p->path), p->store);
    assert_mode(p->path, 0600);
    umask(077);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(p->path, modes[i]), 0);
        assert_ok(hibloom_save(p->filter, p->path), p->store);
        assert_mode(p->path, modes[i] & 0777);
    }
    umask(before);
    assert_int_equal(files_in(p->dir), 1);
}

/* Exits 0 if nobody can save over somebody's file. */
static void save_as_nobody(const struct tiny_file *p)
{
    if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
        _exit(2);
    _exit(hibloom_save(p->filter, p->path) == HIBLOOM_OK ? 0 : 3);
}

static void a_group_s_rights_go_to_no_other_group(void **state)
{
    const struct tiny_file *p = *state;
    struct stat st;
    int status;

    if (geteuid() != 0)
        skip();
    write_file(p->path, "old", 3);
    assert_int_equal(chown(p->path, 12345, 12346), 0);
    assert_int_equal(chmod(p->path, 0664), 0);
    assert_ok(hibloom_save(p->filter, p->path), p->store); /* root gives it back */
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_uid, 12345);
    assert_int_equal(st.st_gid, 12346);
    assert_mode(p->path, 0664);

    assert_int_equal(chmod(p->dir, 0777), 0);
    const char *above = getenv("TMPDIR");
    if (above != NULL) { /* it may be root's alone: let others through */
        assert_int_equal(stat(above, &st), 0);
        assert_int_equal(chmod(above, (st.st_mode & 07777) | 0111), 0);
    }
    const pid_t child = fork();
    if (child == 0)
        save_as_nobody(p);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_uid, 65534);
    assert_mode(p->path, 0604);
}

static void a_link_stays_one_and_its_file_is_replaced(void **state)
{
    const struct tiny_file *p = *state;
    char *link = temp_dir_path(p->dir, "link");
    struct stat st;

    write_file(p->path, "old", 3);
    assert_int_equal(symlink("file", link), 0);
    assert_ok(hibloom_save(p->filter, link), p->store);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_file(p->path, tiny_bytes, TINY_BYTES);
    assert_int_equal(files_in(p->dir), 2);
    free(link);
}

static void a_path_without_a_directory_is_one_in_this(void **state)
{
    const struct tiny_file *p = *state;
    char *here = getcwd(NULL, 0);

    assert_non_null(here);
    assert_int_equal(chdir(p->dir), 0);
    assert_ok(hibloom_save(p->filter, "file"), p->store);
    assert_ok(hibloom_save(p->filter, "./file"), p->store);
    assert_int_equal(chdir(here), 0);
    assert_file(p->path, tiny_bytes, TINY_BYTES);
    assert_int_equal(files_in(p->dir), 1);
    free(here);
}

/* ---- To a descriptor --------------------------------------------------------------- */

static void a_pipe_gets_the_bytes_of_the_file_and_stays_open(void **state)
{
    const struct tiny_file *p = *state;
    unsigned char bytes[2 * TINY_BYTES + 1];
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_ok(hibloom_save_fd(p->filter, ends[1]), p->store);
    assert_ok(hibloom_save_fd(p->filter, ends[1]), p->store);
    assert_int_equal(read(ends[0], bytes, sizeof bytes), 2 * TINY_BYTES);
    assert_memory_equal(bytes, tiny_bytes, TINY_BYTES);
    assert_memory_equal(bytes + TINY_BYTES, tiny_bytes, TINY_BYTES);
    assert_int_equal(files_in(p->dir), 0);
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    assert_fails(hibloom_save_fd(p->filter, ends[1]), HIBLOOM_EIO, p->store, strerror(EPIPE));
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(close(ends[1]), 0);
    assert_status(hibloom_save_fd(p->filter, ends[1]), HIBLOOM_EIO, p->store);
    assert_status(hibloom_save_fd(p->filter, -1), HIBLOOM_EIO, p->store);
    assert_string_equal(hibloom_store_error(p->store), "the file descriptor: Bad file descriptor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TINY_TEST(a_pipe_gets_the_bytes_of_the_file_and_stays_open),
        TINY_TEST(what_cannot_be_written_is_left_alone),
        TINY_TEST(a_path_of_any_length_is_taken_or_refused),
        TINY_TEST(a_filter_that_is_gone_is_not_saved),
        TINY_TEST(a_save_that_runs_out_of_room_leaves_the_old_file),
        TINY_TEST(a_new_file_is_its_owner_s_and_an_old_one_keeps_its_mode),
        TINY_TEST(a_group_s_rights_go_to_no_other_group),
        TINY_TEST(a_link_stays_one_and_its_file_is_replaced),
        TINY_TEST(a_path_without_a_directory_is_one_in_this),
    };

    return cmocka_run_group_tests_name("unit: filter save", tests, NULL, NULL);
}
