/* The stores that what a filter does is tested on. See backend.h. */
#include "backend.h"

#include <hiredis/hiredis.h>

struct backend backend_memory = {.redis = false};
struct backend backend_setbit = {.redis = true, .commands = "setbit"};
struct backend backend_bitfield = {.redis = true, .commands = "bitfield"};

int backend_set_up(void **state)
{
    struct backend *b = *state;

    if (b->redis) {
        b->store = test_connect(with_options(test_uri(), "commands=%s", b->commands), NULL);
        b->outside = test_redis();
    } else {
        assert_ok(hibloom_connect(&b->store, "memory:", NULL), NULL);
    }
    return 0;
}

int backend_tear_down(void **state)
{
    struct backend *b = *state;

    hibloom_store_free(b->store);
    if (b->outside != NULL)
        redisFree(b->outside);
    b->outside = NULL;
    return 0;
}

hibloom *backend_open(struct backend *b, const char *name, const char *text)
{
    return test_open(b->store, name, text);
}

void backend_drop(struct backend *b, hibloom *filter)
{
    assert_dropped(filter, b->store);
}

bool backend_contains(struct backend *b, hibloom *filter, const void *item, size_t len)
{
    bool found;

    assert_ok(hibloom_contains(filter, item, len, &found), b->store);
    return found;
}

bool backend_add(struct backend *b, hibloom *filter, const void *item, size_t len)
{
    bool is_new;

    assert_ok(hibloom_add(filter, item, len, &is_new), b->store);
    return is_new;
}
