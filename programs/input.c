/* Items: the operands of the command, or the lines of standard input.
 *
 * A batch is the lines that one read(2) completes. So a file comes in large batches, and a slow
 * pipe in small ones without delay and without a timer. The buffer of stdio would first fill up.
 * Lines are not copied. Only an incomplete line at the end of a batch is moved. */
#include "input.h"
#include "output.h"
#include "progress.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAVED_LEN (sizeof INPUT_SAVED_FILE - 1)

/* The bytes to read; 0 if unknown. */
static uint64_t bytes_to_come(void)
{
    struct stat file;
    const off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);

    if (at < 0 || fstat(STDIN_FILENO, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size < at)
        return 0;
    return (uint64_t)(file.st_size - at);
}

static bool append_item(struct input *in, const char *data, size_t len)
{
    if (in->n == in->items_room) {
        const size_t room = in->items_room == 0 ? 1024 : 2 * in->items_room;
        hibloom_item *items = realloc(in->items, room * sizeof *items);

        if (items == NULL) {
            complain("%s", strerror(ENOMEM));
            return false;
        }
        in->items = items;
        in->items_room = room;
    }
    in->items[in->n++] = (hibloom_item){data, len};
    return true;
}

/* It may end in CR, as the lines of Windows do. */
static bool append_line(struct input *in, const char *line, size_t len)
{
    const bool has_cr = len > 0 && line[len - 1] == '\r';

    in->lines++;
    in->cr_lines += has_cr;
    return append_item(in, line, len - (has_cr && in->crlf));
}

/* The warning comes after 100 lines or at the end, since a stream may have no end. */
#define LINES_JUDGED 100

static void warn_of_cr(struct input *in)
{
    if (in->crlf || in->warned || 2 * in->cr_lines <= in->lines || (in->lines < LINES_JUDGED && !in->ended))
        return;
    in->warned = true;
    complain("warning: most lines end in CR, as Windows writes them. The CR is part of the item; --crlf leaves it out");
}

bool input_open(struct input *in, char **operands, size_t n, bool crlf)
{
    memset(in, 0, sizeof *in);
    in->crlf = crlf;
    for (size_t i = 0; i < n; i++)
        if (!append_item(in, operands[i], strlen(operands[i]))) {
            input_close(in);
            return false;
        }
    in->fresh = in->ended = n > 0;
    /* A bar would disturb a user who types the lines. */
    if (n == 0 && !isatty(STDIN_FILENO))
        progress_start(bytes_to_come());
    return true;
}

/* Makes room for one byte at least. The longest line that is allowed leaves room
 * for its newline. */
static bool make_room(struct input *in)
{
    size_t size = in->size == 0 ? INPUT_READ_MAX : 2 * in->size;
    char *buffer;

    if (in->used < in->size)
        return true;
    if (in->size > INPUT_LINE_MAX) {
        complain("standard input: a line is longer than %zu bytes", INPUT_LINE_MAX);
        return false;
    }
    if (size > INPUT_LINE_MAX)
        size = INPUT_LINE_MAX + 1;
    buffer = realloc(in->buffer, size);
    if (buffer == NULL) {
        complain("standard input: %s", strerror(ENOMEM));
        return false;
    }
    in->buffer = buffer;
    in->size = size;
    return true;
}

/* Adds to the batch the lines that are now complete. Only the bytes that were
 * just read are searched: there is no newline before them. */
static bool cut_lines(struct input *in, size_t got)
{
    char *line = in->buffer + in->handed, *from = in->buffer + in->used, *end = from + got, *newline;

    while ((newline = memchr(from, '\n', (size_t)(end - from))) != NULL) {
        if (!append_line(in, line, (size_t)(newline - line)))
            return false;
        line = from = newline + 1;
    }
    in->handed = (size_t)(line - in->buffer);
    in->used += got;
    return true;
}

/* At the end of the input, a line without a newline is a line. */
static bool cut_last_line(struct input *in)
{
    const size_t begun = in->handed;

    in->ended = true;
    in->handed = in->used;
    return begun == in->used || append_line(in, in->buffer + begun, in->used - begun);
}

ssize_t input_read(char *out, size_t len)
{
    ssize_t got;

    while ((got = read(STDIN_FILENO, out, len)) < 0 && (errno == EINTR || errno == EAGAIN))
        if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, -1);
    return got;
}

static bool read_lines(struct input *in)
{
    size_t room;
    ssize_t got;

    if (!make_room(in))
        return false;
    room = in->size - in->used;
    got = input_read(in->buffer + in->used, room < INPUT_READ_MAX ? room : INPUT_READ_MAX);
    if (got > 0)
        return cut_lines(in, (size_t)got);
    if (got == 0)
        return cut_last_line(in);
    complain("standard input: %s", strerror(errno));
    return false;
}

/* Removes the last batch, and moves an incomplete line to the front. */
static void forget_batch(struct input *in)
{
    in->past_items += in->n;
    in->past_bytes += in->handed;
    in->n = 0;
    if (in->handed > 0) {
        memmove(in->buffer, in->buffer + in->handed, in->used - in->handed);
        in->used -= in->handed;
        in->handed = 0;
    }
}

/* The number of bytes of the input, all so far, that match the beginning of a file of hibloom save. */
static size_t saved_so_far(const struct input *in)
{
    const size_t len = in->used < SAVED_LEN ? in->used : SAVED_LEN;

    return in->past_bytes == 0 && len > 0 && memcmp(in->buffer, INPUT_SAVED_FILE, len) == 0 ? len : 0;
}

static bool may_be_saved(const struct input *in)
{
    const size_t len = saved_so_far(in);

    return len > 0 && len < SAVED_LEN;
}

enum input_status input_next(struct input *in)
{
    if (in->fresh) {
        in->fresh = false;
        return INPUT_BATCH;
    }
    forget_batch(in);
    progress_show(in->past_items, in->past_bytes);
    while ((in->n == 0 || may_be_saved(in)) && !in->ended)
        if (!read_lines(in))
            return INPUT_TROUBLE;
    if (saved_so_far(in) == SAVED_LEN) {
        complain("standard input: this is a file of hibloom save, and no lines: use hibloom restore NAME -");
        return INPUT_TROUBLE;
    }
    warn_of_cr(in);
    return in->n > 0 ? INPUT_BATCH : INPUT_END;
}

void input_close(struct input *in)
{
    progress_erase();
    free(in->items);
    free(in->buffer);
    memset(in, 0, sizeof *in);
}
