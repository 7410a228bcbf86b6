/* Fuzz target: a file that redis-cli may have printed of BF.SCANDUMP, or not. */
#include "fuzz.h"

#include <hibloom/hibloom.h>

#include <sys/mman.h>
#include <unistd.h>

enum { HEADER = 73, HEADER_AT = 2, ITEMS_AT = 0, LINK_ITEMS_AT = 36 };

static bool count(const char *name, void *n)
{
    (void)name;
    ++*(unsigned *)n;
    return true;
}

/* It becomes a filter with as many bits as its header says and an item may set; or there is none. */
static void import(const void *bytes, size_t size)
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    hibloom_store *store;
    hibloom *filter = NULL;
    unsigned n = 0;
    char path[64];

    REQUIRE(fd >= 0);
    REQUIRE(write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    REQUIRE(hibloom_memory(&store) == HIBLOOM_OK);
    const hibloom_status status = hibloom_import_file(&filter, store, "seen", path);
    REQUIRE((status == HIBLOOM_OK) == (filter != NULL));
    REQUIRE(hibloom_list(store, NULL, count, &n) == HIBLOOM_OK);
    REQUIRE(n == (status == HIBLOOM_OK));
    if (status == HIBLOOM_OK) {
        const hibloom_spec *spec = hibloom_spec_of(filter);
        hibloom_info info;
        REQUIRE(hibloom_get_info(filter, &info) == HIBLOOM_OK);
        REQUIRE(spec->hash == HIBLOOM_HASH_REDISBLOOM && spec->bits / 8 < size && info.bits_set <= spec->bits);
    } else {
        REQUIRE(status == HIBLOOM_ECORRUPT || status == HIBLOOM_ENOTSUP || status == HIBLOOM_ERANGE ||
                status == HIBLOOM_ENOMEM);
        REQUIRE(*hibloom_store_error(store) != '\0');
    }
    hibloom_close(filter);
    hibloom_store_free(store);
    close(fd);
}

/* Bytes at random have no right ends: the header is put there once more. */
static void mend(uint8_t *bytes, size_t size)
{
    if (size < 2 * (HEADER_AT + HEADER + 1))
        return;
    memcpy(bytes, "1\n", HEADER_AT);
    bytes[HEADER_AT + HEADER] = '\n';
    memcpy(bytes + HEADER_AT + LINK_ITEMS_AT, bytes + HEADER_AT + ITEMS_AT, 8);
    memcpy(bytes + size - (HEADER_AT + HEADER + 1), bytes, HEADER_AT + HEADER + 1);
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
