/* file.c: a filter in a file; its format is in docs/format.md.
 *
 * The content of a file is checked before it is used. Its lengths are checked against each other
 * and its size, its spec as one from Redis is. Writing goes to a temporary file that takes the
 * old one's place when it is whole and on disk. So a reader sees the one or the other. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "filter/file.h"
#include "base/alloc.h"
#include "hash/load.h"
#include "spec/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION 1u
#define VERSION_AT 8 /* in the header, behind the magic bytes */
#define TEXT_LENGTH_AT 12
#define BITS_LENGTH_AT 16
#define SUM_BYTES 8

static const unsigned char magic[VERSION_AT] = {0x89, 'H', 'B', 'L', '\r', '\n', 0x1a, '\n'};

/* ---- Failures -------------------------------------------------------------- */

/* A path that is too long is cut, so that the words fit. */
static hibloom_status fail(struct filter_file *file, hibloom_status status, const char *words)
{
    return error_set(file->error, status, "%.768s: %s", file->path, words);
}

static hibloom_status fail_system(struct filter_file *file)
{
    return fail(file, errno == ENOMEM ? HIBLOOM_ENOMEM : HIBLOOM_EIO, strerror(errno));
}

/* If it was whole at the first reading, it has been altered since, and a part of it may be merged. */
hibloom_status filter_file_corrupt(struct filter_file *file, const char *words)
{
    return fail(file, HIBLOOM_ECORRUPT,
                file->checked ? "was altered while it was being loaded; a part of it may be in" : words);
}

/* ---- Bytes ----------------------------------------------------------------- */

static hibloom_status read_all(struct filter_file *file, void *out, size_t len)
{
    for (size_t done = 0; done < len;) {
        const ssize_t got = read(file->fd, (unsigned char *)out + done, len - done);
        if (got == 0)
            return filter_file_corrupt(file, "was cut short while it was read");
        if (got < 0 && errno != EINTR)
            return fail_system(file);
        done += got > 0 ? (size_t)got : 0;
    }
    return HIBLOOM_OK;
}

static hibloom_status write_all(struct filter_file *file, const void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        const ssize_t put = write(file->fd, (const unsigned char *)bytes + done, len - done);
        if (put < 0 && errno == EAGAIN) /* whoever shares a pipe has made it so */
            poll(&(struct pollfd){.fd = file->fd, .events = POLLOUT}, 1, -1);
        else if (put < 0 && errno != EINTR)
            return fail_system(file);
        done += put > 0 ? (size_t)put : 0;
    }
    return HIBLOOM_OK;
}

