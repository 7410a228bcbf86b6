/* crc32.c: zlib's CRC-32 as a digest, for sharing with programs that seed a generator with it, and with bloomfilter-rb.
 * It is no hash to choose: items with the same crc32 share all their bits however large the bitmap is. */
#include "hash/hash.h"
#include "base/number.h"

#include <zlib.h>

void digest_crc32(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    values[0] = crc32_z(0, item, len);
}

/* bloomfilter-rb: the CRC of the item, a colon and the hash's seed in decimal digits. */
void digest_crc32_numbered(const struct hasher *hasher, const void *item, size_t len, uint64_t *values)
{
    const uLong of_item = crc32_z(0, item, len);
    char end[1 + NUMBER_DIGITS] = ":";

    for (uint32_t i = 0; i < hasher->hashes; i++) {
        const size_t digits = number_digits(hasher->seeds[i]);
        number_format(end + 1, hasher->seeds[i], digits);
        values[i] = crc32_z(of_item, (const unsigned char *)end, 1 + digits);
    }
}
