/* A dump of RedisBloom in a file, as redis-cli prints it: what the module has said is in is in, and no dump
 * that is torn, old or none at all becomes a filter. One that has grown to several links becomes a growing filter, which
 * goes on growing as the module's would; and no other numbers than the module's are believed. */
#include "base/store.h"
#include "spec/spec.h"
#include "support/files.h"
#include "support/items.h"
#include "support/module_dump.h"
#include "support/temp_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hibloom_store *store;
static char *dir, *path;

static int set_up(void **state)
{
    assert_ok(hibloom_connect(&store, "memory:", NULL), NULL);
    dir = temp_dir_make();
    path = temp_dir_path(dir, "dump");
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    free(path);
    temp_dir_remove(dir);
    return 0;
}

static bool count_name(const char *name, void *count)
{
    (void)name;
    ++*(unsigned *)count;
    return true;
}

static unsigned filters_there(void)
{
    unsigned count = 0;

    assert_ok(hibloom_list(store, NULL, count_name, &count), store);
    return count;
}

/* The file is refused, in words that name it, and leaves no filter under any name. */
static void assert_refused(hibloom_status expected, const char *words)
{
    const unsigned before = filters_there();
    hibloom *filter = NULL;

    assert_status(hibloom_import_file(&filter, store, "refused", path), expected, store);
    assert_null(filter);
    if (strstr(hibloom_store_error(store), words) == NULL || strstr(hibloom_store_error(store), path) == NULL)
        fail_msg("\"%s\" has not \"%s\"", hibloom_store_error(store), words);
    assert_int_equal(filters_there(), before);
}

/* The same of its dump, which is freed. */
static void assert_dump_refused(struct module_dump *dump, hibloom_status expected, const char *words)
{
    module_dump_write(dump, path);
    assert_refused(expected, words);
    module_dump_free(dump);
}

/* A number in a dump's header, and what is said of it. */
struct altered {
    unsigned at;
    uint64_t value;
    unsigned bytes;
    hibloom_status status;
    const char *words;
};

/* Dumps that `make` makes are refused, each with one number altered. */
static void assert_altered_refused(const struct altered *altered, size_t n, void make(struct module_dump *dump))
{
    for (size_t i = 0; i < n; i++) {
        struct module_dump dump;

        make(&dump);
        module_dump_set(&dump, altered[i].at, altered[i].value, altered[i].bytes);
        assert_dump_refused(&dump, altered[i].status, altered[i].words);
    }
}

/* Nor is any part of its file, nor a longer one. */
static void assert_refused_cut_or_longer(const struct module_dump *dump)
{
    struct bytes bytes = {0};

    module_dump_print(dump, &bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        write_file(path, bytes.data, len);
        assert_refused(HIBLOOM_ECORRUPT, "");
    }
    bytes_append(&bytes, "\n", 1);
    write_file(path, bytes.data, bytes.len);
    assert_refused(HIBLOOM_ECORRUPT, "goes on");
    bytes_clear(&bytes);
}

/* ---- What is in --------------------------------------------------------------------- */

static void add_vector(const struct module_vector *vector, void *data)
{
    module_dump_add(data, vector->offsets);
}

static void assert_in(const struct module_vector *vector, void *data)
{
    bool found = false;

    assert_ok(hibloom_contains(data, vector->item, vector->len, &found), store);
    assert_true(found);
}

static const struct {
    const char *row;
    uint64_t capacity;
    double error;
    bool scaling;
    const char *spec;
} filters[] = {
    {"cap=1000,", 1000, 0.01, true, "hash=redisbloom layout=classic bits=11072 hashes=8 capacity=1000 error=0.005"},
    {"cap=100000,", 100000, 0.001, false,
     "hash=redisbloom layout=classic bits=1437760 hashes=10 capacity=100000 error=0.001"},
    {"cap=2000000,", 2000000, 0.0001, true,
     "hash=redisbloom layout=classic bits=41225664 hashes=15 capacity=2000000 error=5e-05"},
};
enum { FILTERS = sizeof filters / sizeof *filters };

