/* A server and a connection to it, and the proxy before it. See served.h. */
#include "served.h"
#include "test.h"

#include <hiredis/hiredis.h>

struct redis_server *server;
redisContext *redis;
struct proxy *proxy;
hibloom_store *ours;
struct certificates *certificates;
struct redis_server *tls_server;

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

int served_set_up_store(void **state)
{
    (void)served_set_up(state);
    ours = test_connect_any_way(redis_server_uri(server), NULL);
    return 0;
}

int served_tear_down_store(void **state)
{
    hibloom_store_free(ours);
    return served_tear_down(state);
}

int served_leave_nothing(void **state)
{
    test_command(redis, "FLUSHALL");
    return 0;
}

long long served_digest(void)
{
    return test_command(redis, "EVAL %s 0",
                        "local sum = 0 "
                        "for _, key in ipairs(redis.call('KEYS', '*')) do "
                        "  local lives = redis.call('PTTL', key) "
                        "  local hex = redis.sha1hex(key .. redis.call('DUMP', key) .. tostring(lives > 0) .. "
                        "                            tostring(lives > 700000)) "
                        "  sum = (sum + tonumber(hex:sub(1, 12), 16)) % 2 ^ 52 "
                        "end return sum");
}

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

int tls_set_up(void **state)
{
    certificates = certificates_make();
    tls_server = redis_server_start_tls(&certificates->server, NULL);
    return 0;
}

int tls_tear_down(void **state)
{
    redis_server_stop(tls_server);
    certificates_remove(certificates);
    return 0;
}

void tls_is_missing(void **state)
{
    print_message("the library is built without TLS\n");
    skip();
}
