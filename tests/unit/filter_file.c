/* A filter in a file: its format, byte for byte; that no file which is cut
 * short, altered or made up is taken for one; and that a save is all or
 * nothing, whatever becomes of it and whoever reads meanwhile. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/store.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- A tiny filter, and its file ------------------------------------------------ */

#define TINY "hash=poly layout=partitioned bits=20 hashes=2 seeds=3,5"

/* As the header describes it, by hand: "a", "b" and "abc" set bits 1, 2 and 18
 * of key 0, and 1 and 2 of key 1. The checksum is that of libxxhash 0.8.1. */
static const unsigned char tiny[] =
    "\x89HBL\r\n\x1a\n" "\1\0\0\0" "\67\0\0\0" "\6\0\0\0\0\0\0\0"
    TINY
    "\x60\x00\x20" "\x60\x00\x00"
    "\xd6\xf2\xed\x9b\xfa\xfb\x4f\xd6";
#define TINY_BYTES (sizeof tiny - 1)
#define TEXT_AT 24
#define BITS_AT (TEXT_AT + sizeof TINY - 1)

struct place {
    hibloom_store *store;
    hibloom *filter; /* a tiny one with "a", "b" and "abc" in it */
    char *dir, *path;
};

static hibloom *open_tiny(hibloom_store *store, const char *name)
{
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, TINY), NULL);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    return filter;
}

static int set_up(void **state)
{
    static struct place p;

    assert_ok(hibloom_memory(&p.store), NULL);
    p.filter = open_tiny(p.store, "tiny");
    assert_ok(hibloom_add(p.filter, "a", 1, NULL), p.store);
    assert_ok(hibloom_add(p.filter, "b", 1, NULL), p.store);
    assert_ok(hibloom_add(p.filter, "abc", 3, NULL), p.store);
    p.dir = temp_dir_make();
    p.path = temp_dir_path(p.dir, "file");
    *state = &p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    hibloom_close(p->filter);
    hibloom_store_free(p->store);
    free(p->path);
    temp_dir_remove(p->dir);
    return 0;
}

static void write_file(const char *path, const void *bytes, size_t len)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

/* What it holds must be exactly this. */
static void assert_file(const char *path, const void *bytes, size_t len)
{
    char found[4096];
    const int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, found, sizeof found), len);
    assert_memory_equal(found, bytes, len);
    close(fd);
}

static unsigned files_in(const char *dir)
{
    DIR *listing = opendir(dir);
    unsigned files = 0;

    assert_non_null(listing);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;)
        files += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(listing);
    return files;
}

static uint64_t bits_set(hibloom *filter)
{
    hibloom_info info;

    assert_ok(hibloom_get_info(filter, &info), filter->store);
    return info.bits_set;
}

/* ---- The format ----------------------------------------------------------------- */

static void the_file_is_as_the_header_says(void **state)
{
    const struct place *p = *state;
    hibloom *loaded = open_tiny(p->store, "loaded");

    assert_ok(hibloom_save(p->filter, p->path), p->store);
    assert_file(p->path, tiny, TINY_BYTES);
    write_file(p->path, tiny, TINY_BYTES);
    assert_ok(hibloom_load(loaded, p->path), p->store);
    assert_int_equal(bits_set(loaded), 5);
    hibloom_close(loaded);
}

/* Loads what must not be loaded, into an empty filter of this spec and of none
 * other: it stays empty. */
static void assert_corrupt(const struct place *p, hibloom *empty, const void *bytes, size_t len)
{
    write_file(p->path, bytes, len);
    assert_status(hibloom_load(empty, p->path), HIBLOOM_ECORRUPT, p->store);
    assert_non_null(strstr(hibloom_store_error(p->store), p->path));
    assert_int_equal(bits_set(empty), 0);
}

static void a_file_that_was_cut_short_is_refused(void **state)
{
    const struct place *p = *state;
    hibloom *empty = open_tiny(p->store, "empty");
    hibloom_spec spec;

    for (size_t len = 0; len < TINY_BYTES; len++) {
        assert_corrupt(p, empty, tiny, len);
        assert_true(len >= 32 || strstr(hibloom_store_error(p->store), "too short") != NULL);
        assert_status(hibloom_spec_load(&spec, p->path), HIBLOOM_ECORRUPT, NULL);
    }
    hibloom_close(empty);
}

static void a_file_that_goes_on_is_refused(void **state)
{
    const struct place *p = *state;
    hibloom *empty = open_tiny(p->store, "empty");
    unsigned char longer[TINY_BYTES + 16] = {0};

    memcpy(longer, tiny, TINY_BYTES);
    for (size_t len = TINY_BYTES + 1; len <= sizeof longer; len++)
        assert_corrupt(p, empty, longer, len);
    hibloom_close(empty);
}

