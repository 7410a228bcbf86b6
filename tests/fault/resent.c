/* An add that is sent again, or that had to wait for a connection, while another
 * filter took the name: it asks first, and leaves that as it is, byte for byte. */
#include "support/items.h"
#include "support/proxied.h"
#include "support/subject.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"

enum { RETRY_MS = 5000, FEW = 20, MANY = 3000, KEYS_MAX = 4 };

static hibloom_item *items;
static bool is_new[MANY];
static bool armed; /* the next connection, or line of the log, is the moment */

static int set_up(void **state)
{
    items = items_new("fresh", MANY);
    return proxied_set_up(state);
}

static int tear_down(void **state)
{
    items_free(items);
    return proxied_tear_down(state);
}

/* ---- The filter that takes the name ----------------------------------------------------- */

static redisReply *values[KEYS_MAX]; /* as they were in that moment */
static size_t count, first;          /* of the keys; only those from the first on are replaced */

static void key_name(char key[32], const char *name, size_t i)
{
    if (count == 1)
        snprintf(key, 32, "%s", name);
    else
        snprintf(key, 32, "%s:%zu", name, i);
}

static void make_other(const char *spec)
{
    hibloom_store *direct = test_connect(redis_server_uri(server), NULL);
    hibloom *other = test_open(direct, "other", spec);
    hibloom_info info;

    assert_ok(hibloom_add(other, "other", 5, NULL), direct);
    assert_ok(hibloom_get_info(other, &info), direct);
    count = info.keys;
    assert_in_range(count, 1, KEYS_MAX);
    hibloom_close(other);
    hibloom_store_free(direct);
}

static void take_the_name(void)
{
    char from[32], to[32];

    armed = false;
    for (size_t i = first; i < count; i++) {
        key_name(from, "other", i);
        key_name(to, "seen", i);
        test_command(redis, "RENAME %s %s", from, to);
        values[i] = redisCommand(redis, "GET %s", to);
        assert_non_null(values[i]);
    }
    proxy_answer(proxy, NULL);
}

static void assert_untouched(const char *what)
{
    char key[32];

    for (size_t i = first; i < count; i++) {
        key_name(key, "seen", i);
        redisReply *now = redisCommand(redis, "GET %s", key);
        if (now->len != values[i]->len || memcmp(now->str, values[i]->str, now->len) != 0)
            fail_msg("%s: %s has been written to", what, key);
        freeReplyObject(now);
        freeReplyObject(values[i]);
    }
    assert_int_equal(test_command(redis, "DBSIZE"), count + first);
}

static void on_connect(struct redisContext *context, void *data)
{
    if (armed && data != NULL)
        take_the_name();
}

/* What was sent with it has been carried out by then. */
static void on_log(hibloom_log_level level, const char *line, void *data)
{
    if (!armed || strstr(line, "trying again") == NULL)
        return;
    test_sleep_ms(100);
    take_the_name();
}

/* ---- What keeps the add --------------------------------------------------------------------- */

static void cut_at_once(void)
{
    proxy_cut(proxy, PROXY_REQUESTS, 0);
}

/* Behind a part that is carried out, and is the old filter's. */
static void cut_later(void)
{
    proxy_cut(proxy, PROXY_REQUESTS, 600);
}

/* Of an add that looks first: in what it adds. */
static void cut_in_the_middle(void)
{
    proxy_cut(proxy, PROXY_REQUESTS, 60000);
}

static void refuse(void)
{
    proxy_answer(proxy, LOADING);
}

/* While that waits, the call goes on to its next items: they wait with it. */
static void refuse_a_part(void)
{
    proxy_replace(proxy, 1, 1, LOADING);
}

/* What is sent goes to a new connection the first time. */
static void hang_up(void)
{
    redisContext *own = redis_server_connect(server);

    test_command(own, "CLIENT KILL TYPE normal SKIPME yes");
    redisFree(own);
    redisFree(redis);
    redis = redis_server_connect(server);
    proxy_wait_idle(proxy);
    test_sleep_ms(50); /* and until the library's end of it knows */
}

static const struct obstacle {
    const char *name;
    void (*begin)(void);
    bool connects, needs_retry, needs_many;
} obstacles[] = {
    {.name = "cut at once", .begin = cut_at_once, .connects = true, .needs_retry = true},
    {.name = "cut later", .begin = cut_later, .connects = true, .needs_retry = true},
    {.name = "cut in the middle",
     .begin = cut_in_the_middle,
     .connects = true,
     .needs_retry = true,
     .needs_many = true},
    {.name = "refused for now", .begin = refuse, .needs_retry = true},
    {.name = "refused in part", .begin = refuse_a_part, .needs_retry = true},
    {.name = "connected anew", .begin = hang_up, .connects = true},
};
enum { OBSTACLES = sizeof obstacles / sizeof *obstacles };

static void add_while_replaced(const struct obstacle *obstacle, const struct variant *variant, size_t n, bool exact,
                               bool all)
{
    const hibloom_connect_options options = {.commands = variant->commands,
                                             .size = sizeof options,
                                             .retry_ms = obstacle->needs_retry ? RETRY_MS : 0,
                                             .on_connect = on_connect,
                                             .on_log = on_log,
                                             .data = obstacle->connects ? &armed : NULL};
    hibloom_store *store = test_connect(proxy_uri(proxy), &options);
    hibloom *old = test_open(store, "seen", variant->spec);
    char what[100];

    make_other(variant->spec);
    first = all ? 0 : count - 1;
    assert_ok(hibloom_add(old, "first", 5, NULL), store); /* so the last good guard is a new one */
    obstacle->begin();
    armed = true;
    const hibloom_status status = hibloom_add_many(old, items, n, exact ? is_new : NULL);
    snprintf(what, sizeof what, "%s, %s, %zu items%s", obstacle->name, variant->name, n, exact ? ", is_new" : "");
    const hibloom_status expected = first == 0 ? HIBLOOM_EMISMATCH : HIBLOOM_ECORRUPT;
    if (armed || status != expected)
        print_error("%s:\n", what);
    assert_false(armed);
    assert_status(status, expected, store);
    assert_untouched(what);
    hibloom_close(old);
    hibloom_store_free(store);
    proxy_heal(proxy);
    (void)served_leave_nothing(NULL);
}

static void an_add_that_had_to_wait_touches_nothing_of_what_took_the_name(void **state)
{
    (void)state;
    for (int o = 0; o < OBSTACLES; o++)
        for (int v = 0; v < VARIANTS; v++)
            for (int n = obstacles[o].needs_many ? 2 : 0; n < 4; n++)
                /* Not where the root alone is asked: for many items, or all keys at once; and a part may be another key's. */
                for (int all = n > 0 || obstacles[o].begin == refuse_a_part; all < 2; all++)
                    add_while_replaced(&obstacles[o], &variants[v], n < 2 ? FEW : MANY, n % 2, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_add_that_had_to_wait_touches_nothing_of_what_took_the_name),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
