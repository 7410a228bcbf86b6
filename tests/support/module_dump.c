/* Dumps of RedisBloom's filters. See module_dump.h. */
#include "module_dump.h"
#include "files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Making ---------------------------------------------------------------------- */

void module_dump_set(struct module_dump *dump, unsigned at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        dump->header[at + i] = (unsigned char)(value >> 8 * i);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void set_items(struct module_dump *dump, uint64_t items)
{
    dump->items = items;
    module_dump_set(dump, MODULE_ITEMS_AT, items, 8);
    module_dump_set(dump, MODULE_LINK_ITEMS_AT, items, 8);
}

void module_dump_make(struct module_dump *dump, double error, uint64_t capacity, bool scaling)
{
    const double own = scaling ? error / 2 : error, per_item = -log(own) / 0.480453013918201;
    const uint64_t bits = ((uint64_t)((double)capacity * per_item) + 63) / 64 * 64;

    *dump = (struct module_dump){
        .capacity = capacity,
        .error = own,
        .bytes = bits / 8,
        .hashes = (uint32_t)ceil(0.693147180559945 * per_item),
        .piece = MODULE_PIECE,
        .data = calloc(1, (size_t)(bits / 8)),
    };
    assert_non_null(dump->data);
    module_dump_set(dump, MODULE_LINKS_AT, 1, 4);
    module_dump_set(dump, MODULE_OPTIONS_AT, scaling ? 5 : 13, 4);
    module_dump_set(dump, MODULE_OPTIONS_AT + 4, scaling ? 2 : 0, 4);
    module_dump_set(dump, MODULE_BYTES_AT, bits / 8, 8);
    module_dump_set(dump, MODULE_BITS_AT, bits, 8);
    module_dump_set(dump, MODULE_ERROR_AT, bits_of(own), 8);
    module_dump_set(dump, MODULE_ERROR_AT + 8, bits_of(per_item), 8);
    module_dump_set(dump, MODULE_HASHES_AT, dump->hashes, 4);
    module_dump_set(dump, MODULE_CAPACITY_AT, capacity, 8);
}

void module_dump_free(struct module_dump *dump)
{
    free(dump->data);
    dump->data = NULL;
}

void module_dump_add(struct module_dump *dump, const uint64_t *offsets)
{
    bool is_new = false;

    for (uint32_t i = 0; i < dump->hashes; i++) {
        unsigned char *byte = &dump->data[offsets[i] / 8];
        const unsigned char bit = (unsigned char)(1u << offsets[i] % 8);
        is_new = is_new || (*byte & bit) == 0;
        *byte |= bit;
    }
    if (is_new)
        set_items(dump, dump->items + 1);
}

/* ---- Answers --------------------------------------------------------------------- */

void module_dump_answer(struct bytes *out, uint64_t next, const unsigned char *data, size_t len, bool resp)
{
    char head[64];
    const int head_len = snprintf(head, sizeof head, resp ? "*2\r\n:%llu\r\n$%zu\r\n" : "%llu\n",
                                  (unsigned long long)next, len);

    bytes_append(out, head, (size_t)head_len);
    bytes_append(out, (const char *)data, len);
    bytes_append(out, resp ? "\r\n" : "\n", resp ? 2 : 1);
}

void module_dump_ask(const struct module_dump *dump, struct bytes *out, uint64_t at, uint64_t *next, bool resp)
{
    const uint64_t done = at - 1, left = at == 0 ? 0 : dump->bytes - done;
    const size_t len = left < dump->piece ? (size_t)left : dump->piece;

    *next = at == 0 ? 1 : len > 0 ? at + len : 0;
    if (at == 0)
        module_dump_answer(out, 1, dump->header, sizeof dump->header, resp);
    else
        module_dump_answer(out, *next, dump->data + done, len, resp);
}

void module_dump_print(const struct module_dump *dump, struct bytes *out)
{
    uint64_t next = 0;

    module_dump_ask(dump, out, 0, &next, false);
    while (next - 1 < dump->bytes)
        module_dump_ask(dump, out, next, &next, false);
    module_dump_ask(dump, out, 0, &next, false);
}

void module_dump_write(const struct module_dump *dump, const char *path)
{
    struct bytes bytes = {0};

    module_dump_print(dump, &bytes);
    write_file(path, bytes.data, bytes.len);
    bytes_clear(&bytes);
}

/* ---- Vectors --------------------------------------------------------------------- */

/* "68656c6c6f", or "-" for nothing. */
static size_t read_item(const char *hex, unsigned char *out)
{
    size_t len = 0;
    unsigned byte;

    for (; sscanf(hex + 2 * len, "%2x", &byte) == 1; len++) {
        assert_true(len < sizeof((struct module_vector *)0)->item);
        out[len] = (unsigned char)byte;
    }
    return len;
}

unsigned module_vectors(const char *filter, void (*each)(const struct module_vector *, void *data), void *data)
{
    FILE *file = fopen("tests/data/other-filters.tsv", "r");
    struct module_vector vector;
    unsigned n = 0;
    size_t room = 0;
    char *line = NULL;

    assert_non_null(file);
    while (getline(&line, &room, file) > 0) {
        char *rest = line;
        const char *library = strsep(&rest, "\t"), *spec = strsep(&rest, "\t");
        if (strcmp(library, "redisbloom") != 0 || strncmp(spec, filter, strlen(filter)) != 0)
            continue;
        vector.len = read_item(strsep(&rest, "\t"), vector.item);
        (void)strsep(&rest, "\t");
        memset(vector.offsets, 0, sizeof vector.offsets);
        for (unsigned i = 0; i < HIBLOOM_HASHES_MAX && rest != NULL; i++)
            vector.offsets[i] = strtoull(strsep(&rest, ","), NULL, 10);
        each(&vector, data);
        n++;
    }
    free(line);
    fclose(file);
    return n;
}
