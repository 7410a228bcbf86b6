/* text.h: UTF-8, of items that a program elsewhere has as strings of characters. */
#ifndef HIBLOOM_TEXT_H
#define HIBLOOM_TEXT_H

#include <stdint.h>

/* The character at *at, and the next one's place. Only of valid UTF-8: see positions_refuse. */
static inline uint32_t text_next(const unsigned char **at)
{
    const unsigned char *p = *at;
    const unsigned more = p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : 3;
    uint32_t code = more == 0 ? p[0] : p[0] & (0x3fu >> more);

    for (unsigned i = 1; i <= more; i++)
        code = code << 6 | (p[i] & 0x3fu);
    *at = p + 1 + more;
    return code;
}

#endif
