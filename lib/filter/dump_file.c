/* dump_file.c: a dump of RedisBloom in a file. See dump_file.h. */
#include "filter/dump_file.h"
#include "base/alloc.h"
#include "base/number.h"
#include "spec/redisbloom.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct dump_file {
    FILE *file;
    const char *path;
    struct error *error;
};

/* ---- Failures ------------------------------------------------------------------- */

static hibloom_status fail_system(const char *path, struct error *error)
{
    return error_set(error, HIBLOOM_EIO, "%.768s: %s", path, strerror(errno));
}

static hibloom_status corrupt(struct dump_file *file, const char *words)
{
    return ferror(file->file) ? fail_system(file->path, file->error)
                              : error_set(file->error, HIBLOOM_ECORRUPT, "%.768s: %s", file->path, words);
}

/* ---- Pieces --------------------------------------------------------------------- */

/* A line that is a whole number; 0 at the end of the file. */
static hibloom_status read_iterator(struct dump_file *file, uint64_t *out)
{
    char digits[NUMBER_DIGITS];
    size_t len = 0;
    int c;

    *out = 0;
    while ((c = getc(file->file)) != EOF && c != '\n' && len < sizeof digits)
        digits[len++] = (char)c;
    if (c == EOF && len == 0 && !ferror(file->file))
        return HIBLOOM_OK;
    if (c != '\n' || number_parse(digits, len, INT64_MAX, out) != HIBLOOM_OK)
        return corrupt(file, "an iterator of BF.SCANDUMP should be here, and is not: this is no dump as redis-cli "
                             "prints it, or it was cut short");
    return HIBLOOM_OK;
}

/* A header's length is in its own first bytes; that of data follows from the iterators. */
static hibloom_status find_length(struct dump_file *file, const struct dumped *piece, size_t *had, uint64_t *len)
{
    if (piece->at != 0) {
        *len = piece->next > piece->at ? piece->next - piece->at : 0;
        return HIBLOOM_OK;
    }
    *had = fread(piece->bytes, 1, REDISBLOOM_HEAD_BYTES, file->file);
    if (*had < REDISBLOOM_HEAD_BYTES)
        return corrupt(file, "was cut short in its header");
    *len = redisbloom_header_length(piece->bytes);
    return HIBLOOM_OK;
}

hibloom_status dump_file_read(struct dump_file *file, struct dumped *piece)
{
    uint64_t len = 0;
    size_t had = 0;

    piece->len = 0;
    hibloom_status status = read_iterator(file, &piece->next);
    if (status != HIBLOOM_OK || piece->next == 0)
        return status;
    status = find_length(file, piece, &had, &len);
    if (status != HIBLOOM_OK)
        return status;
    if (len > piece->room)
        return corrupt(file, piece->at == 0
                                 ? "is no dump of RedisBloom, or was altered; or it has grown to more filters, "
                                   "one behind the other, than can be taken over"
                                 : "was altered: it has a longer piece than its header allows");
    if (fread(piece->bytes + had, 1, (size_t)len - had, file->file) != len - had || getc(file->file) != '\n')
        return corrupt(file, "was cut short or altered: a piece has not the length that its iterator says");
    piece->len = (size_t)len;
    return HIBLOOM_OK;
}

hibloom_status dump_file_end(struct dump_file *file)
{
    return getc(file->file) == EOF && !ferror(file->file)
               ? HIBLOOM_OK
               : corrupt(file, "goes on behind the header with which a dump ends");
}

/* ---- The file ------------------------------------------------------------------- */

hibloom_status dump_file_open(struct dump_file **out, const char *path, struct error *error)
{
    struct dump_file *file = alloc.malloc(sizeof *file);

    if (file == NULL)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    *file = (struct dump_file){.file = fopen(path, "rbe"), .path = path, .error = error};
    if (file->file == NULL) {
        const hibloom_status status = fail_system(path, error); /* errno may be another behind free */
        alloc.free(file);
        return status;
    }
    *out = file;
    return HIBLOOM_OK;
}

void dump_file_close(struct dump_file *file)
{
    if (file == NULL)
        return;
    fclose(file->file);
    alloc.free(file);
}
