/* Dumps of RedisBloom's filters. See module_dump.h. */
#include "module_dump.h"
#include "files.h"
#include "spec/positions.h"

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

static void note_items(struct module_dump *dump, uint32_t number, uint64_t items)
{
    dump->items += items - dump->link[number].items;
    dump->link[number].items = items;
    module_dump_set(dump, MODULE_ITEMS_AT, dump->items, 8);
    module_dump_set(dump, MODULE_LINK_ITEMS_AT + number * MODULE_LINK, items, 8);
}

static void add_link(struct module_dump *dump, double error, uint64_t capacity)
{
    const double per_item = -log(error) / 0.480453013918201;
    const uint64_t bits = ((uint64_t)((double)capacity * per_item) + 63) / 64 * 64;
    const unsigned at = dump->links * MODULE_LINK;
    struct module_link *link = &dump->link[dump->links++];

    assert_in_range(dump->links, 1, MODULE_LINKS);
    *link = (struct module_link){capacity, 0,     dump->bytes,
                                 bits / 8, error, (uint32_t)ceil(0.693147180559945 * per_item)};
    dump->bytes += link->bytes;
    dump->data = realloc(dump->data, (size_t)dump->bytes);
    assert_non_null(dump->data);
    memset(dump->data + link->from, 0, (size_t)link->bytes);
    module_dump_set(dump, MODULE_LINKS_AT, dump->links, 4);
    module_dump_set(dump, MODULE_BYTES_AT + at, link->bytes, 8);
    module_dump_set(dump, MODULE_BITS_AT + at, bits, 8);
    module_dump_set(dump, MODULE_ERROR_AT + at, bits_of(error), 8);
    module_dump_set(dump, MODULE_ERROR_AT + 8 + at, bits_of(per_item), 8);
    module_dump_set(dump, MODULE_HASHES_AT + at, link->hashes, 4);
    module_dump_set(dump, MODULE_CAPACITY_AT + at, capacity, 8);
}

void module_dump_make_growing(struct module_dump *dump, double error, uint64_t capacity, uint32_t growth)
{
    *dump = (struct module_dump){.growth = growth, .piece = MODULE_PIECE};
    module_dump_set(dump, MODULE_OPTIONS_AT, growth != 0 ? 5 : 13, 4);
    module_dump_set(dump, MODULE_GROWTH_AT, growth, 4);
    add_link(dump, growth != 0 ? error / 2 : error, capacity);
}

void module_dump_make(struct module_dump *dump, double error, uint64_t capacity, bool scaling)
{
    module_dump_make_growing(dump, error, capacity, scaling ? 2 : 0);
}

void module_dump_grow(struct module_dump *dump)
{
    const struct module_link *newest = &dump->link[dump->links - 1];

    add_link(dump, newest->error / 2, newest->capacity * dump->growth);
}

void module_dump_free(struct module_dump *dump)
{
    free(dump->data);
    dump->data = NULL;
}

/* ---- Adding ---------------------------------------------------------------------- */

/* Whether a bit was new. set: all are. */
static bool walk(struct module_dump *dump, uint32_t number, const uint64_t *offsets, bool set)
{
    const struct module_link *link = &dump->link[number];
    bool is_new = false;

    for (uint32_t i = 0; i < link->hashes; i++) {
        unsigned char *byte = &dump->data[link->from + offsets[i] / 8];
        const unsigned char bit = (unsigned char)(1u << offsets[i] % 8);
        is_new = is_new || (*byte & bit) == 0;
        if (set)
            *byte |= bit;
    }
    return is_new;
}

void module_dump_add(struct module_dump *dump, const uint64_t *offsets)
{
    if (walk(dump, 0, offsets, true))
        note_items(dump, 0, dump->link[0].items + 1);
}

/* The library's, which tests/unit/presets.c compares with the module's. */
static void find_offsets(const struct module_link *link, const void *item, size_t len, uint64_t *offsets)
{
    const struct spec spec = {.bits = link->bytes * 8, .hashes = link->hashes, .hash = HASH_REDISBLOOM};
    hibloom_position at[HIBLOOM_HASHES_MAX];

    assert_ok(positions_of(&spec, item, len, at), NULL);
    for (uint32_t i = 0; i < link->hashes; i++)
        offsets[i] = at[i].bit ^ 7;
}

bool module_dump_add_item(struct module_dump *dump, const void *item, size_t len)
{
    uint64_t offsets[HIBLOOM_HASHES_MAX];

    for (uint32_t i = 0; i < dump->links; i++) {
        find_offsets(&dump->link[i], item, len, offsets);
        if (!walk(dump, i, offsets, false))
            return false;
    }
    if (dump->link[dump->links - 1].items >= dump->link[dump->links - 1].capacity)
        module_dump_grow(dump);
    find_offsets(&dump->link[dump->links - 1], item, len, offsets);
    (void)walk(dump, dump->links - 1, offsets, true);
    note_items(dump, dump->links - 1, dump->link[dump->links - 1].items + 1);
    return true;
}

unsigned module_dump_fill(struct module_dump *dump, uint64_t items)
{
    char item[32];
    unsigned n = 0;

    while (dump->items < items) {
        const int len = snprintf(item, sizeof item, "in %u", n++);
        (void)module_dump_add_item(dump, item, (size_t)len);
    }
    return n;
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

/* To the end of the link in which they are, and no further. */
static size_t left_in_link(const struct module_dump *dump, uint64_t done)
{
    uint32_t i = 0;

    while (i < dump->links && dump->link[i].from + dump->link[i].bytes <= done)
        i++;
    return i < dump->links ? (size_t)(dump->link[i].from + dump->link[i].bytes - done) : 0;
}

void module_dump_ask(const struct module_dump *dump, struct bytes *out, uint64_t at, uint64_t *next, bool resp)
{
    const uint64_t done = at - 1;
    const size_t left = at == 0 ? 0 : left_in_link(dump, done), len = left < dump->piece ? left : dump->piece;

    *next = at == 0 ? 1 : len > 0 ? at + len : 0;
    if (at == 0)
        module_dump_answer(out, 1, dump->header, MODULE_HEAD + dump->links * MODULE_LINK, resp);
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
