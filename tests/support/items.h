/* Items by the number, for batches: all of them different, and the same ones
 * for the same prefix. */
#ifndef HIBLOOM_TEST_ITEMS_H
#define HIBLOOM_TEST_ITEMS_H

#include <hibloom/hibloom.h>

/* n > 0 items "prefix0", "prefix1", ...; free them with items_free. */
hibloom_item *items_new(const char *prefix, size_t n);
void items_free(hibloom_item *items);

#endif
