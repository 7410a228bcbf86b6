/* A dump of a filter of RedisBloom that has grown to several links becomes a growing filter, which goes on growing as
 * the module's would; and no other numbers than the module's are believed. */
#include "unit/import.h"
#include "base/store.h"
#include "spec/spec.h"

#include <stdio.h>

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

static unsigned count_in(hibloom *filter, const char *prefix, unsigned n)
{
    unsigned count = 0;
    char item[32];

    for (unsigned i = 0; i < n; i++) {
        bool found = false;
        const int len = snprintf(item, sizeof item, "%s %u", prefix, i);
        assert_ok(hibloom_contains(filter, item, (size_t)len, &found), store);
        count += found;
    }
    return count;
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
        assert_int_equal(count_in(filter, "in", 2000), 2000);
        assert_in_range(count_in(filter, "out", 10000), 1, 120);
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
        unsigned is_new = 0;
        make_grown(&dump, counts[i]);
        assert_int_equal(dump.links, counts[i] > 400 ? 3 : 2);
        snprintf(name, sizeof name, "full %u", counts[i]);
        hibloom *filter = import(name, &dump);
        for (unsigned k = 0; k < 3000; k++) {
            char item[32];
            bool flag;
            const int len = snprintf(item, sizeof item, "later %u", k);
            assert_ok(hibloom_add(filter, item, (size_t)len, &flag), store);
            is_new += flag;
        }
        assert_in_range(is_new, 2960, 3000);
        assert_int_equal(count_in(filter, "in", counts[i]), counts[i]);
        assert_int_equal(count_in(filter, "later", 3000), 3000);
        assert_in_range(count_in(filter, "out", 10000), 1, 120);
        assert_int_equal(links_of(filter, &error_rate), 4); /* for 100, 300, 900, 2700 */
        hibloom_close(filter);
        module_dump_free(&dump);
    }
}

/* ---- What is refused ------------------------------------------------------------------ */

/* Of the header of three links, of which the second begins at SECOND. */
#define SECOND MODULE_LINK
#define HALVED(times) (UINT64_C(0x3ff0000000000000) - ((uint64_t)(times) << 52)) /* 1, as a double */

static const struct altered grown_headers[] = {
    {MODULE_GROWTH_AT, 0, 4, HIBLOOM_ENOTSUP, "EXPANSION 0"},
    {MODULE_GROWTH_AT, 1, 4, HIBLOOM_ENOTSUP, "EXPANSION 1, and with 2 to 16"},
    {MODULE_GROWTH_AT, 17, 4, HIBLOOM_ENOTSUP, "EXPANSION 17"},
    {MODULE_GROWTH_AT, UINT32_MAX, 4, HIBLOOM_ENOTSUP, "EXPANSION 4294967295"},
    {MODULE_GROWTH_AT, 2, 4, HIBLOOM_ENOTSUP, "do not follow"},
    {MODULE_OPTIONS_AT, 13, 4, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_OPTIONS_AT, 1, 4, HIBLOOM_ENOTSUP, "hash of 32 bits"},
    {MODULE_N2_AT + SECOND, 14, 1, HIBLOOM_ENOTSUP, "power of two"},
    {MODULE_LINKS_AT, 2, 4, HIBLOOM_ECORRUPT, "length"},
    {MODULE_LINKS_AT, 4, 4, HIBLOOM_ECORRUPT, ""},
    {MODULE_ITEMS_AT, 402, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_LINK_ITEMS_AT, 99, 8, HIBLOOM_ECORRUPT, "do not agree"}, /* not full, and followed */
    {MODULE_BYTES_AT + SECOND, 473, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_BITS_AT + SECOND, 3775, 8, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_HASHES_AT + SECOND, 8, 4, HIBLOOM_ECORRUPT, "do not agree"},
    {MODULE_ERROR_AT + 8 + SECOND, UINT64_MAX, 8, HIBLOOM_ECORRUPT, "do not agree"},
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
    assert_altered_refused(grown_headers, sizeof grown_headers / sizeof *grown_headers, make_three_links);
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
        module_dump_write(&dump, path);
        assert_refused(seconds[i].status, seconds[i].words);
        module_dump_free(&dump);
    }
}

/* One item each: a filter of EXPANSION 1 may have any number. */
static void more_links_than_there_can_be_are_refused(void **state)
{
    struct module_dump dump;

    module_dump_make_growing(&dump, 0.01, 1, 1);
    while (dump.links < 33)
        module_dump_grow(&dump);
    module_dump_write(&dump, path);
    assert_refused(HIBLOOM_ENOTSUP, "has grown to 33 filters, one behind the other, and 32 can be taken over");
    module_dump_free(&dump);
}

/* So that they come to the sum that the header has. */
static void items_that_wrap_are_refused(void **state)
{
    struct module_dump dump;

    make_three_links(&dump);
    module_dump_set(&dump, MODULE_LINK_ITEMS_AT, UINT64_MAX, 8);
    module_dump_set(&dump, MODULE_ITEMS_AT, 300, 8);
    module_dump_write(&dump, path);
    assert_refused(HIBLOOM_ECORRUPT, "do not agree");
    module_dump_free(&dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_all_links_hold_is_in),
        cmocka_unit_test(the_newest_link_goes_on_or_is_followed),
        cmocka_unit_test(links_that_the_rule_does_not_give_are_refused),
        cmocka_unit_test(links_of_another_size_are_refused),
        cmocka_unit_test(items_that_wrap_are_refused),
        cmocka_unit_test(more_links_than_there_can_be_are_refused),
    };

    return cmocka_run_group_tests_name("import: several links", tests, set_up, tear_down);
}
