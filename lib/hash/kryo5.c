/* kryo5.c: a string as Redisson's default codec writes it. See kryo5.h. */
#include "hash/kryo5.h"
#include "hash/text.h"

static void put(struct kryo5 *k, uint64_t byte)
{
    k->bytes[k->count++] = (unsigned char)byte;
}

static void put_length(struct kryo5 *k, uint64_t number)
{
    put(k, 0x80 | (number & 0x3f) | (number >> 6 != 0 ? 0x40 : 0));
    for (number >>= 6; number != 0; number >>= 7)
        put(k, (number & 0x7f) | (number >> 7 != 0 ? 0x80 : 0));
}

void kryo5_begin(struct kryo5 *k, const void *item, size_t len)
{
    uint64_t units = 0;
    bool ascii = true;

    *k = (struct kryo5){.at = item};
    k->end = len > 0 ? k->at + len : k->at;
    for (const unsigned char *at = k->at; at < k->end;) {
        const uint32_t code = text_next(&at);
        units += code > 0xffff ? 2 : 1;
        ascii = ascii && code < 0x80;
    }
    put(k, 3);
    k->marks_end = ascii && units >= 2 && units <= 32;
    if (!k->marks_end)
        put_length(k, units + 1);
}

static void put_unit(struct kryo5 *k, uint32_t unit)
{
    if (unit < 0x80) {
        put(k, unit);
    } else if (unit < 0x800) {
        put(k, 0xc0 | unit >> 6);
        put(k, 0x80 | (unit & 0x3f));
    } else {
        put(k, 0xe0 | unit >> 12);
        put(k, 0x80 | (unit >> 6 & 0x3f));
        put(k, 0x80 | (unit & 0x3f));
    }
}

static void put_character(struct kryo5 *k)
{
    const uint32_t code = text_next(&k->at);

    k->next = k->count = 0;
    if (code > 0xffff) {
        put_unit(k, 0xd800 + ((code - 0x10000) >> 10));
        put_unit(k, 0xdc00 + ((code - 0x10000) & 0x3ff));
    } else if (k->marks_end && k->at == k->end) {
        put(k, code | 0x80);
    } else {
        put_unit(k, code);
    }
}

size_t kryo5_read(struct kryo5 *k, unsigned char *out, size_t room)
{
    size_t len = 0;

    while (len < room) {
        if (k->next == k->count && k->at == k->end)
            break;
        if (k->next == k->count)
            put_character(k);
        out[len++] = k->bytes[k->next++];
    }
    return len;
}
