/* What the tests of filters of several segments run on. See segments.h. */
#include "segments.h"

#include "spec/spec.h"
#include "base/store.h"
#include "spec/positions.h"

hibloom_store *stores[2];

int segments_set_up(void **state)
{
    (void)served_set_up(state);
    for (int i = 0; i < 2; i++)
        stores[i] = test_connect(with_options(redis_server_uri(server), "commands=%s", i == 0 ? "setbit" : "bitfield"),
                                 NULL);
    return 0;
}

int segments_tear_down(void **state)
{
    hibloom_store_free(stores[0]);
    hibloom_store_free(stores[1]);
    return served_tear_down(state);
}

int segments_leave_nothing(void **state)
{
    test_command(redis, "CONFIG SET maxmemory 0");
    test_command(redis, "FLUSHALL");
    test_command(redis, "CONFIG SET proto-max-bulk-len 512mb");
    return 0;
}

long long keys_stored(void)
{
    return test_command(redis, "DBSIZE");
}

void segments_drop(hibloom *filter)
{
    assert_dropped(filter, stores[0]);
    assert_int_equal(keys_stored(), 0);
}

uint32_t segment_of(const hibloom *filter, const hibloom_item *item)
{
    struct position positions[HIBLOOM_HASHES_MAX];

    assert_ok(positions_of(&filter->spec, item->data, item->len, positions), NULL);
    for (uint32_t i = 1; i < filter->spec.hashes; i++)
        assert_int_equal(positions[i].key, positions[0].key);
    return positions[0].key;
}
