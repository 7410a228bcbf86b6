/* Growing filters as a whole: their links are found and made, and their bits read and merged. */
#include "support/backend.h"
#include "support/items.h"
#include "base/store.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

#define SMALL "capacity=100 error=1e-9 growth=2"

static hibloom *reopen(struct backend *b, const char *name)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, b->store, name, NULL), b->store);
    return filter;
}

static uint32_t links_of(hibloom *filter, uint32_t at_least)
{
    uint32_t links = 0;

    assert_ok(filter->store->class->links(filter, at_least, &links), filter->store);
    return links;
}

static size_t count_yes(hibloom *filter, const char *prefix, size_t n,
                        hibloom_status (*call)(hibloom *, const hibloom_item *, size_t n, bool *))
{
    hibloom_item *items = items_new(prefix, n);
    bool *answers = calloc(n, sizeof *answers);

    assert_ok(call(filter, items, n, answers), filter->store);
    const size_t count = test_count_true(answers, n);
    free(answers);
    items_free(items);
    return count;
}

static size_t add_items(hibloom *filter, const char *prefix, size_t n)
{
    return count_yes(filter, prefix, n, hibloom_add_many);
}

static size_t count_found(hibloom *filter, const char *prefix, size_t n)
{
    return count_yes(filter, prefix, n, hibloom_contains_many);
}

/* ---- Links, and their pieces ------------------------------------------------------- */

static void links_are_found_and_made(void **state)
{
    static const char *const texts[] = {SMALL, SMALL " segments=3", "capacity=2000 error=1e-9"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (size_t i = 0; i < 3; i++) {
        hibloom *filter = backend_open(b, test_name(name), texts[i]), *stale = reopen(b, name);
        const uint32_t more = i < 2 ? 4 : 1;
        assert_int_equal(links_of(filter, 0), 1);
        assert_int_equal(links_of(filter, more), more);
        assert_int_equal(links_of(filter, 1), more);
        assert_int_equal(links_of(stale, 2), more);
        assert_int_equal(add_items(filter, "x", 2000), 2000);
        assert_int_equal(count_found(stale, "x", 2000), 2000);
        assert_true(i == 2 || links_of(stale, 1) > more);
        hibloom_close(stale);
        backend_drop(b, filter);
    }
}

/* What is merged into the newest link is counted before the next item is added there. */
static void a_piece_goes_to_its_link(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL), *stale = reopen(b, name);
    hibloom_spec last;
    hibloom_info info;

    assert_int_equal(links_of(filter, 3), 3);
    assert_int_equal(add_items(filter, "x", 1), 1);
    assert_int_equal(links_of(stale, 1), 3);
    assert_ok(spec_link(&last, &filter->spec, 2, 1), NULL);
    const struct piece piece = {.link = 2, .len = spec_bitmap_bytes(&last)};
    unsigned char *bits = malloc(piece.len), *back = malloc(piece.len);
    memset(bits, 0xff, piece.len - 1); /* full */
    bits[piece.len - 1] = 0;
    assert_ok(b->store->class->merge(filter, &piece, bits), b->store);
    assert_ok(b->store->class->read(stale, &piece, back), b->store);
    for (size_t i = 0; i + 1 < piece.len; i++)
        assert_int_equal(back[i], 0xff);
    assert_ok(b->store->class->read(stale, &(struct piece){.link = 1, .len = 1}, back), b->store);
    assert_int_equal(back[0], 0);
    (void)add_items(filter, "y", 1);
    assert_int_equal(links_of(filter, 1), 4);
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_int_equal(info.keys, 4);
    free(bits);
    free(back);
    hibloom_close(stale);
    backend_drop(b, filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(links_are_found_and_made),
        ON_ALL(a_piece_goes_to_its_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
