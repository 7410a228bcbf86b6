/* command.h: commands -> RESP bytes, in one buffer that is reused.
 *
 * Arguments are written with their lengths, never through a format string, so any byte may stand in a key. */
#ifndef HIBLOOM_COMMAND_H
#define HIBLOOM_COMMAND_H

#include "hibloom/hibloom.h"

struct commands {
    char *bytes;
    size_t len, room;
    size_t count; /* commands */
    bool failed;  /* out of memory; sticky until emptied */
};

/* An argument, or a key's name. */
struct argument {
    const char *bytes;
    size_t len;
};

/* Starts a command. `arguments` counts its name, too; the functions below must give exactly the others. */
void command_start(struct commands *, size_t arguments, const char *name);
void command_start_on(struct commands *, size_t arguments, const char *name, struct argument key); /* its first one */
void command_argument(struct commands *, struct argument);
void command_text(struct commands *, const char *);
void command_number(struct commands *, uint64_t);

/* The type of a BITFIELD's counter of `width` bits, up to 9: "u4". */
void command_counter_type(struct commands *, unsigned width);

/* A whole GETRANGE of `len` bytes. */
void command_getrange(struct commands *, struct argument key, uint64_t from, uint64_t len);

/* The end of a string; `from` "-92": its last 92 bytes. */
void command_getrange_end(struct commands *, struct argument key, const char *from);

/* The head of an argument of `len` bytes; these, and "\r\n", must follow. */
void command_begin_argument(struct commands *, size_t len);

/* Arguments that are RESP already: a literal, or what was written at `from`, which begins a command. */
#define command_literal(commands, literal) command_bytes((commands), "" literal, sizeof(literal) - 1)
void command_bytes(struct commands *, const char *bytes, size_t len);
void command_repeat(struct commands *, size_t from, size_t len);

/* The bytes of the first command among these, which the functions above have written; 0: there is none. */
size_t command_length(const char *bytes, size_t len);

void commands_empty(struct commands *);
void commands_free(struct commands *); /* overwrites a password or a seed before it frees */

#endif
