/* A server and the proxy before it. See proxied.h. */
#include "proxied.h"
#include "test.h"

#include <stddef.h>

struct proxy *proxy;

int proxied_set_up(void **state)
{
    (void)served_set_up(state);
    proxy = proxy_start(redis_server_socket(server));
    return 0;
}

int proxied_tear_down(void **state)
{
    proxy_stop(proxy);
    return served_tear_down(state);
}

unsigned proxied_cut_everywhere(enum proxy_way way, uint64_t step, void (*hold)(const void *of), const void *of)
{
    unsigned cuts = 0;

    proxy_wait_idle(proxy);
    proxy_mark(proxy);
    hold(of);
    const uint64_t bytes = proxy_bytes(proxy, way);
    for (uint64_t at = 0; at < bytes; at += step, cuts++) {
        proxy_wait_idle(proxy);
        proxy_cut(proxy, way, at);
        hold(of);
    }
    print_message("%s: %u cuts in %llu bytes\n", way == PROXY_REQUESTS ? "requests" : "replies", cuts,
                  (unsigned long long)bytes);
    proxy_heal(proxy);
    return cuts;
}
