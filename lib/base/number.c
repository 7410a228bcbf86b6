/* number.c: numbers in text, the same in every locale.
 *
 * If the caller's locale has a decimal comma, strtod reads one and printf writes one. But a spec text must be the same
 * everywhere. So doubles are converted in the C locale. For printf it is set for this thread, and only meanwhile. */
#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

hibloom_status number_parse(const char *text, size_t len, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    bool fits = true;

    if (len == 0)
        return HIBLOOM_EINVAL;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return HIBLOOM_EINVAL;
        const uint64_t digit = (uint64_t)(text[i] - '0');
        fits = fits && digit <= max && value <= (max - digit) / 10;
        value = value * 10 + digit;
    }
    if (!fits)
        return HIBLOOM_ERANGE;
    *out = value;
    return HIBLOOM_OK;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* In any case; no strncasecmp, since that depends on the locale. */
static bool is_unit(const char *text, size_t len, const char *name)
{
    size_t i = 0;

    while (i < len && (text[i] | 0x20) == name[i])
        i++;
    return i == len && name[i] == '\0';
}

static hibloom_status parse_with_unit(const char *text, size_t len, const struct unit *units, size_t count,
                                      uint64_t max, uint64_t *out)
{
    size_t digits = 0, i = 0;
    uint64_t value;

    while (digits < len && text[digits] >= '0' && text[digits] <= '9')
        digits++;
    while (i < count && !is_unit(text + digits, len - digits, units[i].name))
        i++;
    if (i == count)
        return HIBLOOM_EINVAL;
    const hibloom_status status = number_parse(text, digits, max / units[i].factor, &value);
    if (status == HIBLOOM_OK)
        *out = value * units[i].factor;
    return status;
}

hibloom_status number_parse_size(const char *text, size_t len, uint64_t max, uint64_t *out)
{
    static const struct unit units[] = {
        {"", 1},
        {"k", 1000},
        {"m", 1000000},
        {"g", 1000000000},
        {"kb", 1ULL << 10},
        {"mb", 1ULL << 20},
        {"gb", 1ULL << 30},
    };

    return parse_with_unit(text, len, units, sizeof units / sizeof *units, max, out);
}

hibloom_status number_parse_time_ms(const char *text, size_t len, uint64_t max, uint64_t *out)
{
    static const struct unit units[] = {{"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}};

    return parse_with_unit(text, len, units, sizeof units / sizeof *units, max, out);
}

hibloom_status number_parse_double(const char *text, size_t len, double *out)
{
    char copy[NUMBER_DOUBLE_SIZE], *end = copy;

    /* strtod would also take blanks, hexadecimals, "inf" and "nan" */
    if (len == 0 || len >= sizeof copy || strspn(text, "0123456789.eE+-") < len)
        return HIBLOOM_EINVAL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double value = c != (locale_t)0 ? strtod_l(copy, &end, c) : 0.0;
    if (c != (locale_t)0)
        freelocale(c);
    if (*end != '\0' || !isfinite(value))
        return HIBLOOM_EINVAL;
    *out = value;
    return HIBLOOM_OK;
}

bool number_parse_hex(const char *text, size_t len, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < len; i++) {
        const int digit = number_hex_digit(text[i]);
        if (digit < 0)
            return false;
        *out = *out << 4 | (unsigned)digit;
    }
    return true;
}

hibloom_status number_format_double(char *out, double value)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before;

    if (c == (locale_t)0)
        return HIBLOOM_ENOMEM;
    before = uselocale(c);
    for (int digits = 1; digits <= 17; digits++) { /* 17 tell any two doubles apart */
        snprintf(out, NUMBER_DOUBLE_SIZE, "%.*g", digits, value);
        if (strtod(out, NULL) == value) /* exactly: the text must come back as the same bits */
            break;
    }
    uselocale(before);
    freelocale(c);
    return HIBLOOM_OK;
}
