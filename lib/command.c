/* command.c: commands -> RESP bytes. See command.h.
 *
 *   *4\r\n $6\r\nSETBIT\r\n $4\r\nseen\r\n $5\r\n81920\r\n $1\r\n1\r\n */
#include "command.h"
#include "number.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_LINE 24 /* a sign, 20 digits, \r\n */

/* Room for `len` more bytes, or NULL. */
static char *reserve(struct commands *commands, size_t len)
{
    if (commands->failed)
        return NULL;
    if (commands->room - commands->len < len) {
        const size_t room = (commands->len + len) * 2;
        char *bytes = realloc(commands->bytes, room);
        if (bytes == NULL) {
            commands->failed = true;
            return NULL;
        }
        commands->bytes = bytes;
        commands->room = room;
    }
    return commands->bytes + commands->len;
}

/* "*4\r\n" or "$6\r\n" */
static char *write_count(char *at, char sign, uint64_t count)
{
    *at++ = sign;
    at += number_format(at, count);
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

void command_start(struct commands *commands, size_t arguments, const char *name)
{
    char *at = reserve(commands, NUMBER_LINE);

    if (at == NULL)
        return;
    commands->len += (size_t)(write_count(at, '*', arguments) - at);
    command_text(commands, name);
}

void command_argument(struct commands *commands, struct argument argument)
{
    char *const start = reserve(commands, NUMBER_LINE + argument.len + 2);

    if (start == NULL)
        return;
    char *at = write_count(start, '$', argument.len);
    memcpy(at, argument.bytes, argument.len);
    at += argument.len;
    *at++ = '\r';
    *at++ = '\n';
    commands->len += (size_t)(at - start);
}

void command_text(struct commands *commands, const char *text)
{
    command_argument(commands, (struct argument){text, strlen(text)});
}

void command_number(struct commands *commands, uint64_t number)
{
    char digits[20];

    command_argument(commands, (struct argument){digits, number_format(digits, number)});
}

void commands_empty(struct commands *commands)
{
    commands->len = 0;
    commands->failed = false;
}

void commands_wipe(struct commands *commands)
{
    if (commands->bytes != NULL)
        explicit_bzero(commands->bytes, commands->room);
    commands_free(commands);
}

void commands_free(struct commands *commands)
{
    free(commands->bytes);
    *commands = (struct commands){0};
}
