/* What the tests of filters of several segments run on: a server of the
 * program's own, so that "no key is left" can be seen, with one filter at a
 * time.
 *
 *     cmocka_run_group_tests(tests, segments_set_up, segments_tear_down) */
#ifndef HIBLOOM_TEST_SEGMENTS_H
#define HIBLOOM_TEST_SEGMENTS_H

#include "items.h"
#include "served.h"
#include "test.h"
#include "spec/spec.h"

#define NAME "seen"

extern hibloom_store *stores[2]; /* by setbit and by bitfield */

int segments_set_up(void **state);
int segments_tear_down(void **state);

/* As teardown of a test, so that one that fails is not the end of the next. */
int segments_leave_nothing(void **state);
#define SEGMENTS_TEST(function) cmocka_unit_test_teardown(function, segments_leave_nothing)

void segments_drop(hibloom *filter); /* and closes it; no key is left */

/* All that the server has. */
long long keys_stored(void);

uint32_t segment_of(const hibloom *filter, const hibloom_item *item);

#endif
