/* command.c: commands -> RESP bytes. See command.h.
 *
 *   *4\r\n $6\r\nSETBIT\r\n $4\r\nseen\r\n $5\r\n81920\r\n $1\r\n1\r\n */
#include "resp/command.h"
#include "base/alloc.h"
#include "base/number.h"

#include <string.h>

#define COUNT_LINE (1 + NUMBER_DIGITS + 2) /* a sign, digits, \r\n */

static void wipe(struct commands *commands)
{
    if (commands->bytes != NULL)
        explicit_bzero(commands->bytes, commands->room);
    alloc.free(commands->bytes);
}

/* Room for `len` more bytes, or NULL. */
static char *make_room(struct commands *commands, size_t len)
{
    const size_t room = (commands->len + len) * 2;
    char *bytes = commands->failed ? NULL : alloc.malloc(room);

    if (bytes == NULL) {
        commands->failed = true;
        return NULL;
    }
    if (commands->len > 0)
        memcpy(bytes, commands->bytes, commands->len);
    wipe(commands); /* realloc would leave a copy of what may be secret */
    commands->bytes = bytes;
    commands->room = room;
    return bytes + commands->len;
}

static inline char *reserve(struct commands *commands, size_t len)
{
    if (commands->room - commands->len < len || commands->failed)
        return make_room(commands, len);
    return commands->bytes + commands->len;
}

static inline char *end_line(char *at)
{
    memcpy(at, "\r\n", 2);
    return at + 2;
}

/* "*4\r\n" or "$6\r\n" */
static inline char *write_count(char *at, char sign, uint64_t count)
{
    const size_t digits = number_digits(count);

    *at++ = sign;
    number_format(at, count, digits);
    return end_line(at + digits);
}

void command_start(struct commands *commands, size_t arguments, const char *name)
{
    char *const at = reserve(commands, COUNT_LINE);

    if (at == NULL)
        return;
    commands->len += (size_t)(write_count(at, '*', arguments) - at);
    commands->count++;
    command_text(commands, name);
}

void command_argument(struct commands *commands, struct argument argument)
{
    char *const start = reserve(commands, COUNT_LINE + argument.len + 2);

    if (start == NULL)
        return;
    char *at = write_count(start, '$', argument.len);
    memcpy(at, argument.bytes, argument.len);
    commands->len += (size_t)(end_line(at + argument.len) - start);
}

void command_text(struct commands *commands, const char *text)
{
    command_argument(commands, (struct argument){text, strlen(text)});
}

void command_number(struct commands *commands, uint64_t number)
{
    char *const start = reserve(commands, 2 * COUNT_LINE);
    const size_t digits = number_digits(number);

    if (start == NULL)
        return;
    char *at = write_count(start, '$', digits);
    number_format(at, number, digits);
    commands->len += (size_t)(end_line(at + digits) - start);
}

void command_counter_type(struct commands *out, unsigned width)
{
    const char type[] = {'$', '2', '\r', '\n', 'u', (char)('0' + width), '\r', '\n'};

    command_bytes(out, type, sizeof type);
}

void command_start_on(struct commands *commands, size_t arguments, const char *name, struct argument key)
{
    command_start(commands, arguments, name);
    command_argument(commands, key);
}

void command_getrange(struct commands *commands, struct argument key, uint64_t from, uint64_t len)
{
    command_start_on(commands, 4, "GETRANGE", key);
    command_number(commands, from);
    command_number(commands, from + len - 1);
}

void command_getrange_end(struct commands *commands, struct argument key, const char *from)
{
    command_start_on(commands, 4, "GETRANGE", key);
    command_text(commands, from);
    command_text(commands, "-1");
}

void command_begin_argument(struct commands *commands, size_t len)
{
    char *const at = reserve(commands, COUNT_LINE);

    if (at != NULL)
        commands->len += (size_t)(write_count(at, '$', len) - at);
}

void command_bytes(struct commands *commands, const char *bytes, size_t len)
{
    char *at = reserve(commands, len);

    if (at == NULL)
        return;
    memcpy(at, bytes, len);
    commands->len += len;
}

void command_repeat(struct commands *commands, size_t from, size_t len)
{
    char *at = reserve(commands, len);

    if (at == NULL)
        return;
    memcpy(at, commands->bytes + from, len);
    commands->len += len;
    commands->count++;
}

/* Reads "$6\r\n" or "*4\r\n". Returns the place behind it. */
static const char *read_count(const char *at, size_t *count)
{
    for (*count = 0, at++; *at != '\r'; at++)
        *count = *count * 10 + (size_t)(*at - '0');
    return at + 2;
}

size_t command_length(const char *bytes, size_t len)
{
    size_t arguments, argument;

    if (len == 0)
        return 0;
    const char *at = read_count(bytes, &arguments);
    for (; arguments > 0; arguments--) {
        at = read_count(at, &argument);
        at += argument + 2;
    }
    return (size_t)(at - bytes);
}

void commands_empty(struct commands *commands)
{
    commands->len = commands->count = 0;
    commands->failed = false;
}

void commands_free(struct commands *commands)
{
    wipe(commands);
    *commands = (struct commands){0};
}
