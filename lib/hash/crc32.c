/* crc32.c: zlib's CRC-32 as a digest, for sharing with programs that seed a
 * generator with it. It is no hash to choose: items with the same crc32 share
 * all their bits however large the bitmap is. */
#include "hash/hash.h"

#include <zlib.h>

static void compute(const void *item, size_t len, const uint64_t *seeds, uint64_t *values)
{
    values[0] = crc32_z(0, item, len);
}

const struct digest digest_crc32 = {false, compute};
