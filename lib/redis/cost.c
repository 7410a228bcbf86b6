/* cost.c: the cost of a call by each of its ways. See cost.h. */
#include "redis/cost.h"
#include "redis/encoding.h"
#include "redis/keys.h"
#include "redis/transfer.h"

#include <math.h>

/* Microseconds, on two cores that client and server shared. They are fitted to runs of the part `crossing` of `make
 * bench`, 210 cells each. In the median of three runs no cell's choice is beyond 15 % of the better way, on Redis 7.0
 * and on 8.0. Machines differ: on another one 7 of 420 cells were, in one run. Adds with is_new of 10,000 items
 * to 12 MB then took up to twice the better way's time. READ_MB and MERGE_MB are above the fit (75 and 400): near the
 * crossing commands are the safer way. With the fit a batch of 1,000 look-ups on 11 MB took four times the client's
 * CPU, and one of adds to a growing filter was 0.71 as fast. PARTS_MB is below the fit (6000), as commands on so large
 * keys take a tenth longer than here. BITFIELD_GET, SCRIPT_BIT and the counters were measured alone, in calls of 1,000
 * items, for k = 3 and 7. */
#define SETBIT 0.57
#define GETBIT 0.59
#define BITFIELD 0.34      /* one command, and for each of its bits: */
#define BITFIELD_SET 0.38  /* SET u1 */
#define BITFIELD_GET 0.30  /* GET u1 */
#define SAME_BLOCK 0.86    /* times that for a bit set in the block of the one before: the server has it cached */
#define GETRANGE 0.83      /* of a block */
#define SCRIPT_BIT 0.99    /* the script for a partitioned filter with is_new */
#define READ_MB 110.0      /* GETRANGE of 10^6 bytes */
#define MERGE_MB 540.0     /* PSETEX and BITOP of 10^6 bytes, */
#define MERGE_LARGE 1350.0 /* and of a large key, whose memory is new each time */
#define PARTS_MB 5600.0    /* through a script, in parts */
#define BEFORE_MB 400.0    /* if the bits before are kept and read, beside the reading */
#define MERGE_KEY 60.0     /* the script and its temporary key, of any size */
#define HERE 0.03          /* an item whose bits are set or looked at here */

/* The script that counts up, measured beside BITFIELD: an item, and each counter. */
#define COUNT 1.1
#define COUNT_BIT 0.68

/* From here on jemalloc, which Redis is built with, gives a freed block back to the system at once (oversize_threshold
 * in its manual). So each key of this size that is made anew costs a page fault for every 4 KB. */
#define LARGE_BYTES (8u << 20)

/* Each key of a filter that is read or merged takes a round trip. It costs the time of these bytes on the network: a
 * faster one most often has shorter round trips, too. */
#define TRIP_BYTES 1.4e5

/* Bytes of a command for a bit, with key and offset, and of its answer. PART_BYTES: one bit of a BITFIELD. */
#define BIT_BYTES 50
#define PART_BYTES 32
#define BLOCK_LOOK_BYTES 130

static double over_network(const struct cost_server *server, double bytes)
{
    return bytes / server->network_mb_s;
}

double cost_item(const struct spec *spec, const struct cost_server *server, enum store_op op)
{
    const double k = spec->hashes;
    const bool several = spec_item_keys(spec) > 1, counts = keys_have_counter(spec) && op != STORE_LOOK;
    const bool blocked = spec->layout == LAYOUT_BLOCKED;
    const double bits = blocked ? 1 + (k - 1) * SAME_BLOCK : k; /* the number of scattered bits that take as long */

    if (op == STORE_LOOK && blocked)
        return GETRANGE + over_network(server, BLOCK_LOOK_BYTES);
    if (op != STORE_LOOK && spec->counters != 0)
        return COUNT + k * COUNT_BIT + over_network(server, k * PART_BYTES / 2);
    if (counts || (op == STORE_ADD_NEW && several))
        return k * SCRIPT_BIT + over_network(server, k * PART_BYTES / 2);
    if (!several && (server->bitfield || op == STORE_ADD_NEW || spec->counters != 0))
        return BITFIELD / encoding_bitfield_items(spec->hashes) +
               bits * (op == STORE_LOOK ? BITFIELD_GET : BITFIELD_SET) + over_network(server, k * PART_BYTES);
    return bits * (op == STORE_LOOK ? GETBIT : SETBIT) + over_network(server, k * BIT_BYTES);
}

