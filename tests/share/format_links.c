/* share/format_links.c: growing filters and sliding windows are what docs/format.md says, on a real Redis.
 *
 * format_links.py is a client that was written from that document alone. It and the library make, grow, ask, clear and
 * remove one filter in turns. */
#include "share/format.h"
#include "support/temp_dir.h"

#define GROWING "capacity=60 error=1e-9 growth=2 seed=0123456789abcdef"

enum { PART = 150, PARTS = 3, ALL = PART * PARTS };

static const char *const texts[] = {
    GROWING,
    GROWING " segments=3",
    GROWING " layout=blocked",
    "capacity=60 error=1e-9 growth=3 hash=siphash seed=000102030405060708090a0b0c0d0e0f",
};
enum { TEXTS = sizeof texts / sizeof *texts };

static void start(const char *text)
{
    shared_start(text, "tests/share/format_links.py");
    items_push_uids(&s.items, ALL);
}

static size_t add(hibloom *filter, size_t from, size_t n)
{
    bool is_new[ALL];

    if (filter != NULL)
        assert_ok(hibloom_add_many(filter, s.items.list + from, n, is_new), s.store);
    else
        peer_answers(&s.peer, "add", s.name, s.items.list + from, n, is_new);
    return test_count_true(is_new, n);
}

/* Both say that the first n are in, and no others. */
static void assert_both_hold(hibloom *filter, size_t n)
{
    bool found[ALL];

    assert_ok(hibloom_contains_many(filter, s.items.list, ALL, found), s.store);
    assert_int_equal(test_count_true(found, n), n);
    assert_int_equal(test_count_true(found, ALL), n);
    peer_answers(&s.peer, "read", s.name, s.items.list, ALL, found);
    assert_int_equal(test_count_true(found, n), n);
    assert_int_equal(test_count_true(found, ALL), n);
}

/* Each grows what the other has made, and `stale` has seen none of it. */
static void they_grow_one_filter_in_turns(void **state)
{
    for (int t = 0; t < TEXTS; t++) {
        const int first = t % 2;
        start(texts[t]);
        if (first == 0)
            peer_does("create", s.text, 0);
        hibloom *filter = opened(&s.spec), *stale = opened(NULL);
        long long links = 1;
        for (int part = 0; part < PARTS; part++) {
            hibloom *adds = part % 2 == first ? NULL : filter;
            assert_int_equal(add(adds, (size_t)part * PART, PART), PART);
            assert_int_equal(add(adds == NULL ? filter : NULL, (size_t)part * PART, PART), 0);
            const long long now = 1 + keys_of(s.spec.segments > 1 ? ":+?:0" : ":+?");
            assert_true(now > links || part > 1);
            links = now;
        }
        assert_both_hold(stale, ALL);
        peer_does("drop", NULL, 0);
        assert_int_equal(keys_of("*"), 0);
        hibloom_close(filter);
        hibloom_close(stale);
        shared_end();
    }
}

/* Whoever dies over it, the other takes the link that it has made; its sizes are its maker's. */
static void each_takes_the_link_that_the_other_has_made(void **state)
{
    for (int t = 0; t < 2; t++) {
        char link[TEST_NAME_SIZE + 8], root[TEST_NAME_SIZE + 8];
        start(texts[t]);
        const char *key = s.spec.segments > 1 ? ":0" : "";
        hibloom *filter = opened(&s.spec);
        assert_int_equal(add(filter, 0, 40), 40);
        peer_does("claim", NULL, 0);
        snprintf(link, sizeof link, "%s:+1%s", s.name, key);
        const long long length = test_command(s.redis, "STRLEN %s", link);
        assert_true(length > 0);
        assert_int_equal(add(filter, 40, 60), 60);
        assert_int_equal(test_command(s.redis, "STRLEN %s", link), length);
        assert_both_hold(filter, 100);
        assert_dropped(filter, s.store);
        filter = opened(&s.spec); /* and the other way round: the root has forgotten it, with items in it */
        assert_int_equal(add(filter, 0, 70), 70);
        snprintf(root, sizeof root, "%s%s", s.name, key);
        test_command(s.redis, "SETRANGE %s %lld r", root, test_command(s.redis, "STRLEN %s", root) - 55);
        const long long ours = test_command(s.redis, "STRLEN %s", link);
        bool found[ALL];
        peer_answers(&s.peer, "read", s.name, s.items.list, 70, found);
        assert_int_equal(test_count_true(found, 70), 70);
        assert_int_equal(test_command(s.redis, "STRLEN %s", link), ours);
        assert_both_hold(filter, 70);
        peer_does("drop", NULL, 0);
        hibloom_close(filter);
        shared_end();
    }
}

