/* answers.c: how the simulated server's commands answer, and read their arguments. See commands.h. */
#include "sim/commands.h"

#include <limits.h>
#include <stdarg.h>

struct blob write_int(char *end, long long number)
{
    char *at = end;
    unsigned long long rest = number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number;

    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--at = '-';
    return (struct blob){at, (size_t)(end - at)};
}

/* "$12\r\n", ":-5\r\n" */
static bool put_head(struct run *run, char type, long long number)
{
    char text[NUMBER_LEN + 3], *const end = text + sizeof text - 2;
    char *const head = end - write_int(end, number).len - 1;

    *head = type;
    memcpy(end, "\r\n", 2);
    buffer_put(run->out, head, (size_t)(end + 2 - head));
    return true;
}

bool put_int(struct run *run, long long value)
{
    return put_head(run, ':', value);
}

bool put_bulk(struct run *run, struct blob bytes)
{
    put_head(run, '$', (long long)bytes.len);
    buffer_put(run->out, bytes.bytes, bytes.len);
    buffer_put(run->out, "\r\n", 2);
    return true;
}

bool put_text(struct run *run, const char *text)
{
    return put_bulk(run, blob_of(text));
}

bool put_number(struct run *run, uint64_t number)
{
    char text[NUMBER_LEN];

    return put_bulk(run, write_int(text + sizeof text, (long long)number));
}

bool put_line(struct run *run, char type, const char *line)
{
    buffer_put(run->out, &type, 1);
    for (; *line != '\0'; line++)
        buffer_put(run->out, *line == '\r' || *line == '\n' ? " " : line, 1);
    buffer_put(run->out, "\r\n", 2);
    return true;
}

bool put_null(struct run *run)
{
    return put_head(run, '$', -1);
}

bool put_array(struct run *run, size_t elements)
{
    return put_head(run, '*', (long long)elements);
}

void put_command(struct run *run, size_t argc, const struct blob *argv)
{
    put_array(run, argc);
    for (size_t i = 0; i < argc; i++)
        put_bulk(run, argv[i]);
}

bool put_ok(struct run *run)
{
    return put_line(run, '+', "OK");
}

bool fail(struct run *run, const char *format, ...)
{
    char words[512] = "ERR ";
    va_list list;

    va_start(list, format);
    vsnprintf(words + 4, sizeof words - 4, format, list);
    va_end(list);
    put_line(run, '-', words[4] == '-' ? words + 5 : words);
    return false;
}

/* As Redis writes numbers: no '+', no zeros in front, no spaces. */
bool blob_int(struct blob text, long long *value)
{
    const bool negative = text.len > 0 && text.bytes[0] == '-';
    unsigned long long sum = 0;

    if (text.len > 20 || text.len == negative || (text.bytes[negative] == '0' && text.len > 1))
        return false;
    for (size_t i = negative; i < text.len; i++)
        if (text.bytes[i] < '0' || text.bytes[i] > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (unsigned)(text.bytes[i] - '0'), &sum))
            return false;
    *value = (long long)(negative ? 0 - sum : sum);
    return sum <= (unsigned long long)LLONG_MAX + negative;
}

/* The number of a line behind its first byte, and what follows the line; NULL: it is not whole. */
static const char *read_head(const char *at, const char *end, size_t *number)
{
    for (*number = 0; ++at < end && *at >= '0' && *at <= '9';)
        *number = *number * 10 + (size_t)(*at - '0');
    return end - at >= 2 ? at + 2 : NULL;
}

size_t read_command(const char *bytes, size_t len, const struct blob **argv, size_t *argc)
{
    static struct blob *arguments;
    static size_t room;
    const char *const end = bytes + len, *at = len > 0 ? read_head(bytes, end, argc) : NULL;
    struct blob argument;

    if (at == NULL)
        return 0;
    must(*bytes == '*' && at[-1] == '\n');
    if (*argc > room)
        arguments = resized(arguments, (room = *argc * 2) * sizeof *arguments);
    *argv = arguments;
    for (size_t i = 0; i < *argc; i++) {
        argument.bytes = at < end ? read_head(at, end, &argument.len) : NULL;
        if (argument.bytes == NULL || (size_t)(end - argument.bytes) < argument.len + 2)
            return 0;
        must(*at == '$' && argument.bytes[-1] == '\n');
        arguments[i] = argument;
        at = argument.bytes + argument.len + 2;
    }
    return (size_t)(at - bytes);
}

long long int_at(const struct run *run, size_t argument)
{
    long long value = 0;

    must(argument < run->argc && blob_int(run->argv[argument], &value));
    return value;
}
