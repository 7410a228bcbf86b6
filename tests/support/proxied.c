/* A server and the proxy before it. See proxied.h. */
#include "proxied.h"

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