/* The other one's rule gives its links other sizes: those bits would be wrong in a link of ours. */
static void a_link_of_another_size_is_not_taken_for_one_of_ours(void **state)
{
    for (int t = 0; t < 2; t++) {
        char ours[TEST_NAME_SIZE], *directory = temp_dir_make(), *path = temp_dir_path(directory, "kept");
        hibloom_store *memory;
        hibloom *kept = NULL, *other = NULL, *filter;
        start(texts[t]);
        assert_ok(hibloom_connect(&memory, "memory:", NULL), memory);
        assert_ok(hibloom_open(&kept, memory, "kept", test_text(&s.spec)), memory);
        assert_ok(hibloom_add_many(kept, s.items.list, PART, NULL), memory);
        assert_ok(hibloom_open(&other, s.store, test_name(ours), test_text(&s.spec)), s.store);
        assert_ok(hibloom_add_many(other, s.items.list, PART, NULL), s.store);
        assert_ok(hibloom_merge(kept, other), memory);
        assert_ok(hibloom_save(kept, path), memory);

        peer_does("create", s.text, 0);
        assert_int_equal(add(NULL, 0, PART), PART);
        for (int known = 0; known < 2; known++) { /* by a handle that has yet to hear of the link, and one that has */
            filter = opened(NULL);
            if (known)
                assert_both_hold(filter, PART);
            assert_fails(hibloom_merge(kept, filter), HIBLOOM_ENOTSUP, memory, "another client's");
            assert_status(hibloom_merge(other, filter), HIBLOOM_ENOTSUP, s.store);
            assert_status(hibloom_merge(filter, kept), HIBLOOM_ENOTSUP, s.store);
            assert_status(hibloom_merge(filter, other), HIBLOOM_ENOTSUP, s.store);
            assert_status(hibloom_restore(filter, path), HIBLOOM_ENOTSUP, s.store);
            assert_int_equal(unlink(path), 0);
            assert_status(hibloom_save(filter, path), HIBLOOM_ENOTSUP, s.store);
            assert_int_equal(access(path, F_OK), -1);
            assert_ok(hibloom_save(kept, path), memory);
            assert_both_hold(filter, PART);
            hibloom_close(filter);
        }
        filter = opened(NULL);
        assert_ok(hibloom_replace(filter, ours), s.store); /* which copies nothing */
        assert_dropped(filter, s.store);
        hibloom_close(other);
        test_close(kept, memory);
        free(path);
        temp_dir_remove(directory);
        shared_end();
    }
}

static void what_one_does_to_all_links_the_other_sees(void **state)
{
    for (int t = 0; t < 2; t++) {
        hibloom_info info;
        bool found;
        start(texts[t]);
        const char *key = s.spec.segments > 1 ? ":0" : "";
        hibloom *filter = opened(&s.spec);
        peer_does("expire", "100", 0);
        assert_int_equal(add(filter, 0, PART), PART);
        assert_in_range(test_command(s.redis, "PTTL %s:+1%s", s.name, key), 1, 101000);
        assert_int_equal(add(NULL, PART, PART), PART);
        assert_ok(hibloom_get_info(filter, &info, sizeof info), s.store);
        assert_in_range(info.ttl_ms, 1, 100000);
        assert_in_range(test_command(s.redis, "PTTL %s:+2%s", s.name, key), 1, 101000);
        peer_does("clear", NULL, 0);
        assert_both_hold(filter, 0);
        peer_does("expire", "1000", 0);
        assert_in_range(test_command(s.redis, "PTTL %s:+2%s", s.name, key), 1, 1001000);
        assert_ok(hibloom_expire(filter, 0), s.store);
        assert_int_equal(add(NULL, 0, PART), PART);
        assert_int_equal(test_command(s.redis, "PTTL %s:+2%s", s.name, key), -1);
        assert_ok(hibloom_clear(filter), s.store);
        assert_both_hold(filter, 0);
        peer_does("drop", NULL, 0);
        assert_status(hibloom_contains(filter, "a", 1, &found), HIBLOOM_ENOTFOUND, s.store);
        assert_int_equal(keys_of("*"), 0);
        hibloom_close(filter);
        shared_end();
    }
}

/* What the library adds to them the other one reads, for as long as the library does. */
static void a_sliding_window_is_read(void **state)
{
    static const char *const windows[] = {
        "capacity=300 error=1e-9 window=86400s slices=4 seed=0123456789abcdef",
        "capacity=300 error=1e-9 window=1s slices=1 segments=3 seed=0123456789abcdef"};

    for (int i = 0; i < 2; i++) {
        bool found[PART];
        start(windows[i]);
        hibloom *filter = opened(&s.spec);
        assert_int_equal(add(filter, 0, PART), PART);
        if (i == 0) {
            assert_both_hold(filter, PART);
            peer_does("clear", NULL, 0);
            assert_both_hold(filter, 0);
        } else {
            peer_answers(&s.peer, "read", s.name, s.items.list, PART,
                         found); /* it may take until some of them are too old */
            assert_ok(hibloom_contains_many(filter, s.items.list, PART, found), s.store);
            for (int t = 0; t < 1000 && test_count_true(found, PART) > 0;
                 t++) { /* two seconds, by the server's clock */
                test_sleep_ms(20);
                assert_ok(hibloom_contains_many(filter, s.items.list, PART, found), s.store);
            }
            assert_both_hold(filter, 0);
            assert_int_equal(add(filter, 0, PART), PART);
        }
        peer_does("drop", NULL, 0);
        assert_int_equal(keys_of("*"), 0);
        hibloom_close(filter);
        shared_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_grow_one_filter_in_turns),
        cmocka_unit_test(each_takes_the_link_that_the_other_has_made),
        cmocka_unit_test(a_link_of_another_size_is_not_taken_for_one_of_ours),
        cmocka_unit_test(what_one_does_to_all_links_the_other_sees),
        cmocka_unit_test(a_sliding_window_is_read),
    };

    return cmocka_run_group_tests_name("share links", tests, NULL, NULL);
}