static void a_file_with_any_byte_altered_is_refused(void **state)
{
    const struct place *p = *state;
    hibloom *empty = open_tiny(p->store, "empty");
    unsigned char altered[TINY_BYTES];

    for (size_t at = 0; at < TINY_BYTES; at++)
        for (unsigned change = 1; change < 256; change++) {
            memcpy(altered, tiny, TINY_BYTES);
            altered[at] ^= (unsigned char)change;
            assert_corrupt(p, empty, altered, TINY_BYTES);
        }
    hibloom_close(empty);
}

/* A file with its checksum, so that nothing but what it says is wrong. */
static void assert_forged(const struct place *p, hibloom *empty, const char *header, size_t text_length,
                          const char *text, size_t bits_length, const char *bits, const char *words)
{
    unsigned char file[4096];
    size_t len = 24;

    memcpy(file, header, len);
    memcpy(file + len, text, text_length);
    len += text_length;
    memcpy(file + len, bits, bits_length);
    len += bits_length;
    const uint64_t sum = XXH3_64bits(file, len);
    for (int i = 0; i < 8; i++)
        file[len++] = (unsigned char)(sum >> 8 * i);
    assert_corrupt(p, empty, file, len);
    if (strstr(hibloom_store_error(p->store), words) == NULL)
        fail_msg("\"%s\" says nothing of \"%s\"", hibloom_store_error(p->store), words);
}

#define HEAD(version, text_length, bits_length) "\x89HBL\r\n\x1a\n" version text_length bits_length

static void a_file_that_lies_is_refused_though_its_checksum_is_right(void **state)
{
    const struct place *p = *state;
    hibloom *empty = open_tiny(p->store, "empty");
    static const char zeros[2048];
    char blanks[2048];
    struct {
        const char *header;
        size_t text_length;
        const char *text;
        size_t bits_length;
        const char *bits, *words;
    } lies[] = {
        {"\x89HBL\n\x1a\n\n\1\0\0\0\67\0\0\0\6\0\0\0\0\0\0\0", 55, TINY, 6, zeros, "no filter"},
        {HEAD("\2\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55, TINY, 6, zeros, "version"},
        {HEAD("\1\0\1\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55, TINY, 6, zeros, "version"},
        /* lengths past the end, or whose sum wraps round to it */
        {HEAD("\1\0\0\0", "\xff\xff\xff\xff", "\6\0\0\0\0\0\0\0"), 55, TINY, 6, zeros, "spec is longer"},
        {HEAD("\1\0\0\0", "\0\x08\0\0", "\0\0\0\0\0\0\0\0"), 2048, blanks, 0, zeros, "spec is longer"},
        {HEAD("\1\0\0\0", "\100\0\0\0", "\xfd\xff\xff\xff\xff\xff\xff\xff"), 55, TINY, 6, zeros, "spec is longer"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\x80"), 55, TINY, 6, zeros, "its size"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\xf0\xff\xff\xff\xff\xff\xff\xff"), 55, TINY, 6, zeros, "its size"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\7\0\0\0\0\0\0\0"), 55, TINY, 6, zeros, "its size"},
        /* bits that are not the spec's */
        {HEAD("\1\0\0\0", "\67\0\0\0", "\5\0\0\0\0\0\0\0"), 55, TINY, 5, zeros, "as many bits"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\7\0\0\0\0\0\0\0"), 55, TINY, 7, zeros, "as many bits"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\0\0\0\0\0\0\0\0"), 55, TINY, 0, zeros, "as many bits"},
        /* bits behind the last one, of each key */
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55, TINY, 6, "\0\0\x08\0\0\0", "behind"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55, TINY, 6, "\0\0\0\0\0\1", "behind"},
        /* texts that are none, or not the one that is written for that spec */
        {HEAD("\1\0\0\0", "\0\0\0\0", "\6\0\0\0\0\0\0\0"), 0, TINY, 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55, zeros, 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\70\0\0\0", "\6\0\0\0\0\0\0\0"), 56, TINY "\0", 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\70\0\0\0", "\6\0\0\0\0\0\0\0"), 56, TINY " ", 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55,
         "layout=partitioned hash=poly bits=20 hashes=2 seeds=3,5", 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\7\0\0\0", "\6\0\0\0\0\0\0\0"), 7, "nothing", 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\22\0\0\0", "\6\0\0\0\0\0\0\0"), 18, "php-poly8 bits=6\0\0", 6, zeros, "its spec"},
    };

    memset(blanks, ' ', sizeof blanks);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        assert_forged(p, empty, lies[i].header, lies[i].text_length, lies[i].text, lies[i].bits_length, lies[i].bits,
                      lies[i].words);
    hibloom_close(empty);
}

