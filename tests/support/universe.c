/* universe.c: the items of a random test. See universe.h. */
#include "universe.h"

/* Of a hundred short ones and many of any bytes; the empty one is the first. */
void universe_make(struct universe *universe, struct test_random *random)
{
    for (size_t i = 0; i < UNIVERSE_ITEMS; i++) {
        const size_t len = i == 0 ? 0 : 1 + (size_t)test_random_below(random, i < 100 ? 3 : UNIVERSE_ITEM_MAX);
        test_random_bytes(random, universe->bytes[i], len);
        universe->items[i] = (hibloom_item){universe->bytes[i], len};
    }
}

hibloom_item universe_item(const struct universe *universe, struct test_random *random)
{
    return universe->items[test_random_below(random, test_random_below(random, 2) == 0 ? 100 : UNIVERSE_ITEMS)];
}

/* Some come twice or more often, next to each other or not. */
size_t universe_choose(struct universe *universe, struct test_random *random)
{
    const size_t n = (size_t)test_random_below(random, test_random_below(random, 6) == 0 ? UNIVERSE_BATCH : 60);
    const uint64_t among = 1 + test_random_below(random, test_random_below(random, 3) == 0 ? 20 : UNIVERSE_ITEMS);

    for (size_t i = 0; i < n; i++)
        universe->batch[i] = i > 0 && test_random_below(random, 8) == 0
                                 ? universe->batch[i - 1]
                                 : universe->items[test_random_below(random, among)];
    return n;
}
