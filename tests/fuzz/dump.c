/* Fuzz target: a file that redis-cli may have printed of BF.SCANDUMP, or not. */
#include "fuzz.h"
#include "base/store.h"
#include "spec/spec.h"

#include <hibloom/hibloom.h>

enum { HEADER_AT = 2, HEAD = 20, LINK = 53, LINKS = 4, ITEMS_AT = 0, LINKS_AT = 8, LINK_ITEMS_AT = 36 };

static bool count(const char *name, void *n)
{
    (void)name;
    ++*(unsigned *)n;
    return true;
}

/* It becomes a filter with as many links, and bits, as its header says; or there is none. */
static void import(const uint8_t *bytes, size_t size)
{
    char path[64];
    const int fd = fuzz_file(bytes, size, path);
    hibloom_store *store;
    hibloom *filter = NULL;
    unsigned n = 0;

    REQUIRE(hibloom_connect(&store, "memory:", NULL) == HIBLOOM_OK);
    const hibloom_status status = hibloom_import_file(&filter, store, "seen", path);
    REQUIRE((status == HIBLOOM_OK) == (filter != NULL));
    REQUIRE(hibloom_list(store, NULL, count, &n) == HIBLOOM_OK);
    REQUIRE(n == (status == HIBLOOM_OK));
    if (status == HIBLOOM_OK) {
        const struct spec *spec = &filter->spec;
        hibloom_info info;
        REQUIRE(hibloom_get_info(filter, &info, sizeof info) == HIBLOOM_OK);
        REQUIRE(spec->hash == HASH_REDISBLOOM && spec->bits / 8 < size && info.bits_set < size * 8);
        const uint8_t *header = (const uint8_t *)memchr(bytes, '\n', size) + 1; /* behind "1", or "01" */
        REQUIRE(info.keys == header[LINKS_AT] && (info.keys > 1) == (spec->growth > 1));
    } else {
        REQUIRE(status == HIBLOOM_ECORRUPT || status == HIBLOOM_ENOTSUP || status == HIBLOOM_ERANGE ||
                status == HIBLOOM_ENOMEM);
        REQUIRE(*hibloom_store_error(store) != '\0');
    }
    hibloom_close(filter);
    hibloom_store_free(store);
    close(fd);
}

/* Bytes at random have no right ends: the header, of a few links whose items have a right sum, is put there once more. */
static void mend(uint8_t *bytes, size_t size)
{
    uint64_t items = 0;

    if (size < 2 * (HEADER_AT + HEAD + LINK + 1))
        return;
    uint8_t *const header = bytes + HEADER_AT, links = (uint8_t)(header[LINKS_AT] % LINKS + 1);
    const size_t len = HEADER_AT + HEAD + (size_t)links * LINK + 1;
    if (size < 2 * len)
        return;
    memcpy(bytes, "1\n", HEADER_AT);
    memcpy(header + LINKS_AT, (const uint8_t[]){links, 0, 0, 0}, 4);
    for (uint8_t i = 0; i < links; i++)
        for (unsigned k = 0; k < 8; k++)
            items += (uint64_t)header[LINK_ITEMS_AT + (size_t)i * LINK + k] << 8 * k;
    for (unsigned k = 0; k < 8; k++)
        header[ITEMS_AT + k] = (uint8_t)(items >> 8 * k);
    bytes[len - 1] = '\n';
    memcpy(bytes + size - len, bytes, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = (uint8_t *)fuzz_copy(data, size, 0);

    import(bytes, size);
    mend(bytes, size);
    import(bytes, size);
    free(bytes);
    return 0;
}