/* Between the two looks at it: the second one's bits are in by then. */
static struct {
    const struct store_class *real;
    const char *path;
    off_t cut; /* to so many bytes; or -1: its last byte is changed */
} meddling;

static hibloom_status meddle(hibloom *filter, const struct piece *piece, const unsigned char *bits)
{
    if (meddling.cut >= 0) {
        assert_int_equal(truncate(meddling.path, meddling.cut), 0);
    } else {
        const int fd = open(meddling.path, O_WRONLY);
        assert_int_equal(pwrite(fd, "", 1, TINY_BYTES - 1), 1);
        close(fd);
    }
    return meddling.real->merge(filter, piece, bits);
}

static void a_file_that_is_altered_while_it_is_loaded_is_told_of(void **state)
{
    const struct place *p = *state;
    hibloom *into = open_tiny(p->store, "into");
    static const struct {
        off_t cut;
        unsigned merged; /* bits, of what was there to be read */
    } cases[] = {{-1, 5}, {BITS_AT + 6, 5}, {BITS_AT + 3, 3}, {BITS_AT + 4, 3}, {0, 3}};
    static struct store_class class; /* static: where the test fails, the store still has it */

    class = *p->store->class;
    meddling.real = p->store->class;
    meddling.path = p->path;
    class.merge = meddle;
    p->store->class = &class;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        meddling.cut = cases[i].cut;
        assert_ok(hibloom_clear(into), p->store);
        write_file(p->path, tiny, TINY_BYTES);
        assert_status(hibloom_load(into, p->path), HIBLOOM_ECORRUPT, p->store);
        assert_non_null(strstr(hibloom_store_error(p->store), "while it was being loaded"));
        assert_int_equal(bits_set(into), cases[i].merged);
    }
    p->store->class = meddling.real;
    hibloom_close(into);
}

/* ---- What is no file ------------------------------------------------------------- */

static void assert_no_file(const struct place *p, const char *path, const char *words)
{
    hibloom_spec spec;

    alarm(20); /* where it waits for a writer */
    assert_status(hibloom_load(p->filter, path), HIBLOOM_EIO, p->store);
    assert_non_null(strstr(hibloom_store_error(p->store), path));
    assert_non_null(strstr(hibloom_store_error(p->store), words));
    errno = 0;
    assert_status(hibloom_spec_load(&spec, path), HIBLOOM_EIO, NULL);
    assert_int_not_equal(errno, 0);
    alarm(0);
}

static void what_is_no_regular_file_is_not_read(void **state)
{
    const struct place *p = *state;
    char *fifo = temp_dir_path(p->dir, "fifo");

    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_no_file(p, fifo, "not a regular file");
    assert_no_file(p, p->dir, "not a regular file");
    assert_no_file(p, "/dev/zero", "not a regular file");
    assert_no_file(p, p->path, strerror(ENOENT));
    assert_no_file(p, "/dev/null/file", strerror(ENOTDIR));
    assert_no_file(p, "", strerror(ENOENT));
    free(fifo);
}

/* ---- A save is all or nothing ------------------------------------------------------ */

static void assert_not_saved(const struct place *p, const char *path, const char *words)
{
    const unsigned files = files_in(p->dir);

    alarm(20);
    assert_status(hibloom_save(p->filter, path), HIBLOOM_EIO, p->store);
    alarm(0);
    assert_non_null(strstr(hibloom_store_error(p->store), path));
    assert_non_null(strstr(hibloom_store_error(p->store), words));
    assert_int_equal(files_in(p->dir), files);
}

static void what_cannot_be_written_is_left_alone(void **state)
{
    const struct place *p = *state;
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
    const struct place *p = *state;
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
            assert_non_null(strstr(hibloom_store_error(p->store), strerror(ENAMETOOLONG)));
        assert_int_equal(files_in(p->dir), status == HIBLOOM_OK);
        unlink(p->path);
    }
}

static void a_filter_that_is_gone_is_not_saved(void **state)
{
    const struct place *p = *state;

    assert_ok(hibloom_save(p->filter, p->path), p->store);
    assert_ok(hibloom_drop(p->filter), p->store);
    assert_status(hibloom_save(p->filter, p->path), HIBLOOM_ENOTFOUND, p->store);
    assert_file(p->path, tiny, TINY_BYTES);
    assert_int_equal(files_in(p->dir), 1);
}

