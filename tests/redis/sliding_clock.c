/* Two add one item to a window, while the clock of the server steps, also back: it is new to one of them. */
#include "support/proxied.h"
#include "support/test.h"
#include "support/stepped.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "slides"

enum { PERIOD_S = 500, START = 4000000 };

static struct stepped_clock *server_clock;
static hibloom_store *store;

/* The clock shows so many seconds after the beginning of period START; the tests take less time than a period. */
static void set_clock(int64_t seconds)
{
    const int64_t now = (int64_t)stepped_now_us(server_clock) - stepped_ahead(server_clock) * 1000;

    stepped_set(server_clock, ((int64_t)START * PERIOD_S + seconds) * 1000 - now / 1000);
}

static bool add(hibloom *filter, const char *item)
{
    bool is_new;

    assert_ok(hibloom_add(filter, item, strlen(item), &is_new), store);
    return is_new;
}

static bool has(hibloom *filter, const char *item)
{
    bool found;

    assert_ok(hibloom_contains(filter, item, strlen(item), &found), store);
    return found;
}

static void drop(hibloom *filter)
{
    assert_dropped(filter, store);
}

#define WIDE "capacity=2000 error=1e-6 window=1000 slices=2"

enum { MANY = 200 }; /* several scripts */

/* Where the clock stands, in seconds, as one call begins; while the other one goes by; as the first one goes on. */
struct crossing {
    int first, between, after;
};

/* The call of which the proxy holds a part back. */
struct held_add {
    hibloom_store *store;
    hibloom *filter;
    hibloom_item items[MANY];
    size_t n;
    bool is_new[MANY];
    atomic_bool over;
};

static void *add_held(void *of)
{
    struct held_add *held = of;

    assert_ok(hibloom_add_many(held->filter, held->items, held->n, held->is_new), held->store);
    held->over = true;
    return NULL;
}

/* The proxy holds the call after so many bytes of commands; meanwhile another process adds the last item. Gives the
 * bytes of commands of the call. */
static uint64_t cross(struct held_add *held, const char *text, const struct crossing *crossing, uint64_t at)
{
    char(*words)[16] = calloc(held->n, sizeof *words);
    pthread_t thread;

    set_clock(10);
    hibloom *other = test_open(store, NAME, text);
    held->filter = test_open(held->store, NAME, text);
    for (size_t i = 0; i < held->n; i++)
        held->items[i] = (hibloom_item){words[i], (size_t)snprintf(words[i], sizeof *words, "item %04zu", i)};
    held->over = false;
    const hibloom_item *last = &held->items[held->n - 1];
    (void)add(other, "first");
    assert_ok(hibloom_add(held->filter, "other", 5, &(bool){false}), held->store);
    set_clock(crossing->first);
    proxy_mark(proxy);
    proxy_hold(proxy, PROXY_REQUESTS, at);
    assert_int_equal(pthread_create(&thread, NULL, add_held, held), 0);
    while (proxy_bytes(proxy, PROXY_REQUESTS) < at && !held->over)
        test_sleep_ms(1);
    set_clock(crossing->between);
    const bool other_is_new = add(other, last->data);
    set_clock(crossing->after);
    proxy_heal(proxy);
    pthread_join(thread, NULL);
    if (other_is_new == held->is_new[held->n - 1])
        fail_msg("%s, clock at %d, %d, %d, held after %llu bytes: %s", text, crossing->first, crossing->between,
                 crossing->after, (unsigned long long)at, other_is_new ? "new to both" : "new to nobody");
    assert_true(has(other, last->data));
    const uint64_t bytes = proxy_bytes(proxy, PROXY_REQUESTS);
    hibloom_close(held->filter);
    drop(other);
    free(words);
    return bytes;
}

/* Wherever the call of one of them is when the other one's goes by. */
static void an_item_is_new_to_one_however_the_clock_steps_while_it_is_added(void **state)
{
    static const struct crossing crossings[] = {
        {10, PERIOD_S + 10, 10},
        {PERIOD_S + 10, 10, PERIOD_S + 10},
        {2 * PERIOD_S + 10, 10, PERIOD_S + 10},
    };
    const char *texts[] = {WIDE, WIDE " segments=3"};
    struct held_add held = {.store = test_connect(proxy_uri(proxy), NULL)};

    for (size_t c = 0; c < sizeof crossings / sizeof *crossings; c++)
        for (size_t t = 0; t < 2; t++)
            for (held.n = 1; held.n <= MANY; held.n += MANY - 1) {
                const uint64_t places = 8;
                const uint64_t bytes = cross(&held, texts[t], &crossings[c], UINT64_MAX);
                for (uint64_t place = 1; place < places; place++)
                    (void)cross(&held, texts[t], &crossings[c], bytes * place / places);
            }
    hibloom_store_free(held.store);
}

static int set_up(void **state)
{
    server = stepped_server_start(&server_clock, redis_server_start_tcp);
    (void)proxied_set_up(state);
    store = test_connect(redis_server_uri(server), NULL);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    (void)proxied_tear_down(state);
    stepped_free(server_clock);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_item_is_new_to_one_however_the_clock_steps_while_it_is_added,
                                  served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
