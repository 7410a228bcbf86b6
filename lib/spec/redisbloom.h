/* redisbloom.h: the header with which a dump of RedisBloom's filter begins (BF.SCANDUMP).
 *
 * Packed, little-endian:
 *
 *     u64 items  u32 links  u32 options  u32 growth                           20 bytes
 *     u64 bytes  u64 bits  u64 items  f64 error  f64 bits an item             53 bytes a link
 *     u32 hashes  u64 capacity  u8 n2
 *
 * Nothing that it says is believed before it is checked. */
#ifndef HIBLOOM_REDISBLOOM_H
#define HIBLOOM_REDISBLOOM_H

#include "base/error.h"

#define REDISBLOOM_LN2 0.693147180559945 /* as many digits of ln 2 as it has */
#define REDISBLOOM_HEAD_BYTES 20u
#define REDISBLOOM_LINK_BYTES 53u
#define REDISBLOOM_HEADER_ROOM 4096u /* more links than fit into it nobody has */

struct redisbloom {
    hibloom_spec spec;
    uint64_t bytes, items;
};

/* The length of a header, by its first REDISBLOOM_HEAD_BYTES. */
uint64_t redisbloom_header_length(const unsigned char *head);

/* Reads a header of `len` bytes, of which REDISBLOOM_HEADER_ROOM at most are there. ECORRUPT: it is none;
 * ENOTSUP, ERANGE: its filter cannot be held by one of ours. In words, with `whose` in front. */
hibloom_status redisbloom_parse(struct redisbloom *out, const unsigned char *header, uint64_t len, const char *whose,
                                struct error *error);

#endif