/* In a child whose files may have `room` bytes: exits 0 if the save fails as it
 * ought to, leaving the directory as it was. */
static void save_without_room(const struct place *p, rlim_t room)
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
    const struct place *p = *state;

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
    assert_file(p->path, tiny, TINY_BYTES);
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
    const struct place *p = *state;
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
static void save_as_nobody(const struct place *p)
{
    if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
        _exit(2);
    _exit(hibloom_save(p->filter, p->path) == HIBLOOM_OK ? 0 : 3);
}

static void a_group_s_rights_go_to_no_other_group(void **state)
{
    const struct place *p = *state;
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
    const struct place *p = *state;
    char *link = temp_dir_path(p->dir, "link");
    struct stat st;

    write_file(p->path, "old", 3);
    assert_int_equal(symlink("file", link), 0);
    assert_ok(hibloom_save(p->filter, link), p->store);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_file(p->path, tiny, TINY_BYTES);
    assert_int_equal(files_in(p->dir), 2);
    free(link);
}

static void a_path_without_a_directory_is_one_in_this(void **state)
{
    const struct place *p = *state;
    char *here = getcwd(NULL, 0);

    assert_non_null(here);
    assert_int_equal(chdir(p->dir), 0);
    assert_ok(hibloom_save(p->filter, "file"), p->store);
    assert_ok(hibloom_save(p->filter, "./file"), p->store);
    assert_int_equal(chdir(here), 0);
    assert_file(p->path, tiny, TINY_BYTES);
    assert_int_equal(files_in(p->dir), 1);
    free(here);
}

/* ---- At once ------------------------------------------------------------------------ */

#define SAVES 200
#define BIG "bits=4000003 hashes=3 seed=1"

static hibloom *open_big(hibloom_store *store, const char *name, unsigned items)
{
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, BIG), NULL);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    for (unsigned i = 0; i < items; i++)
        assert_ok(hibloom_add(filter, &i, sizeof i, NULL), store);
    return filter;
}

static void readers_see_the_old_file_or_the_new_one(void **state)
{
    const struct place *p = *state;
    static hibloom *few, *many, *loaded; /* static: no leak to valgrind where the child ends */
    unsigned loads = 0, seen_few = 0, seen_many = 0;
    int status;

    few = open_big(p->store, "few", 10);
    many = open_big(p->store, "many", 1000);
    loaded = open_big(p->store, "loaded", 0);
    assert_ok(hibloom_save(few, p->path), p->store);
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < SAVES; i++)
            if (hibloom_save(i % 2 ? few : many, p->path) != HIBLOOM_OK)
                _exit(1);
        _exit(0);
    }
    for (; waitpid(child, &status, WNOHANG) == 0; loads++) {
        assert_ok(hibloom_clear(loaded), p->store);
        assert_ok(hibloom_load(loaded, p->path), p->store);
        const uint64_t bits = bits_set(loaded);
        seen_few += bits == bits_set(few);
        seen_many += bits == bits_set(many);
    }
    assert_int_equal(status, 0);
    assert_int_equal(seen_few + seen_many, loads);
    assert_true(seen_few > 0 && seen_many > 0);
    assert_int_equal(files_in(p->dir), 1);
    hibloom_close(few);
    hibloom_close(many);
    hibloom_close(loaded);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_file_is_as_the_header_says),
        TEST(a_file_that_was_cut_short_is_refused),
        TEST(a_file_that_goes_on_is_refused),
        TEST(a_file_with_any_byte_altered_is_refused),
        TEST(a_file_that_lies_is_refused_though_its_checksum_is_right),
        TEST(a_file_that_is_altered_while_it_is_loaded_is_told_of),
        TEST(what_is_no_regular_file_is_not_read),
        TEST(what_cannot_be_written_is_left_alone),
        TEST(a_path_of_any_length_is_taken_or_refused),
        TEST(a_filter_that_is_gone_is_not_saved),
        TEST(a_save_that_runs_out_of_room_leaves_the_old_file),
        TEST(a_new_file_is_its_owner_s_and_an_old_one_keeps_its_mode),
        TEST(a_group_s_rights_go_to_no_other_group),
        TEST(a_link_stays_one_and_its_file_is_replaced),
        TEST(a_path_without_a_directory_is_one_in_this),
        TEST(readers_see_the_old_file_or_the_new_one),
    };

    return cmocka_run_group_tests_name("unit: filter file", tests, NULL, NULL);
}
