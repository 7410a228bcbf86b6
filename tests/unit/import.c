/* A dump of RedisBloom in a file, as redis-cli prints it: what the module has said is in is in, and no dump
 * that is torn, old or none at all becomes a filter. */
#include "unit/import.h"
#include "base/store.h"
#include "spec/spec.h"

#include <stdio.h>
#include <string.h>

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
    assert_altered_refused(headers, sizeof headers / sizeof *headers, make_known);
}

static void what_no_redis_string_holds_is_refused(void **state)
{
    struct module_dump dump;

    module_dump_make(&dump, 0.01, 1000, true);
    module_dump_set(&dump, MODULE_BYTES_AT, UINT64_C(1) << 40, 8);
    module_dump_set(&dump, MODULE_BITS_AT, UINT64_C(1) << 43, 8);
    module_dump_write(&dump, path);
    assert_refused(HIBLOOM_ERANGE, "8796093022208 bits");
    module_dump_free(&dump);
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
    module_dump_write(&dump, path);
    assert_refused(HIBLOOM_ECORRUPT, "do not come from as many items");
    module_dump_free(&dump);
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
    assert_status(hibloom_import_file(&filter, store, "taken", path), HIBLOOM_EMISMATCH, store);
    assert_non_null(strstr(hibloom_store_error(store), "is there already"));
    memset(name, 'n', HIBLOOM_NAME_MAX);
    name[HIBLOOM_NAME_MAX] = '\0';
    assert_status(hibloom_import_file(&filter, store, name, path), HIBLOOM_ERANGE, store);
    assert_status(hibloom_import_file(&filter, store, "}", path), HIBLOOM_EINVAL, store);
    assert_status(hibloom_import(&filter, store, "other", store, "seen"), HIBLOOM_ENOTSUP, store);
    assert_null(filter);
    hibloom_close(taken);
    module_dump_free(&dump);
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
    };

    return cmocka_run_group_tests_name("unit: import", tests, set_up, tear_down);
}
