/* A store on a server, and the proxy before that. See direct.h. */
#include "direct.h"

#include <hiredis/hiredis.h>

hibloom_store *store;
struct redisContext *outside;

int direct_set_up(void **state)
{
    proxied_set_up(state);
    store = test_connect(redis_server_uri(server), NULL);
    outside = redis_server_connect(server);
    return 0;
}

int direct_tear_down(void **state)
{
    hibloom_store_free(store);
    redisFree(outside);
    return proxied_tear_down(state);
}

int direct_empty(void **state)
{
    test_command(outside, "FLUSHALL");
    return 0;
}
