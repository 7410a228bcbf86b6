/* A server and the proxy before it. See proxied.h. */
#include "proxied.h"

#include <stddef.h>

struct redis_server *server;
struct proxy *proxy;

int proxied_set_up(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    proxy = proxy_start(redis_server_socket(server));
    return 0;
}

int proxied_tear_down(void **state)
{
    (void)state;
    proxy_stop(proxy);
    redis_server_stop(server);
    return 0;
}
