/* Items: the operands of the command, or the lines of standard input. See
 * input.c. */
#ifndef HIBLOOM_PROGRAM_INPUT_H
#define HIBLOOM_PROGRAM_INPUT_H

#include <hibloom/hibloom.h>
#include <sys/types.h>

/* Bytes of one line at most, its newline not counted. */
#ifndef INPUT_LINE_MAX
#define INPUT_LINE_MAX ((size_t)64 << 20)
#endif

/* Bytes of one read, and so of one batch without the start of its first line. They are enough
 * for thousands of lines, and not too many to lose if the call fails. */
#ifndef INPUT_READ_MAX
#define INPUT_READ_MAX ((size_t)256 << 10)
#endif

/* The first bytes of a file of hibloom save, which is no input. */
#define INPUT_SAVED_FILE "\x89HBL\r\n\x1a\n"

struct input {
    hibloom_item *items; /* the batch; valid until the next input_next */
    size_t n;

    /* for input.c only */
    bool crlf;                /* a CR at the end of a line is no part of it */
    bool warned;              /* that most lines have one: */
    uint64_t lines, cr_lines; /* so far */
    size_t items_room;
    bool fresh;   /* the batch is the operands, not handed over yet */
    bool ended;   /* nothing follows the batch */
    char *buffer; /* [ lines handed over | an incomplete line | room ] */
    size_t handed, used, size;
    uint64_t past_items, past_bytes; /* handed over earlier */
};

enum input_status {
    INPUT_END,
    INPUT_BATCH,
    INPUT_TROUBLE /* after a complaint */
};

/* The n operands, or standard input if n is 0. crlf: a CR at the end of a line is left out. False after a complaint. */
bool input_open(struct input *input, char **operands, size_t n, bool crlf);

/* The next batch, of one item at least: all the operands, or the lines that
 * one read has completed. */
enum input_status input_next(struct input *input);

void input_close(struct input *input);

/* One read(2) of standard input. Neither a signal nor that others have made the file non-blocking ends it. */
ssize_t input_read(char *out, size_t len);

#endif
