/* kryo5.h: a string as Redisson's default codec, Kryo5Codec, writes it.
 *
 *     03                         a String
 *     81                         the empty one
 *     h e l l 'o' | 80           2 to 32 characters, all of ASCII: the last one is marked
 *     varint(units + 1) ...      else: its UTF-16 units, and each of them as UTF-8 would write it, so a
 *                                character beyond U+FFFF takes twice three bytes. The first byte of the
 *                                number has 80, six bits, and 40 if more bytes follow
 *
 * (Kryo 5.6, Output.writeString.) It is read piece by piece, so that an item of any
 * length takes no memory. */
#ifndef HIBLOOM_KRYO5_H
#define HIBLOOM_KRYO5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kryo5 {
    const unsigned char *at, *end; /* the part of the item that was not written yet */
    unsigned char bytes[16];       /* written, and from `next` to `count` not read yet */
    size_t next, count;
    bool marks_end; /* the short form */
};

/* The item must be UTF-8. */
void kryo5_begin(struct kryo5 *, const void *item, size_t len);

/* The next bytes; fewer than `room` are the last ones. */
size_t kryo5_read(struct kryo5 *, unsigned char *out, size_t room);

#endif
