/* record.h: the record behind the bits of a key, which makes it a filter.
 *
 *     bits ... | list | text | trailer
 *
 *   list      only in the root of several keys: the id of each key, 16 hex
 *             digits each; all '0' until the filter is ready
 *   text      the spec text
 *   trailer   92 bytes of text in fixed columns, at the very end:
 *
 *     " 0087 000001638 00003/00256 9ae0daaf r 1763740000123456 0123456789abcdef 0000000000 hibloom1"
 *        |       |         |          |     |        |                |            |          |
 *      bytes   bytes   key/keys      crc  state  generation        key's id      epoch     format
 *     of text of bits
 *
 * The crc is of the text and of what stands before it in the trailer. See docs/format.md for what each means. */
#ifndef HIBLOOM_RECORD_H
#define HIBLOOM_RECORD_H

#include "base/store.h"

#define RECORD_EPOCH_MAX UINT64_C(9999999999)
#define RECORD_TRAILER 92u
#define RECORD_ID_DIGITS 16u                         /* of an id in the list */
#define RECORD_END (RECORD_TRAILER + SPEC_TEXT_SIZE) /* bytes at the end of a key that hold text and trailer */
#define RECORD_TRAILER_FROM_END "-92"
#define RECORD_FROM_END "-2140"  /* so GETRANGE counts them */
#define RECORD_FORMAT "hibloom1" /* and its version: the last bytes of each key */
#define RECORD_FORMAT_FROM_END "-8"

/* Where things stand in the trailer. */
#define RECORD_STATE_AT 37u
#define RECORD_IDENTITY_AT 39u /* generation, blank, id */
#define RECORD_GENERATION 16u  /* bytes of a generation */
#define RECORD_IDENTITY 33u
#define RECORD_EPOCH_AT 73u

enum record_state {
    RECORD_READY = 'r',
    RECORD_GROWN = 'g', /* ready, and a further link of the filter is, too */
    RECORD_CREATING = 'c',
    RECORD_REMOVING = 'x'
};

static inline bool record_is_ready(enum record_state state)
{
    return state == RECORD_READY || state == RECORD_GROWN;
}

struct record {
    uint32_t text_len, key, keys;
    uint64_t bytes; /* of bits */
    uint32_t crc;
    uint64_t generation, id, epoch; /* epoch: up to RECORD_EPOCH_MAX */
    enum record_state state;
    /* Only record_read_end fills these: the text, and what it says of a further link; 0: it is of none. */
    char text[SPEC_TEXT_SIZE];
    uint32_t link;
    uint64_t chain;
};

/* Writes the trailer, not terminated; reads one. False: it is none. The crc is
 * taken as it is; record_crc computes it. */
void record_format(const struct record *, char trailer[RECORD_TRAILER]);
bool record_parse(const char trailer[RECORD_TRAILER], struct record *);
uint32_t record_crc(const struct record *, const char *text);

/* The end of a key's string. */
enum record_found {
    RECORD_NOTHING, /* the key is not there, or empty */
    RECORD_NONE,    /* no record, so no filter: a bare bitmap, or late bits */
    RECORD_DAMAGED, /* it says that it is one, and cannot be */
    RECORD_NEWER,   /* its text has a word that is unknown here; the record is filled */
    RECORD_FOUND
};

/* Reads the last bytes of a string, at most RECORD_END. */
enum record_found record_read_end(const char *end, size_t len, struct record *);

/* Bytes of a key's list. */
uint64_t record_list_bytes(uint32_t key, uint32_t keys);

/* "GENERATION ID", for scripts to compare. */
void record_identity(uint64_t generation, uint64_t id, char out[RECORD_IDENTITY + 1]);

/* An id in the list. */
void record_format_id(uint64_t id, char out[RECORD_ID_DIGITS + 1]);

#endif