static void store_bytes(unsigned char *out, uint64_t value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

static void sum_head(struct filter_file *file)
{
    XXH3_64bits_reset(file->sum);
    XXH3_64bits_update(file->sum, file->header, sizeof file->header);
    XXH3_64bits_update(file->sum, file->text, strlen(file->text));
}

/* ---- Reading --------------------------------------------------------------- */

static hibloom_status begin(struct filter_file *file, const char *path, struct error *error)
{
    const size_t align = _Alignof(XXH3_state_t);
    char *memory = alloc.malloc(sizeof(XXH3_state_t) + align);

    *file = (struct filter_file){.fd = -1, .path = path, .error = error, .memory = memory};
    if (memory == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    file->sum = (XXH3_state_t *)(memory + (align - (uintptr_t)memory % align));
    return HIBLOOM_OK;
}

/* Only a regular file has a size to check by, and no writer to wait for. Without O_NONBLOCK,
 * open would wait for the writer of a pipe. */
static hibloom_status open_regular(struct filter_file *file, uint64_t *size)
{
    struct stat st;

    while ((file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0 && errno == EINTR)
        ; /* on a network's file system */
    if (file->fd < 0 || fstat(file->fd, &st) != 0)
        return fail_system(file);
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return fail(file, HIBLOOM_EIO, "is not a regular file");
    }
    *size = (uint64_t)st.st_size;
    return HIBLOOM_OK;
}

/* It has what is unknown here. A newer version has written it, if the file is whole. */
static hibloom_status check_newer(struct filter_file *file, uint64_t size, const char *words)
{
    unsigned char part[4096];
    hibloom_status status = lseek(file->fd, 0, SEEK_SET) == 0 ? HIBLOOM_OK : fail_system(file);

    XXH3_64bits_reset(file->sum);
    for (uint64_t left = size - SUM_BYTES; left > 0 && status == HIBLOOM_OK;) {
        const size_t len = left < sizeof part ? (size_t)left : sizeof part;
        status = filter_file_read(file, part, len);
        left -= len;
    }
    if (status == HIBLOOM_OK)
        status = filter_file_check(file);
    return status == HIBLOOM_OK ? error_set(file->error, HIBLOOM_ENOTSUP, "%.256s %s", file->path, words) : status;
}

static hibloom_status read_header(struct filter_file *file, uint64_t size)
{
    if (size < FILE_HEADER_BYTES + SUM_BYTES)
        return filter_file_corrupt(file, "is too short to hold a filter");
    hibloom_status status = read_all(file, file->header, sizeof file->header);
    if (status != HIBLOOM_OK)
        return status;
    if (memcmp(file->header, magic, sizeof magic) != 0)
        return filter_file_corrupt(file, "holds no filter");
    if (hash_load32(file->header + VERSION_AT) != VERSION)
        return check_newer(file, size, "was made by a newer hibloom");

    /* Neither sum nor difference may wrap, whatever the two lengths say. */
    const uint32_t text_length = hash_load32(file->header + TEXT_LENGTH_AT);
    const uint64_t rest = size - FILE_HEADER_BYTES - SUM_BYTES;
    if (text_length >= sizeof file->text || text_length > rest)
        return filter_file_corrupt(file, "was altered or cut short: its spec is longer than it can be");
    if (hash_load64(file->header + BITS_LENGTH_AT) != rest - text_length)
        return filter_file_corrupt(file, "was altered or cut short: its size is not the one that it says");
    return read_all(file, file->text, text_length);
}

/* The bytes of all keys of a link; 0: that link cannot be. */
static uint64_t link_bytes(const struct spec *spec, uint32_t link)
{
    struct spec size;

    if ((link > 0 && spec->growth == 0) || spec_link_size(&size, spec, link) != HIBLOOM_OK)
        return 0;
    return spec_keys(&size) * spec_bitmap_bytes(&size);
}

/* The number of links that have these bytes together; 0: no number has. */
static uint32_t links_of(const struct spec *spec, uint64_t bytes)
{
    uint32_t links = 0;

    for (uint64_t more; bytes > 0; bytes -= more, links++) {
        more = link_bytes(spec, links);
        if (more == 0 || more > bytes)
            return 0;
    }
    return links;
}

static hibloom_status check_spec(struct filter_file *file, uint64_t size)
{
    hibloom_status status = HIBLOOM_ECORRUPT;
    struct error newer;

    if (strlen(file->text) == hash_load32(file->header + TEXT_LENGTH_AT))
        status = spec_adopt(&file->spec, file->text);
    if (status == HIBLOOM_OK)
        status = spec_check(&file->spec); /* it has a size */
    if (status == HIBLOOM_ENOMEM)
        return error_set(file->error, status, "out of memory");
    if (status == HIBLOOM_ENOTSUP) { /* a word of its text is */
        (void)request_say_newer(file->text, &newer);
        return check_newer(file, size, newer.words);
    }
    if (status != HIBLOOM_OK)
        return filter_file_corrupt(file, "was altered: its spec is unreadable");
    file->links = file->spec.link == 0 ? links_of(&file->spec, hash_load64(file->header + BITS_LENGTH_AT)) : 0;
    return file->links > 0 ? HIBLOOM_OK
                           : filter_file_corrupt(file, "was altered: it has not as many bits as its spec says");
}

hibloom_status filter_file_open(struct filter_file *file, const char *path, struct error *error)
{
    uint64_t size = 0;
    hibloom_status status = begin(file, path, error);

    if (status == HIBLOOM_OK)
        status = open_regular(file, &size);
    if (status == HIBLOOM_OK)
        status = read_header(file, size);
    if (status == HIBLOOM_OK)
        status = check_spec(file, size);
    if (status == HIBLOOM_OK)
        sum_head(file);
    return status;
}

hibloom_status filter_file_read(struct filter_file *file, void *out, size_t len)
{
    hibloom_status status = read_all(file, out, len);

    if (status == HIBLOOM_OK)
        XXH3_64bits_update(file->sum, out, len);
    return status;
}

hibloom_status filter_file_check(struct filter_file *file)
{
    unsigned char sum[SUM_BYTES];
    hibloom_status status = read_all(file, sum, sizeof sum);

    if (status == HIBLOOM_OK && hash_load64(sum) != XXH3_64bits_digest(file->sum))
        status = filter_file_corrupt(file, "was altered: its checksum is another");
    file->checked = status == HIBLOOM_OK;
    return status;
}

hibloom_status filter_file_rewind(struct filter_file *file)
{
    sum_head(file);
    return lseek(file->fd, (off_t)(FILE_HEADER_BYTES + strlen(file->text)), SEEK_SET) >= 0 ? HIBLOOM_OK
                                                                                           : fail_system(file);
}

/* ---- Writing --------------------------------------------------------------- */

/* The file itself and not a link to it: the link is to stay one. A link to
 * nothing is refused. *exists: `old` is a file that will be replaced. */
static hibloom_status find_target(struct filter_file *file, struct stat *old, bool *exists)
{
    *exists = stat(file->path, old) == 0;
    if (*exists && !S_ISREG(old->st_mode)) /* /dev/stdout leads to a pipe, which has no path */
        return fail(file, HIBLOOM_EIO, "is not a regular file");
    if (*exists)
        return realpath(file->path, file->target) != NULL ? HIBLOOM_OK : fail_system(file);
    if (errno != ENOENT)
        return fail_system(file);
    if (lstat(file->path, old) == 0)
        return fail(file, HIBLOOM_EIO, "is a link to nothing");
    if (strlen(file->path) >= sizeof file->target)
        return fail(file, HIBLOOM_EIO, strerror(ENAMETOOLONG));
    strcpy(file->target, file->path);
    return HIBLOOM_OK;
}

/* Bytes of the target that are its directory, up to its last slash. */
static size_t directory_length(const struct filter_file *file)
{
    const char *slash = strrchr(file->target, '/');

    return slash != NULL ? (size_t)(slash - file->target) + 1 : 0;
}

/* In the same directory, or it could not take the other's place. mkostemp makes a new file,
 * 0600. Nobody could foresee its name and put a link there. */
static hibloom_status make_temporary(struct filter_file *file)
{
    const size_t len = directory_length(file);

    memcpy(file->temporary, file->target, len);
    strcpy(file->temporary + len, FILE_TEMPORARY);
    file->fd = mkostemp(file->temporary, O_CLOEXEC);
    if (file->fd >= 0)
        return HIBLOOM_OK;
    file->temporary[0] = '\0';
    return fail_system(file);
}

/* The same users may read the new file as the old one, and nobody else. It gets the old mode, owner and group, as far
 * as we may give the file away. If we may not, no other group gets the old group's rights. */
static hibloom_status take_over(struct filter_file *file, const struct stat *old)
{
    mode_t mode = old->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);

    if (fchown(file->fd, old->st_uid, old->st_gid) != 0 && fchown(file->fd, (uid_t)-1, old->st_gid) != 0)
        mode &= ~(mode_t)S_IRWXG;
    return fchmod(file->fd, mode) == 0 ? HIBLOOM_OK : fail_system(file);
}

static hibloom_status write_head(struct filter_file *file)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < file->links; i++)
        bytes += link_bytes(&file->spec, i);
    memcpy(file->header, magic, sizeof magic);
    store_bytes(file->header + VERSION_AT, VERSION, 4);
    store_bytes(file->header + TEXT_LENGTH_AT, strlen(file->text), 4);
    store_bytes(file->header + BITS_LENGTH_AT, bytes, 8);
    sum_head(file);
    hibloom_status status = write_all(file, file->header, sizeof file->header);
    return status == HIBLOOM_OK ? write_all(file, file->text, strlen(file->text)) : status;
}