/* Pieces of any length: the module's are 16 MB, and what it will do tomorrow nobody knows. */
static void what_the_module_has_added_is_in(void **state)
{
    static const size_t pieces[FILTERS] = {7, 65536, MODULE_PIECE};

    for (int i = 0; i < FILTERS; i++) {
        char text[SPEC_TEXT_SIZE];
        struct module_dump dump;
        hibloom *filter = NULL;
        hibloom_info info;
        module_dump_make(&dump, filters[i].error, filters[i].capacity, filters[i].scaling);
        dump.piece = pieces[i];
        assert_int_equal(module_vectors(filters[i].row, add_vector, &dump), 12);
        module_dump_write(&dump, path);
        assert_ok(hibloom_import_file(&filter, store, filters[i].row, path), store);
        assert_ok(spec_format(&filter->spec, text, sizeof text), NULL);
        assert_string_equal(text, filters[i].spec);
        module_vectors(filters[i].row, assert_in, filter);
        assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
        assert_int_equal(info.ttl_ms, -1);
        hibloom_close(filter);
        module_dump_free(&dump);
    }
}

/* With what the module has added to it. */
static void make_known(struct module_dump *dump)
{
    module_dump_make(dump, 0.01, 1000, true);
    module_vectors("cap=1000,", add_vector, dump);
}

/* ---- What is refused ------------------------------------------------------------------ */

static const struct altered headers[] = {
    {MODULE_OPTIONS_AT, 1, 4, HIBLOOM_ENOTSUP, "old version of the module, with a hash of 32 bits"},
    {MODULE_OPTIONS_AT, 0, 4, HIBLOOM_ENOTSUP, "old version"},
    {MODULE_OPTIONS_AT, 4, 4, HIBLOOM_ENOTSUP, "power of two"},
    {MODULE_OPTIONS_AT, 7, 4, HIBLOOM_ENOTSUP, "options (7)"},
    {MODULE_OPTIONS_AT, 0x80000005, 4, HIBLOOM_ENOTSUP, "options"},
    {MODULE_N2_AT, 14, 1, HIBLOOM_ENOTSUP, "power of two"},
    {MODULE_ITEMS_AT, 11, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_LINK_ITEMS_AT, 11, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_LINKS_AT, 0, 4, HIBLOOM_ECORRUPT, "length"},
    {MODULE_LINKS_AT, 2, 4, HIBLOOM_ECORRUPT, "length"},
    {MODULE_LINKS_AT, UINT32_MAX, 4, HIBLOOM_ECORRUPT, "more filters"},
    {MODULE_BYTES_AT, 1385, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_BYTES_AT, UINT64_MAX, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_BYTES_AT, UINT64_C(0x2000000000000568), 8, HIBLOOM_ECORRUPT, "do not agree"}, /* times 8 it wraps */
    {MODULE_BITS_AT, 11071, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_BITS_AT, 0, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_HASHES_AT, 7, 4, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_CAPACITY_AT, 0, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_ERROR_AT, 0, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_ERROR_AT, UINT64_C(0x3ff0000000000000), 8, HIBLOOM_ECORRUPT, "do not agree"}, /* 1 */
    {MODULE_ERROR_AT, UINT64_C(0xbff0000000000000), 8, HIBLOOM_ECORRUPT, "do not agree"}, /* -1 */
    {MODULE_ERROR_AT, UINT64_MAX, 8, HIBLOOM_ECORRUPT, "do not agree"},                   /* no number */
    {MODULE_ERROR_AT + 8, UINT64_MAX, 8, HIBLOOM_ECORRUPT, "do not agree"},
};

static void a_foreign_header_is_refused(void **state)
{
    assert_altered_refused(headers, COUNT(headers), make_known);
}

static void what_no_redis_string_holds_is_refused(void **state)
{
    struct module_dump dump;

    module_dump_make(&dump, 0.01, 1000, true);
    module_dump_set(&dump, MODULE_BYTES_AT, UINT64_C(1) << 40, 8);
    module_dump_set(&dump, MODULE_BITS_AT, UINT64_C(1) << 43, 8);
    assert_dump_refused(&dump, HIBLOOM_ERANGE, "8796093022208 bits");
}

