/* number.h: numbers in text, the same in every locale. */
#ifndef HIBLOOM_NUMBER_H
#define HIBLOOM_NUMBER_H

#include "hibloom/hibloom.h"

/* A whole number of decimal digits alone. EINVAL: it is not; ERANGE: > max. */
hibloom_status number_parse(const char *text, size_t len, uint64_t max, uint64_t *out);

/* A finite decimal number, 0.01 or 1e-2. EINVAL. */
hibloom_status number_parse_double(const char *text, size_t len, double *out);

/* What a hexadecimal digit stands for, -1 if it is none. */
static inline int number_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Digits of a whole number to `out`, which has room for 20; their count. */
static inline size_t number_format(char *out, uint64_t value)
{
    char digits[20];
    size_t n = 0;

    do
        digits[n++] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

#define NUMBER_DOUBLE_SIZE 32 /* room that number_format_double needs */

/* The shortest text that number_parse_double gives back as it was. ENOMEM. */
hibloom_status number_format_double(char *out, double value);

#endif
