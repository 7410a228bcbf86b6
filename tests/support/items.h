/* Items by the number, for batches: all of them different, and the same ones for the same prefix. */
#ifndef HIBLOOM_TEST_ITEMS_H
#define HIBLOOM_TEST_ITEMS_H

#include <hibloom/hibloom.h>

/* n > 0 items "prefix0", "prefix1", ...; free them with items_free. */
hibloom_item *items_new(const char *prefix, size_t n);
void items_free(hibloom_item *items);

/* Adds n of them; how many were new. And how many are in. */
size_t items_add(hibloom *filter, hibloom_store *store, const char *prefix, size_t n);
size_t items_count(hibloom *filter, hibloom_store *store, const char *prefix, size_t n);

#endif
