/* number.h: numbers in text, the same in every locale. */
#ifndef HIBLOOM_NUMBER_H
#define HIBLOOM_NUMBER_H

#include "hibloom/hibloom.h"

#include <string.h>

/* A whole number of decimal digits alone. EINVAL: it is not; ERANGE: > max. */
hibloom_status number_parse(const char *text, size_t len, uint64_t max, uint64_t *out);

/* The same with a unit, as in redis.conf and in any case: k, m, g are powers of 10^3, kb, mb, gb powers of 2^10. */
hibloom_status number_parse_size(const char *text, size_t len, uint64_t max, uint64_t *out);

/* The same with a unit of time, which must be there: ms, s, min, h or d. In milliseconds. */
hibloom_status number_parse_time_ms(const char *text, size_t len, uint64_t max, uint64_t *out);

/* A finite decimal number, 0.01 or 1e-2. EINVAL. */
hibloom_status number_parse_double(const char *text, size_t len, double *out);

/* The value of a hexadecimal digit, -1 if it is none. */
static inline int number_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Up to 16 hexadecimal digits alone; false: they are not. */
bool number_parse_hex(const char *text, size_t len, uint64_t *out);

#define NUMBER_DIGITS 20 /* a whole number has at most */

/* The number of digits of a whole number. Since 1233 / 4096 is about log10(2), `least` is that or one less. */
static inline size_t number_digits(uint64_t value)
{
    /* clang-format off */
    static const uint64_t tens[NUMBER_DIGITS] = {
        0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000,
        1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000,
        1000000000000000000, 10000000000000000000u,
    };
    /* clang-format on */
    const unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1), least = bits * 1233 >> 12;

    return least + (value >= tens[least]);
}

/* Writes its digits to `out`, which has room for them. Two digits at a time halve the work: much
 * of the traffic is numbers. */
static inline void number_format(char *out, uint64_t value, size_t digits)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";

    for (; digits >= 2; value /= 100) {
        digits -= 2;
        memcpy(out + digits, pairs + value % 100 * 2, 2);
    }
    if (digits == 1)
        *out = (char)('0' + value);
}

#define NUMBER_DOUBLE_SIZE 32 /* room that number_format_double needs */

/* The shortest text that number_parse_double gives back as it was. ENOMEM. */
hibloom_status number_format_double(char *out, double value);

#endif
