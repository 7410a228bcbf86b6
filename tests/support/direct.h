/* What a program runs on that asks a server of its own directly, and through a proxy beside that: a store, and
 * a connection from outside. Each test may begin with nothing there.
 *
 *     cmocka_run_group_tests(tests, direct_set_up, direct_tear_down)     cmocka_unit_test_setup(test, direct_empty) */
#ifndef HIBLOOM_TEST_DIRECT_H
#define HIBLOOM_TEST_DIRECT_H

#include "proxied.h"
#include "test.h"

extern hibloom_store *store;
extern struct redisContext *outside;

int direct_set_up(void **state);
int direct_tear_down(void **state);
int direct_empty(void **state);

#endif
