/* A server and a connection to it. See served.h. */
#include "served.h"
#include "test.h"

#include <hiredis/hiredis.h>

struct redis_server *server;
redisContext *redis;

int served_set_up(void **state)
{
    if (server == NULL)
        server = redis_server_start_tcp(NULL);
    redis = redis_server_connect(server);
    return 0;
}

int served_tear_down(void **state)
{
    redisFree(redis);
    redis_server_stop(server);
    return 0;
}

int served_leave_nothing(void **state)
{
    test_command(redis, "FLUSHALL");
    return 0;
}