static void a_file_that_was_cut_short_or_goes_on_is_refused(void **state)
{
    struct module_dump dump;

    module_dump_make(&dump, 0.3, 40, false);
    dump.piece = 9;
    module_dump_add(&dump, (const uint64_t[]){1, 2, 3});
    assert_refused_cut_or_longer(&dump);
    module_dump_free(&dump);
}

/* The file without a header at its end, and with that of another moment. */
static void a_torn_dump_is_refused(void **state)
{
    struct module_dump dump;
    struct bytes bytes = {0};
    uint64_t next;

    module_dump_make(&dump, 0.01, 1000, true);
    module_dump_add(&dump, (const uint64_t[]){1, 2, 3, 4, 5, 6, 7, 8});
    module_dump_ask(&dump, &bytes, 0, &next, false);
    module_dump_ask(&dump, &bytes, next, &next, false);
    write_file(path, bytes.data, bytes.len);
    assert_refused(HIBLOOM_ECORRUPT, "does not end in the header");
    module_dump_add(&dump, (const uint64_t[]){9, 10, 11, 12, 13, 14, 15, 16});
    module_dump_ask(&dump, &bytes, 0, &next, false);
    write_file(path, bytes.data, bytes.len);
    assert_refused(HIBLOOM_ECORRUPT, "was being written to");
    bytes_clear(&bytes);
    module_dump_free(&dump);
}

static void bits_that_do_not_come_from_so_many_items_are_refused(void **state)
{
    struct module_dump dump;

    module_dump_make(&dump, 0.01, 1000, true);
    module_dump_add(&dump, (const uint64_t[]){1, 2, 3, 4, 5, 6, 7, 8});
    dump.data[1000] = 1; /* a ninth of eight */
    module_dump_write(&dump, path);
    assert_refused(HIBLOOM_ECORRUPT, "do not come from as many items");
    memset(dump.data, 0, (size_t)dump.bytes);
    assert_dump_refused(&dump, HIBLOOM_ECORRUPT, "do not come from as many items");
}

static void what_is_no_dump_is_refused(void **state)
{
    static const char *const texts[] = {
        "ERR unknown command 'BF.SCANDUMP'\n", "0\n\n", "1\n", "1\r\n", "x", "-1\n", "18446744073709551617\n"};
    hibloom *filter = NULL;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file(path, texts[i], strlen(texts[i]));
        assert_refused(HIBLOOM_ECORRUPT, "");
    }
    assert_status(hibloom_import_file(&filter, store, "none", dir), HIBLOOM_EIO, store);
    remove(path);
    assert_refused(HIBLOOM_EIO, "No such file");
}

static void a_name_that_is_taken_is_refused(void **state)
{
    hibloom *taken = test_open(store, "taken", "bits=100 hashes=2"), *filter = NULL;
    struct module_dump dump;
    char name[HIBLOOM_NAME_MAX + 1];

    module_dump_make(&dump, 0.01, 1000, true);
    module_dump_write(&dump, path);
    assert_fails(hibloom_import_file(&filter, store, "taken", path), HIBLOOM_EMISMATCH, store, "is there already");
    memset(name, 'n', HIBLOOM_NAME_MAX);
    name[HIBLOOM_NAME_MAX] = '\0';
    assert_status(hibloom_import_file(&filter, store, name, path), HIBLOOM_ERANGE, store);
    assert_status(hibloom_import_file(&filter, store, "}", path), HIBLOOM_EINVAL, store);
    assert_status(hibloom_import(&filter, store, "other", store, "seen"), HIBLOOM_ENOTSUP, store);
    assert_null(filter);
    hibloom_close(taken);
    module_dump_free(&dump);
}

/* ---- Several links -------------------------------------------------------------------- */

#define GROWN "capacity=100 error=0.01 growth=3"

/* Of BF.RESERVE key 0.01 100 EXPANSION 3, with so many items. */
static void make_grown(struct module_dump *dump, unsigned items)
{
    module_dump_make_growing(dump, 0.01, 100, 3);
    (void)module_dump_fill(dump, items);
}

