/* answers.c: how the simulated server's commands answer, and read their arguments. See commands.h. */
#include "sim/commands.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- Answers ---------------------------------------------------------------------------------- */

/* "$12\r\n", ":-5\r\n" */
static bool put_head(struct run *run, char type, long long number)
{
    char text[32], *at = text + sizeof text;
    unsigned long long rest = number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number;

    *--at = '\n';
    *--at = '\r';
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--at = '-';
    *--at = type;
    buffer_put(run->out, at, (size_t)(text + sizeof text - at));
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
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return put_text(run, text);
}

bool put_line(struct run *run, char type, const char *line, size_t len)
{
    buffer_put(run->out, &type, 1);
    for (size_t i = 0; i < len; i++)
        buffer_put(run->out, line[i] == '\r' || line[i] == '\n' ? " " : line + i, 1);
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

bool put_map(struct run *run, size_t pairs)
{
    return put_array(run, pairs * 2);
}

bool put_ok(struct run *run)
{
    return put_line(run, '+', "OK", 2);
}

bool fail(struct run *run, const char *format, ...)
{
    char words[512] = "ERR ";
    va_list list;

    va_start(list, format);
    vsnprintf(words + 4, sizeof words - 4, format, list);
    va_end(list);
    const char *line = words[4] == '-' ? words + 5 : words;
    put_line(run, '-', line, strlen(line));
    return false;
}

/* ---- Arguments -------------------------------------------------------------------------------- */

struct blob blob_of(const char *text)
{
    return (struct blob){text, strlen(text)};
}

bool blob_is(struct blob blob, const char *word)
{
    return blob.len == strlen(word) && strncasecmp(blob.bytes, word, blob.len) == 0;
}

bool blob_equals(struct blob a, struct blob b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.bytes, b.bytes, a.len) == 0);
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

bool take_int(struct run *run, size_t argument, long long *value, const char *error)
{
    return blob_int(run->argv[argument], value) ||
           fail(run, "%s", error != NULL ? error : "value is not an integer or out of range");
}

/* "[^a-c]": `at` is moved on to its last byte. */
static bool class_fits(const char **at, const char *end, unsigned char c)
{
    const char *p = *at + 1;
    const bool negated = p < end && *p == '^';
    bool fits = false;

    for (p += negated; p < end && *p != ']'; p++) {
        const bool escapes = *p == '\\' && end - p >= 2;
        const unsigned char low = (unsigned char)p[escapes], high = (unsigned char)(end - p >= 3 ? p[2] : 0);
        const bool is_range = !escapes && end - p >= 3 && p[1] == '-';
        fits = fits || (is_range ? (low <= c && c <= high) || (high <= c && c <= low) : c == low);
        p += is_range ? 2 : escapes;
    }
    *at = p < end ? p : end - 1;
    return fits != negated;
}

static bool text_fits(const char *p, const char *end, const char *s, const char *stop)
{
    for (; p < end && (s < stop || *p == '*'); p++, s++) {
        if (*p == '*') {
            for (; s < stop && !text_fits(p + 1, end, s, stop);)
                s++;
            return s < stop || text_fits(p + 1, end, s, stop);
        }
        if (*p == '[') {
            if (!class_fits(&p, end, (unsigned char)*s))
                return false;
        } else if (*p != '?') {
            p += *p == '\\' && end - p >= 2;
            if (*p != *s)
                return false;
        }
    }
    return p == end && s == stop;
}

bool glob_fits(struct blob pattern, struct blob name)
{
    return text_fits(pattern.bytes, pattern.bytes + pattern.len, name.bytes, name.bytes + name.len);
}
