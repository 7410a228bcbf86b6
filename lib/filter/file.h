/* file.h: the file that hibloom_save writes, as a stream.
 *
 * This file knows its content and checks it; transfer.c knows the filter. One call at a time, in this order.
 *   to read   open, read until all bits are there, check; rewind to do so again
 *   to write  create, write until all bits are there, commit
 * and close in any case. Words of a failure are in the *error that open or create was given, which must outlive
 * the file as `path` must. */
#ifndef HIBLOOM_FILTER_FILE_H
#define HIBLOOM_FILTER_FILE_H

#include "spec/request.h"

#include <limits.h>

#define FILE_HEADER_BYTES 24
#define FILE_TEMPORARY ".hibloom-XXXXXX"

struct filter_file {
    struct spec spec;
    char text[SPEC_TEXT_SIZE]; /* of the spec */
    uint32_t links;            /* whose bits it has */
    /* Private: */
    int fd;           /* -1: none */
    bool borrowed;    /* it is the caller's: nothing is renamed, and it stays open */
    const char *path; /* as the caller has it, for words */
    struct error *error;
    struct XXH3_state_s *sum; /* of what was read or written so far; it is in */
    void *memory;             /* this, where its alignment allows */
    unsigned char header[FILE_HEADER_BYTES];
    bool checked;                                     /* it was whole when it was read first */
    char target[PATH_MAX];                            /* of one to be written: the file that it shall be, */
    char temporary[PATH_MAX + sizeof FILE_TEMPORARY]; /* and the one that it is until then; "" when that is not there */
};

/* Checks all but the bits and the checksum. So the file has the bits that its spec says; for a
 * growing filter those of its first links. EIO, ECORRUPT, ENOMEM. */
hibloom_status filter_file_open(struct filter_file *file, const char *path, struct error *error);

/* The next bytes of the bits. */
hibloom_status filter_file_read(struct filter_file *file, void *out, size_t len);

/* After the last of them: is the file, as it was read, the one that was written? */
hibloom_status filter_file_check(struct filter_file *file);

/* ECORRUPT for what is wrong with the bits. */
hibloom_status filter_file_corrupt(struct filter_file *file, const char *words);

/* To the first of the bits. */
hibloom_status filter_file_rewind(struct filter_file *file);

/* Begins a file beside the one at `path`, which stays as it is until commit. If path is NULL, writes to `fd`. */
hibloom_status filter_file_create(struct filter_file *file, const char *path, int fd, const struct spec *spec,
                                  uint32_t links, struct error *error);
hibloom_status filter_file_write(struct filter_file *file, const void *bits, size_t len);
hibloom_status filter_file_commit(struct filter_file *file);

/* Removes a file that was created and not committed. Keeps errno; one that is all zeros was never opened. */
void filter_file_close(struct filter_file *file);

#endif