/* All bits go over, so often. All items are gone through for each group of keys that is here at a time. */
static double whole(const struct spec *spec, const struct cost_server *server, size_t n, double mb, double times)
{
    const double bytes = (double)spec_bitmap_bytes(spec) * spec_keys(spec);

    return bytes / 1e6 * mb + times * (over_network(server, bytes + spec_keys(spec) * TRIP_BYTES) +
                                       ceil(bytes / (double)STORE_PIECE) * (double)n * HERE);
}

/* Items are not added to counters by merging: each has to be counted. With is_new the bits before are read, too; and
 * another client's counter, or the period of a slice, has to be compared where an item is added. */
double cost_bitmaps(const struct spec *spec, const struct cost_server *server, enum store_op op, size_t n)
{
    const uint64_t bytes = spec_bitmap_bytes(spec);
    const double merge_mb = bytes < LARGE_BYTES ? MERGE_MB : MERGE_LARGE;

    if (op == STORE_LOOK)
        return whole(spec, server, n, READ_MB, 1);
    if (spec->counters != 0 || (op == STORE_ADD_NEW && (spec->window != 0 || spec->keys != KEYS_OWN ||
                                                        spec_item_keys(spec) != 1 || spec->empty_excluded)))
        return INFINITY;
    if (op == STORE_ADD_NEW)
        return spec_keys(spec) * MERGE_KEY + whole(spec, server, n, merge_mb + BEFORE_MB + READ_MB, 2);
    return spec_keys(spec) * MERGE_KEY + whole(spec, server, n, bytes < TRANSFER_PARTS_BYTES ? merge_mb : PARTS_MB, 1);
}

/* ---- For who chooses a spec -------------------------------------------------------------- */

#define BATCH 1000.0

/* Microseconds an item of the guards behind a call: one for each key that is touched. */
static double guards(const struct spec *spec)
{
    const double keys = spec_keys(spec);
    const bool all = spec_item_keys(spec) > 1;

    return (all ? keys : keys * -expm1(BATCH * log1p(-1 / keys))) * GETRANGE / BATCH;
}

/* A key that is too large for whole bitmaps is also too large for them to pay.
 * Another library's filter goes item by item. */
hibloom_status cost_rates(const struct spec *spec, bool bitfield, struct rates *out)
{
    const struct cost_server server = {bitfield, COST_NETWORK_MB_S};
    const hibloom_status status = spec_check(spec);

    if (status != HIBLOOM_OK)
        return status;
    const bool may_be_whole = spec->keys == KEYS_OWN, may_merge = may_be_whole && spec->window == 0;
    const double add = cost_item(spec, &server, STORE_ADD) + guards(spec);
    const double add_new = cost_item(spec, &server, STORE_ADD_NEW) + guards(spec);
    const double look = cost_item(spec, &server, STORE_LOOK) + guards(spec);
    const double merge = may_merge ? cost_bitmaps(spec, &server, STORE_ADD, BATCH) : INFINITY;
    const double merge_new = cost_bitmaps(spec, &server, STORE_ADD_NEW, BATCH);
    const double read = may_be_whole ? cost_bitmaps(spec, &server, STORE_LOOK, BATCH) : INFINITY;
    *out = (struct rates){.adds = 1e6 / fmin(add, merge / BATCH),
                          .adds_new = 1e6 / fmin(add_new, merge_new / BATCH),
                          .adds_new_sent = 1e6 / add_new,
                          .look_ups = 1e6 / fmin(look, read / BATCH)};
    return HIBLOOM_OK;
}