static hibloom *import(const char *name, const struct module_dump *dump)
{
    hibloom *filter = NULL;

    module_dump_write(dump, path);
    assert_ok(hibloom_import_file(&filter, store, name, path), store);
    return filter;
}

static uint64_t links_of(hibloom *filter, double *error_rate)
{
    hibloom_info info;

    assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
    *error_rate = info.estimated_error_rate;
    return info.keys;
}

static void what_all_links_hold_is_in(void **state)
{
    static const size_t pieces[] = {7, 1000, MODULE_PIECE};
    char text[SPEC_TEXT_SIZE], name[16];
    struct module_dump dump;
    double error_rate;

    make_grown(&dump, 2000);
    assert_int_equal(dump.links, 4);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        snprintf(name, sizeof name, "grown %zu", i);
        dump.piece = pieces[i];
        hibloom *filter = import(name, &dump);
        assert_ok(spec_format(&filter->spec, text, sizeof text), NULL);
        assert_string_equal(text, "hash=redisbloom layout=classic bits=1152 hashes=8 " GROWN);
        assert_int_equal(items_count(filter, store, "in ", 2000), 2000);
        assert_in_range(items_count(filter, store, "out ", 10000), 1, 120);
        assert_int_equal(links_of(filter, &error_rate), 4);
        assert_true(error_rate > 0.005 && error_rate < 0.011);
        hibloom_close(filter);
    }
    module_dump_free(&dump);
}

/* As many items are in as fill two links; or one more, or less. It grows by the module's rule, too. */
static void the_newest_link_goes_on_or_is_followed(void **state)
{
    static const unsigned counts[] = {390, 400, 401};
    char name[16];
    double error_rate;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct module_dump dump;
        make_grown(&dump, counts[i]);
        assert_int_equal(dump.links, counts[i] > 400 ? 3 : 2);
        snprintf(name, sizeof name, "full %u", counts[i]);
        hibloom *filter = import(name, &dump);
        assert_in_range(items_add(filter, store, "later ", 3000), 2960, 3000);
        assert_int_equal(items_count(filter, store, "in ", counts[i]), counts[i]);
        assert_int_equal(items_count(filter, store, "later ", 3000), 3000);
        assert_in_range(items_count(filter, store, "out ", 10000), 1, 120);
        assert_int_equal(links_of(filter, &error_rate), 4); /* for 100, 300, 900, 2700 */
        hibloom_close(filter);
        module_dump_free(&dump);
    }
}

/* ---- Several links that are refused --------------------------------------------------- */

/* Of the header of three links, of which the second begins at SECOND. */
#define SECOND MODULE_LINK
#define HALVED(times) (UINT64_C(0x3ff0000000000000) - ((uint64_t)(times) << 52)) /* 1, as a double */

static const struct altered grown_headers[] = {
    {MODULE_GROWTH_AT, 1, 4, HIBLOOM_ENOTSUP, "EXPANSION 1, and with 2 to 16"},
    {MODULE_GROWTH_AT, 17, 4, HIBLOOM_ENOTSUP, "EXPANSION 17"},
    {MODULE_GROWTH_AT, 2, 4, HIBLOOM_ENOTSUP, "do not follow"},
    {MODULE_OPTIONS_AT, 13, 4, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_N2_AT + SECOND, 14, 1, HIBLOOM_ENOTSUP, "power of two"},
    {MODULE_LINKS_AT, 2, 4, HIBLOOM_ECORRUPT, "length"},
    {MODULE_LINKS_AT, 4, 4, HIBLOOM_ECORRUPT, ""},
    {MODULE_LINK_ITEMS_AT, 99, 8, HIBLOOM_ECORRUPT, "do not agree"}, /* not full, and followed */
    {MODULE_BITS_AT + SECOND, 3775, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_ERROR_AT + SECOND, HALVED(0), 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_ERROR_AT + SECOND, HALVED(8), 8, HIBLOOM_ENOTSUP, "do not follow"},
    {MODULE_ERROR_AT, HALVED(1), 8, HIBLOOM_ENOTSUP, "do not follow"}, /* of 1 in all */
    {MODULE_ERROR_AT, HALVED(2), 8, HIBLOOM_ENOTSUP, "do not follow"}, /* of 0.5, for which the module takes 0.25 */
    {MODULE_CAPACITY_AT, 99, 8, HIBLOOM_ENOTSUP, "do not follow"},
    {MODULE_CAPACITY_AT + SECOND, 299, 8, HIBLOOM_ENOTSUP, "do not follow"},
    {MODULE_CAPACITY_AT + SECOND, 0, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_CAPACITY_AT + SECOND, 301, 8, HIBLOOM_ECORRUPT, "do not agree"}, /* not full, and followed */
};

