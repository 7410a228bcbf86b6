/* Growing filters as a whole: their links are found and made, and their bits read, merged, saved and loaded. */
#include "support/backend.h"
#include "support/items.h"
#include "support/pieces.h"
#include "support/temp_dir.h"
#include "spec/spec.h"
#include "base/store.h"

#include <stdlib.h>
#include <string.h>

#define SMALL "capacity=100 error=1e-9 growth=2"

enum { MANY = 500 }; /* three links */

static hibloom *reopen(struct backend *b, const char *name)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, b->store, name, NULL), b->store);
    return filter;
}

/* ---- Links, and their pieces ------------------------------------------------------- */

/* What is merged into the newest link is counted before the next item is added there. */
static void a_piece_goes_to_its_link(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL), *stale = reopen(b, name);
    struct spec last;
    hibloom_info info;

    assert_int_equal(links_reach(filter, 3), 3);
    assert_int_equal(items_add(filter, filter->store, "x", 1), 1);
    assert_int_equal(links_reach(stale, 1), 3);
    assert_ok(spec_link(&last, &filter->spec, 2, 1), NULL);
    const struct piece piece = {.link = 2, .len = spec_bitmap_bytes(&last)};
    unsigned char *bits = malloc(piece.len), *back = malloc(piece.len);
    memset(bits, 0xff, piece.len - 1); /* full */
    bits[piece.len - 1] = 0;
    piece_merge(filter, &piece, bits);
    piece_read(stale, &piece, back);
    for (size_t i = 0; i + 1 < piece.len; i++)
        assert_int_equal(back[i], 0xff);
    piece_read(stale, &(struct piece){.link = 1, .len = 1}, back);
    assert_int_equal(back[0], 0);
    (void)items_add(filter, filter->store, "y", 1);
    assert_int_equal(links_reach(filter, 1), 4);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
    assert_int_equal(info.keys, 4);
    free(bits);
    free(back);
    hibloom_close(stale);
    backend_drop(b, filter);
}

/* The last one's sizes take long to compute. */
static const char *const texts[] = {SMALL, "capacity=50 error=1e-9 growth=4 hash=siphash", SMALL " segments=3",
                                    "capacity=100 error=1e-9 growth=3 layout=blocked"};
enum { TEXTS = sizeof texts / sizeof *texts };

static size_t count_texts(void)
{
    return test_is_slow() ? 2 : TEXTS;
}

static hibloom_info info_of(hibloom *filter)
{
    hibloom_info info;

    assert_ok(hibloom_get_info(filter, &info, sizeof info), filter->store);
    return info;
}

static hibloom *same_spec(hibloom_store *store, const char *name, const hibloom *as)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, store, name, hibloom_secret_spec_of(as)), store);
    return filter;
}

static void assert_same_bits(hibloom *one, hibloom *other)
{
    const hibloom_info a = info_of(one), b = info_of(other);

    assert_true(a.bits_set > 0);
    assert_int_equal(a.bits_set, b.bits_set);
    assert_true(a.estimated_error_rate == b.estimated_error_rate);
}

/* ---- Files -------------------------------------------------------------------------- */

static void it_comes_back_from_its_file(void **state)
{
    struct backend *b = *state;
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file");
    char text[HIBLOOM_TEXT_SIZE];

    for (size_t i = 0; i < count_texts(); i++) {
        char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE];
        hibloom *filter = backend_open(b, test_name(name), texts[i]), *stale = reopen(b, name), *loaded;
        assert_ok(hibloom_save(filter, path), b->store); /* of one link, empty */
        items_add(filter, filter->store, "x", MANY);
        assert_ok(hibloom_restore(filter, path), b->store); /* which is a part of it */
        assert_ok(hibloom_save(stale, path), b->store);     /* that has not seen it grow */
        assert_ok(hibloom_file_spec(path, text, sizeof text), NULL);
        assert_string_equal(text, hibloom_secret_spec_of(filter));
        assert_ok(hibloom_open(&loaded, b->store, test_name(other), text), b->store);
        items_add(loaded, loaded->store, "y", 120);
        assert_ok(hibloom_restore(loaded, path), b->store);
        assert_int_equal(items_count(loaded, loaded->store, "x", MANY), MANY);
        assert_int_equal(items_count(loaded, loaded->store, "y", 120), 120);
        assert_ok(hibloom_clear(loaded), b->store);
        assert_ok(hibloom_restore(loaded, path), b->store);
        assert_same_bits(loaded, filter);
        assert_int_equal(items_add(loaded, loaded->store, "x", MANY), 0);
        assert_int_equal(items_add(loaded, loaded->store, "y", MANY), MANY);
        hibloom_close(stale);
        backend_drop(b, loaded);
        backend_drop(b, filter);
    }
    free(path);
    temp_dir_remove(dir);
}

/* ---- Refused --------------------------------------------------------------------------- */

static void what_they_have_in_common_is_refused_in_words(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL), *same = same_spec(b->store, test_name(other), filter);
    hibloom *plain = backend_open(b, test_name(name), "capacity=100 error=1e-9");
    hibloom_comparison comparison;

    assert_status(hibloom_compare(filter, same, &comparison, sizeof comparison), HIBLOOM_ENOTSUP, b->store);
    assert_non_null(strstr(hibloom_store_error(b->store), "cannot be counted"));
    assert_status(hibloom_merge(filter, plain), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_merge(plain, filter), HIBLOOM_EMISMATCH, b->store);
    backend_drop(b, plain);
    backend_drop(b, same);
    backend_drop(b, filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(a_piece_goes_to_its_link),
        ON_ALL(it_comes_back_from_its_file),
        ON_ALL(what_they_have_in_common_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
