/* What a program of faults in the middle of a conversation runs on: a real
 * server of its own, and before it the proxy that commits them.
 *
 *     cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down) */
#ifndef HIBLOOM_TEST_PROXIED_H
#define HIBLOOM_TEST_PROXIED_H

#include "proxy.h"
#include "served.h"

extern struct proxy *proxy;

int proxied_set_up(void **state);
int proxied_tear_down(void **state);

#endif
