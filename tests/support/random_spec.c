/* The text of any spec of a small filter. See random_spec.h. */
#include "random_spec.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void write_seeded_spec(struct test_random *random, char *text, size_t size)
{
    static const char *const layouts[] = {"classic", "partitioned", "blocked"};
    const unsigned layout = (unsigned)test_random_below(random, 3), siphash = (unsigned)test_random_below(random, 2);
    const uint64_t bits = layout == 2 ? 512 * (1 + test_random_below(random, 60))
                                      : 1 + test_random_below(random, test_random_below(random, 4) == 0 ? 40 : 30000);
    const unsigned hashes = (unsigned)(1 + test_random_below(
                                               random, test_random_below(random, 8) == 0 ? HIBLOOM_HASHES_MAX : 10));
    int len = snprintf(text, size, "bits=%" PRIu64 " hashes=%u layout=%s hash=%s seed=", bits, hashes, layouts[layout],
                       siphash ? "siphash" : "xxh3");

    for (unsigned i = 0; i < (siphash ? 4 : 2); i++)
        len += snprintf(text + len, size - (size_t)len, "%08" PRIx32, (uint32_t)test_random_u64(random));
    if (layout != 1 && test_random_below(random, 2) == 0)
        len += snprintf(text + len, size - (size_t)len, " segments=%u", (unsigned)(1 + test_random_below(random, 7)));
    if (layout == 0 && test_random_below(random, 2) == 0)
        len += snprintf(text + len, size - (size_t)len, " counters=%u", 2u << test_random_below(random, 3));
    if (test_random_below(random, 4) == 0)
        snprintf(text + len, size - (size_t)len, " empty=excluded");
}

void random_spec(struct test_random *random, char text[SPEC_TEXT_SIZE])
{
    static const char *const presets[] = {"php-poly8 bits=4099", "php-mt bits=7001 capacity=500",
                                          "php-mt-legacy bits=7001 capacity=500", "py-mmh3 capacity=300 error=0.01",
                                          "py-mmh3-redis capacity=300 error=0.01"};

    if (test_random_below(random, 6) == 0)
        strcpy(text, presets[test_random_below(random, 5)]);
    else
        write_seeded_spec(random, text, SPEC_TEXT_SIZE);
}
