/* scaling.c: a filter of RedisBloom that has grown is taken over from one who knows no hash of ours.
 *
 * The module is not in Debian. So the other side is scaling.py, which fills a filter by the module's formulas, as
 * docs/presets.md has them, and says what of some other items would be found. The filter that is made of its
 * dump finds all that is in, and of the others as many: so each bit of each link is where it belongs. */
#include "support/backend.h"
#include "support/items.h"
#include "support/temp_dir.h"
#include "base/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned n_others(void)
{
    return test_is_slow() ? 500 : 4000;
}

static const struct scaling {
    uint64_t capacity;
    const char *error;
    unsigned growth, items, links; /* links: that the module has made of so many items */
} scalings[] = {
    {100, "0.01", 3, 2000, 4}, /* 1152, 3776, 12544 and 41472 bits */
    {100, "0.02", 2, 700, 3},  /* which are full, but for wrong "in" */
    {3, "0.5", 16, 800, 3},    /* 0.25, to the module */
    {50, "0.001", 2, 1500, 5},
};

/* Writes the dump; how many links it has, and how many of the others are in. */
static void run_peer(const struct scaling *scaling, const char *path, unsigned *links, unsigned *is_new,
                     unsigned *wrong)
{
    char command[512];

    snprintf(command, sizeof command, "/usr/bin/python3 -B tests/share/scaling.py %s %" PRIu64 " %s %u %u %u", path,
             scaling->capacity, scaling->error, scaling->growth, scaling->items, n_others());
    FILE *peer = popen(command, "r"); /* NOLINT(cert-env33-c): all of it is this file's */
    assert_non_null(peer);
    assert_int_equal(fscanf(peer, "%u %u %u", links, is_new, wrong), 3);
    assert_int_equal(pclose(peer), 0);
}

/* Those that come later go on where the module has stopped, and make further links. */
static void add_more(struct backend *b, hibloom *filter, const struct scaling *scaling, unsigned links)
{
    const unsigned n = scaling->items + scaling->items / 2;
    hibloom_item *items = items_new("later ", n);
    hibloom_info info;

    assert_ok(hibloom_add_many(filter, items, n, NULL), b->store);
    items_free(items);
    assert_int_equal(items_count(filter, b->store, "later ", n), n);
    assert_int_equal(items_count(filter, b->store, "item ", scaling->items), scaling->items);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_true(info.keys > links);
    const double error = strtod(scaling->error, NULL), expected = (error < 0.25 ? error : 0.25) * n_others();
    const size_t wrong = items_count(filter, b->store, "other ", n_others());
    assert_true((double)wrong < 1.3 * expected + 10); /* its links are together below it */
}

static void what_the_module_s_formulas_have_filled_is_taken_over(void **state)
{
    struct backend *b = *state;
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "dump"), name[TEST_NAME_SIZE];

    for (size_t i = 0; i < sizeof scalings / sizeof *scalings; i++) {
        const struct scaling *scaling = &scalings[i];
        unsigned links, is_new, wrong;
        hibloom *filter = NULL;
        hibloom_info info;
        run_peer(scaling, path, &links, &is_new, &wrong);
        print_message("capacity %" PRIu64 ", error %s, growth %u: %u new, %u links, %u of %u others in\n",
                      scaling->capacity, scaling->error, scaling->growth, is_new, links, wrong, n_others());
        assert_int_equal(links, scaling->links);
        assert_ok(hibloom_import_file(&filter, b->store, test_name(name), path), b->store);
        assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
        assert_int_equal(info.keys, links);
        assert_int_equal(filter->spec.growth, scaling->growth);
        assert_int_equal(items_count(filter, b->store, "item ", scaling->items), scaling->items);
        assert_int_equal(items_count(filter, b->store, "other ", n_others()), wrong);
        add_more(b, filter, scaling, links);
        backend_drop(b, filter);
    }
    free(path);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(what_the_module_s_formulas_have_filled_is_taken_over, memory),
        ON(what_the_module_s_formulas_have_filled_is_taken_over, bitfield),
    };

    return cmocka_run_group_tests_name("scaling", tests, NULL, NULL);
}
