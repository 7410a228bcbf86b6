/* text.c: UTF-8. See text.h. */
#include "hash/text.h"

/* The length of the character at p, with `left` bytes there; 0: it is none. */
static size_t character_length(const unsigned char *p, size_t left)
{
    /* The second byte's range is narrower where a form would be too long, a surrogate or too large. */
    const unsigned from = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned to = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    const size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

    if (len > left || (len > 1 && (p[1] < from || p[1] > to)))
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

bool text_is_utf8(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    size_t step;

    for (size_t at = 0; at < len; at += step) {
        step = character_length(p + at, len - at);
        if (step == 0)
            return false;
    }
    return true;
}
