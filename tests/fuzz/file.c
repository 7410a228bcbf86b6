/* Fuzz target: a file that hibloom_save may have written, or not. */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuzz.h"
#include "spec/request.h"
#include "spec/spec.h"

enum { TEXT_LENGTH_AT = 12, BITS_LENGTH_AT = 16, HEADER = 24, SUM = 8 };

static uint64_t bits_set_in(const uint8_t *bytes, uint64_t len)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < len; i++)
        n += (unsigned)__builtin_popcount(bytes[i]);
    return n;
}

static uint64_t bits_set(hibloom *filter)
{
    hibloom_info info;

    REQUIRE(hibloom_get_info(filter, &info, sizeof info) == HIBLOOM_OK);
    return info.bits_set;
}

/* Attached, since hibloom_open would draw a seed where the file has none; but what is no bare bitmap has
 * to have one. NULL: it cannot be opened. */
static hibloom *open_same(hibloom_store *store, const struct spec *spec, const char *text)
{
    hibloom *filter = NULL;

    if (spec->counters == 0 && !spec_has_links(spec))
        REQUIRE(hibloom_attach(&filter, store, "same", text) == HIBLOOM_OK);
    else if (spec->seeded && spec->keys == KEYS_OWN)
        REQUIRE(hibloom_open(&filter, store, "same", text) == HIBLOOM_OK);
    return filter;
}

/* Just what is in the file is in the filter then; or nothing, if it was refused. */
static void require_loaded(hibloom_store *store, const char *text, const char *path, const uint8_t *bytes, size_t size)
{
    struct request request;
    struct error error;

    REQUIRE(request_read(&request, text, &error) == HIBLOOM_OK);
    const struct spec *spec = &request.spec;
    hibloom *filter = open_same(store, spec, text);
    uint64_t len, sum;

    memcpy(&len, bytes + BITS_LENGTH_AT, sizeof len);
    memcpy(&sum, bytes + size - SUM, sizeof sum);
    const uint64_t first = spec_keys(spec) * spec_bitmap_bytes(spec); /* and further links */
    REQUIRE((spec->growth != 0 ? len >= first : len == first) && len < size);
    if (filter == NULL)
        return;
    const hibloom_status status = hibloom_restore(filter, path);
    if (status == HIBLOOM_OK) {
        REQUIRE(sum == XXH3_64bits(bytes, size - SUM) && spec->window == 0);
        REQUIRE(spec->counters != 0 || bits_set(filter) == bits_set_in(bytes + size - SUM - len, len));
        REQUIRE(hibloom_restore(filter, path) == HIBLOOM_OK);
    } else {
        REQUIRE(status == (spec->window != 0 ? HIBLOOM_ENOTSUP : HIBLOOM_ECORRUPT));
        REQUIRE(*hibloom_store_error(store) != '\0');
        REQUIRE(bits_set(filter) == 0);
    }
    hibloom_close(filter);
}

static void load(const uint8_t *bytes, size_t size)
{
    char path[64];
    const int fd = fuzz_file(bytes, size, path);
    hibloom_store *store;
    hibloom *other = NULL;
    char text[HIBLOOM_TEXT_SIZE];

    REQUIRE(hibloom_connect(&store, "memory:", NULL) == HIBLOOM_OK);
    REQUIRE(hibloom_open(&other, store, "other", "bits=77 hashes=3 seed=0123456789abcdef") == HIBLOOM_OK);
    const hibloom_status status = hibloom_file_spec(path, text, sizeof text);
    const hibloom_status mixed = hibloom_restore(other, path);
    REQUIRE(mixed == HIBLOOM_ECORRUPT || mixed == HIBLOOM_ENOTSUP || mixed == HIBLOOM_EMISMATCH || mixed == HIBLOOM_OK);
    if (status == HIBLOOM_OK)
        require_loaded(store, text, path, bytes, size);
    else
        REQUIRE((status == HIBLOOM_ECORRUPT || status == HIBLOOM_ENOTSUP) &&
                mixed == status); /* a newer version has such words */
    REQUIRE(mixed == HIBLOOM_OK || bits_set(other) == 0);
    hibloom_close(other);
    hibloom_store_free(store);
    close(fd);
}

/* Bytes at random have no right lengths and never the right checksum: they are put in. */
static void mend(uint8_t *bytes, size_t size)
{
    static const uint8_t begin[TEXT_LENGTH_AT] = {0x89, 'H', 'B', 'L', '\r', '\n', 0x1a, '\n', 1};
    uint32_t text_len;

    if (size < HEADER + SUM)
        return;
    memcpy(bytes, begin, sizeof begin);
    memcpy(&text_len, bytes + TEXT_LENGTH_AT, sizeof text_len);
    if (text_len > size - HEADER - SUM)
        return;
    const uint64_t all_bits_len = size - HEADER - SUM - text_len;
    memcpy(bytes + BITS_LENGTH_AT, &all_bits_len, sizeof all_bits_len);
    const uint64_t sum = XXH3_64bits(bytes, size - SUM);
    memcpy(bytes + size - SUM, &sum, sizeof sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = (uint8_t *)fuzz_copy(data, size, 0);

    load(bytes, size);
    mend(bytes, size);
    load(bytes, size);
    free(bytes);
    return 0;
}