static void make_three_links(struct module_dump *dump)
{
    make_grown(dump, 401);
}

static void links_that_the_rule_does_not_give_are_refused(void **state)
{
    assert_altered_refused(grown_headers, COUNT(grown_headers), make_three_links);
}

/* Of a link as large as it says, and as many hashes as its bits an item give. */
static void links_of_another_size_are_refused(void **state)
{
    static const struct {
        uint64_t bytes;
        double per_item;
        uint32_t hashes;
        hibloom_status status;
        const char *words;
    } seconds[] = {
        {480, 0, 0, HIBLOOM_ENOTSUP, "do not follow"}, /* 8 more */
        {UINT64_C(1) << 30, 0, 0, HIBLOOM_ERANGE, "8589934592 bits"},
        {0, 11.5, 8, HIBLOOM_ENOTSUP, "do not follow"}, /* of 9: each of the others would be a wrong "no" */
    };

    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        struct module_dump dump;
        make_three_links(&dump);
        if (seconds[i].bytes != 0) {
            module_dump_set(&dump, MODULE_BYTES_AT + SECOND, seconds[i].bytes, 8);
            module_dump_set(&dump, MODULE_BITS_AT + SECOND, seconds[i].bytes * 8, 8);
        } else {
            uint64_t per_item;
            memcpy(&per_item, &seconds[i].per_item, sizeof per_item);
            module_dump_set(&dump, MODULE_ERROR_AT + 8 + SECOND, per_item, 8);
            module_dump_set(&dump, MODULE_HASHES_AT + SECOND, seconds[i].hashes, 4);
        }
        assert_dump_refused(&dump, seconds[i].status, seconds[i].words);
    }
}

/* One item each: a filter of EXPANSION 1 may have any number. */
static void more_links_than_there_can_be_are_refused(void **state)
{
    struct module_dump dump;

    module_dump_make_growing(&dump, 0.01, 1, 1);
    while (dump.links < 33)
        module_dump_grow(&dump);
    assert_dump_refused(&dump, HIBLOOM_ENOTSUP,
                        "has grown to 33 filters, one behind the other, and 32 can be taken over");
}

/* So that they come to the sum that the header has. */
static void items_that_wrap_are_refused(void **state)
{
    struct module_dump dump;

    make_three_links(&dump);
    module_dump_set(&dump, MODULE_LINK_ITEMS_AT, UINT64_MAX, 8);
    module_dump_set(&dump, MODULE_ITEMS_AT, 300, 8);
    assert_dump_refused(&dump, HIBLOOM_ECORRUPT, "do not agree");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_module_has_added_is_in),
        cmocka_unit_test(a_foreign_header_is_refused),
        cmocka_unit_test(what_no_redis_string_holds_is_refused),
        cmocka_unit_test(a_file_that_was_cut_short_or_goes_on_is_refused),
        cmocka_unit_test(a_torn_dump_is_refused),
        cmocka_unit_test(bits_that_do_not_come_from_so_many_items_are_refused),
        cmocka_unit_test(what_is_no_dump_is_refused),
        cmocka_unit_test(a_name_that_is_taken_is_refused),
        cmocka_unit_test(what_all_links_hold_is_in),
        cmocka_unit_test(the_newest_link_goes_on_or_is_followed),
        cmocka_unit_test(links_that_the_rule_does_not_give_are_refused),
        cmocka_unit_test(links_of_another_size_are_refused),
        cmocka_unit_test(items_that_wrap_are_refused),
        cmocka_unit_test(more_links_than_there_can_be_are_refused),
    };

    return cmocka_run_group_tests_name("unit: import", tests, set_up, tear_down);
}
