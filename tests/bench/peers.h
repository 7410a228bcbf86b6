/* How others send an item's bits: what hibloom is compared with. They write into the bitmap of a filter that hibloom
 * made, at the positions that hibloom computes, so that nothing differs but the way there. */
#ifndef HIBLOOM_BENCH_PEERS_H
#define HIBLOOM_BENCH_PEERS_H

#include "spec/spec.h"

#include <hibloom/hibloom.h>

struct redisContext;

struct peer {
    struct redisContext *redis;
    const char *key;
    const struct spec *spec;
};

/* Adds the items where found is NULL, else looks them up. */
typedef void peer_call(const struct peer *, const hibloom_item *, size_t n, bool *found);

/* A round trip a bit, as the PHP programs; a look-up ends at the first bit that is not set. */
peer_call peer_bits;

/* A pipeline an item in MULTI and EXEC, as the Python program adds. */
peer_call peer_pipeline;

/* All of the batch by redisAppendCommand, in printf's way, then a reply object
 * for each bit, as C programs on hiredis. */
peer_call peer_printf;

#endif
