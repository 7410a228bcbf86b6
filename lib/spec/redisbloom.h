/* redisbloom.h: how large RedisBloom makes a filter, and the header with which a dump of one begins (BF.SCANDUMP).
 *
 * A filter of the module that scales is a chain of links, as a growing one is here. Each is for the items of the
 * one before times `growth`, at half of its error rate. The first has half of the requested error rate. So
 * hash=redisbloom with growth=G is that filter, link by link, and goes on growing by the module's rule.
 *
 * The header is packed, little-endian:
 *
 *     u64 items  u32 links  u32 options  u32 growth                           20 bytes
 *     u64 bytes  u64 bits  u64 items  f64 error  f64 bits an item             53 bytes a link
 *     u32 hashes  u64 capacity  u8 n2
 *
 * Nothing that it says is believed before it is checked. */
#ifndef HIBLOOM_REDISBLOOM_H
#define HIBLOOM_REDISBLOOM_H

#include "spec/spec.h"

#define REDISBLOOM_ERROR_MOST 0.25 /* replaces a larger error rate */
#define REDISBLOOM_HEAD_BYTES 20u
#define REDISBLOOM_LINK_BYTES 53u
#define REDISBLOOM_HEADER_ROOM 4096u /* more links than fit into it nobody has */

/* What a header says. In the dump the bits of a link follow those of the one before. */
struct redisbloom {
    struct spec spec; /* the first link's; if there are several it grows, and spec_link has the others */
    uint32_t links;
    struct redisbloom_link {
        uint64_t bytes, items;
        uint32_t hashes;
    } link[SPEC_LINKS_MAX];
};

/* Gives a spec the bits and hashes of a module's link for `capacity` items at an error rate of its own. False:
 * they would be more than a spec may have. */
bool redisbloom_size(struct spec *spec, uint64_t capacity, double error_rate);

/* The length of a header, by its first REDISBLOOM_HEAD_BYTES. */
uint64_t redisbloom_header_length(const unsigned char *head);

/* Reads a header of `len` bytes; at most the first REDISBLOOM_HEADER_ROOM are there. ECORRUPT: it is none.
 * ENOTSUP, ERANGE: no filter of ours can hold its filter. The words begin with a verb, or what is wrong. */
hibloom_status redisbloom_parse(struct redisbloom *out, const unsigned char *header, uint64_t len, struct error *error);

#endif
