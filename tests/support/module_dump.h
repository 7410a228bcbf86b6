/* Dumps of RedisBloom's filters, computed by its formulas (docs/presets.md), for tests that have no
 * module: what BF.SCANDUMP answers, as a server sends it and as redis-cli prints it. */
#ifndef HIBLOOM_TEST_MODULE_DUMP_H
#define HIBLOOM_TEST_MODULE_DUMP_H

#include "net.h"
#include "test.h"

enum { MODULE_HEAD = 20, MODULE_LINK = 53, MODULE_LINKS = 40, MODULE_PIECE = 16 << 20 };

/* Where in a header a number stands; of a further link MODULE_LINK bytes on, and so on. */
enum {
    MODULE_ITEMS_AT = 0,
    MODULE_LINKS_AT = 8,
    MODULE_OPTIONS_AT = 12,
    MODULE_GROWTH_AT = 16,
    MODULE_BYTES_AT = 20,
    MODULE_BITS_AT = 28,
    MODULE_LINK_ITEMS_AT = 36,
    MODULE_ERROR_AT = 44,
    MODULE_HASHES_AT = 60,
    MODULE_CAPACITY_AT = 64,
    MODULE_N2_AT = 72
};

struct module_dump {
    struct module_link {
        uint64_t capacity, items, from, bytes; /* from: where its bytes begin */
        double error;
        uint32_t hashes;
    } link[MODULE_LINKS];
    uint32_t links, growth;
    uint64_t items, bytes; /* of all of them */
    size_t piece;          /* bytes of an answer, at most */
    unsigned char header[MODULE_HEAD + MODULE_LINKS * MODULE_LINK];
    unsigned char *data; /* link after link */
};

/* Of BF.RESERVE key error capacity [NONSCALING], or EXPANSION growth. */
void module_dump_make(struct module_dump *, double error, uint64_t capacity, bool scaling);
void module_dump_make_growing(struct module_dump *, double error, uint64_t capacity, uint32_t growth);
void module_dump_free(struct module_dump *);

/* A further link, empty. */
void module_dump_grow(struct module_dump *);

/* Adds an item of which these are the offsets in the first link, as the module counts them, bit 0 the lowest of byte 0. */
void module_dump_add(struct module_dump *, const uint64_t *offsets);

/* BF.ADD: what is in no link goes to the newest, or to a further one if that is full. Whether it was in none. */
bool module_dump_add_item(struct module_dump *, const void *item, size_t len);

/* The same with "in 0", "in 1", ... until so many items are in. How many were added. */
unsigned module_dump_fill(struct module_dump *, uint64_t items);

/* A number in the header, little-endian. */
void module_dump_set(struct module_dump *, unsigned at, uint64_t value, unsigned bytes);

/* One answer behind the others; resp: as on the wire, else as redis-cli prints it. */
void module_dump_answer(struct bytes *out, uint64_t next, const unsigned char *data, size_t len, bool resp);

/* The same of what it answers to BF.SCANDUMP key `at`. *next: the iterator. */
void module_dump_ask(const struct module_dump *, struct bytes *out, uint64_t at, uint64_t *next, bool resp);

/* A whole file: the header, the pieces, the header. */
void module_dump_print(const struct module_dump *, struct bytes *out);

void module_dump_write(const struct module_dump *, const char *path);

/* ---- What the module has done, in tests/data/other-filters.tsv ------------------ */

struct module_vector {
    unsigned char item[4096];
    size_t len;
    uint64_t offsets[HIBLOOM_HASHES_MAX];
};

/* Calls each for the items of a filter whose row says so: "cap=1000,". How many there are. */
unsigned module_vectors(const char *filter, void (*each)(const struct module_vector *, void *data), void *data);

#endif
