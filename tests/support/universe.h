/* universe.h: the items of a random test: few enough that some come again and again, at
 * random among them the empty one, short ones and ones of any bytes. */
#ifndef HIBLOOM_TEST_UNIVERSE_H
#define HIBLOOM_TEST_UNIVERSE_H

#include "test.h"

enum { UNIVERSE_ITEMS = 3000, UNIVERSE_ITEM_MAX = 64, UNIVERSE_BATCH = 2000 };

struct universe {
    unsigned char bytes[UNIVERSE_ITEMS][UNIVERSE_ITEM_MAX];
    hibloom_item items[UNIVERSE_ITEMS];
    hibloom_item batch[UNIVERSE_BATCH]; /* the one that was chosen last */
};

void universe_make(struct universe *, struct test_random *);
hibloom_item universe_item(const struct universe *, struct test_random *);

/* Fills the batch anew; how many it has, perhaps none. */
size_t universe_choose(struct universe *, struct test_random *);

#endif