hibloom_status filter_file_create(struct filter_file *file, const char *path, int fd, const struct spec *spec,
                                  uint32_t links, struct error *error)
{
    struct stat old;
    bool exists = false;
    hibloom_status status = begin(file, path != NULL ? path : "the file descriptor", error);

    if (status == HIBLOOM_OK && path != NULL)
        status = find_target(file, &old, &exists);
    if (status == HIBLOOM_OK && path != NULL)
        status = make_temporary(file);
    if (status == HIBLOOM_OK && exists)
        status = take_over(file, &old);
    if (status != HIBLOOM_OK)
        return status;
    file->borrowed = path == NULL;
    if (file->borrowed)
        file->fd = fd;
    spec_copy(&file->spec, spec);
    file->links = links;
    status = spec_format(spec, file->text, sizeof file->text);
    return status == HIBLOOM_OK ? write_head(file) : status;
}

hibloom_status filter_file_write(struct filter_file *file, const void *bits, size_t len)
{
    XXH3_64bits_update(file->sum, bits, len);
    return write_all(file, bits, len);
}

/* So that the new name outlives a crash of the machine. It is no failure if not. The file is
 * there; after a crash the old one or the new one is. */
static void sync_directory(struct filter_file *file)
{
    const size_t len = directory_length(file);

    file->target[len] = '\0';
    const int fd = open(len > 0 ? file->target : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

hibloom_status filter_file_commit(struct filter_file *file)
{
    unsigned char sum[SUM_BYTES];

    store_bytes(sum, XXH3_64bits_digest(file->sum), sizeof sum);
    hibloom_status status = write_all(file, sum, sizeof sum);
    if (status != HIBLOOM_OK || file->borrowed)
        return status;
    if (fsync(file->fd) != 0 || rename(file->temporary, file->target) != 0)
        return fail_system(file);
    file->temporary[0] = '\0';
    sync_directory(file);
    return HIBLOOM_OK;
}

void filter_file_close(struct filter_file *file)
{
    const int error = errno;

    if (file->path == NULL)
        return;
    if (file->temporary[0] != '\0')
        unlink(file->temporary);
    if (file->fd >= 0 && !file->borrowed)
        close(file->fd);
    if (file->sum != NULL) /* holds what was summed last, so maybe the text */
        explicit_bzero(file->sum, sizeof *file->sum);
    alloc.free(file->memory);
    explicit_bzero(file, sizeof *file); /* the seed is in its spec and text */
    errno = error;
}
