/* Numbers as people write and read them: 10M, 1e7, 1.5k, 0.01.
 *
 * Whole numbers are computed in integers: a double has only 53 bits. A filter for one item more
 * is another filter. */
#include "number.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPONENT_LARGE 1000 /* no digits after it matter: the number is too large or too small anyway */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool append_digit(uint64_t *value, unsigned digit)
{
    if (*value > (UINT64_MAX - digit) / 10)
        return false;
    *value = *value * 10 + digit;
    return true;
}

/* "e7" or "e-3", if that is next; false for one without digits. */
static bool read_exponent(const char **text, int *exponent)
{
    const char *p = *text;
    bool negative;
    int value = 0;

    if (*p != 'e' && *p != 'E')
        return true;
    negative = *++p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!is_digit(*p))
        return false;
    for (; is_digit(*p); p++)
        if (value < EXPONENT_LARGE)
            value = value * 10 + (*p - '0');
    *exponent += negative ? -value : value;
    *text = p;
    return true;
}

/* "M", if that is next. */
static void read_suffix(const char **text, int *exponent)
{
    static const char suffixes[] = "kKmMgGtT";
    const char *suffix = **text != '\0' ? strchr(suffixes, **text) : NULL;

    if (suffix != NULL) {
        *exponent += 3 * (int)((suffix - suffixes) / 2 + 1);
        ++*text;
    }
}

/* value * 10^exponent, which must be whole. */
static const char *scale(uint64_t value, int exponent, uint64_t *out)
{
    for (; exponent > 0 && value > 0; exponent--)
        if (!append_digit(&value, 0))
            return "is too large";
    for (; exponent < 0 && value > 0; exponent++) {
        if (value % 10 != 0)
            return "is not a whole number";
        value /= 10;
    }
    *out = value;
    return NULL;
}

const char *number_whole(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    int exponent = 0;
    bool digits = false, point = false;

    for (; is_digit(*text) || (*text == '.' && !point); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        if (!append_digit(&value, (unsigned)(*text - '0')))
            return "has too many digits";
        digits = true;
        exponent -= point;
    }
    if (!digits || !read_exponent(&text, &exponent))
        return "is not a number";
    read_suffix(&text, &exponent);
    return *text == '\0' ? scale(value, exponent, out) : "is not a number";
}

const char *number_rate(const char *text, double *out)
{
    char *end;
    const double value = strtod(text, &end);

    /* strtod alone accepts blanks, hexadecimal numbers, "inf" and "nan", too. */
    if (end == text || *end != '\0' || text[strspn(text, "0123456789.eE+-")] != '\0')
        return "is not a number";
    if (!(value > 0 && value < 1))
        return "is not between 0 and 1";
    *out = value;
    return NULL;
}

const char *number_time(const char *text, uint64_t unit_ms, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}};
    const char *end = text + strspn(text, "0123456789");
    uint64_t count = 0, ms = 0;

    if (end == text)
        return "is no time such as 90s, 30min, 24h or 7d";
    for (const char *p = text; p < end; p++)
        if (!append_digit(&count, (unsigned)(*p - '0')))
            return "is too large";
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].name) == 0)
            ms = units[i].ms;
    if (ms == 0 && (count != 0 || *end != '\0'))
        return *end == '\0' ? "has no unit: ms, s, min, h or d" : "is no time such as 90s, 30min, 24h or 7d";
    if (ms != 0 && count > UINT64_MAX / ms)
        return "is too large";
    *out = count * ms / unit_ms;
    return count * ms % unit_ms == 0 ? NULL : "is not a whole number of seconds";
}

/* Divides by thousands, or 1024, until it is rounded to less than `limit`; the prefix that says how often. */
static const char *take_thousands(double *value, double thousand, double limit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t i = 0;

    for (; *value >= limit && i + 1 < sizeof prefixes / sizeof *prefixes; i++)
        *value /= thousand;
    return prefixes[i];
}

const char *number_scaled(char *out, double value)
{
    const char *prefix = take_thousands(&value, 1000, 999.5);

    snprintf(out, NUMBER_SIZE, "%.*f %s", prefix[0] == '\0' ? 0 : 2, value, prefix);
    return out;
}

const char *number_bytes(char *out, double bytes)
{
    const char *prefix = take_thousands(&bytes, 1024, 1023.5);

    snprintf(out, NUMBER_SIZE, "%.*f %sB", prefix[0] == '\0' ? 0 : 2, bytes, prefix[0] == 'k' ? "K" : prefix);
    return out;
}

const char *number_rough(char *out, double value)
{
    const char *prefix = take_thousands(&value, 1000, 995);
    const double unit = value >= 99.5 ? 10 : 1;

    if (value < 9.95)
        snprintf(out, NUMBER_SIZE, "%.1f%s", value, prefix);
    else
        snprintf(out, NUMBER_SIZE, "%.0f%s", round(value / unit) * unit, prefix);
    return out;
}
