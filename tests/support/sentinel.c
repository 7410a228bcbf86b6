/* Starting a primary, replicas and Sentinels. See sentinel.h. */
#include "sentinel.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sentinel {
    int servers_len, watchers_len;
    struct redis_server *servers[SENTINEL_SERVERS_MAX], *watchers[SENTINEL_SERVERS_MAX];
    char uri[64 + SENTINEL_SERVERS_MAX * 16];
};

/* A command whose reply only must be no error. */
#define DO(...) freeReplyObject(redis_server_must(__VA_ARGS__))

/* Whom a Sentinel names; -1: nobody of ours, or it does not answer. */
static int named_by(const struct sentinel *sentinel, const struct redis_server *watcher)
{
    redisReply *reply = redis_server_ask(watcher, "SENTINEL GET-MASTER-ADDR-BY-NAME " SENTINEL_MASTER);
    int named = -1;

    if (reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
        for (int i = 0; i < sentinel->servers_len; i++)
            if (redis_server_port(sentinel->servers[i]) == atoi(reply->element[1]->str))
                named = i;
    freeReplyObject(reply);
    return named;
}

/* Of the pairs in SENTINEL MASTER's answer, "" where it is not among them. */
static const char *field(const redisReply *pairs, const char *name)
{
    for (size_t i = 0; i + 1 < pairs->elements; i += 2)
        if (strcmp(pairs->element[i]->str, name) == 0)
            return pairs->element[i + 1]->str;
    return "";
}

static bool sees_all(const struct sentinel *sentinel, const struct redis_server *watcher)
{
    redisReply *reply = redis_server_ask(watcher, "SENTINEL MASTER " SENTINEL_MASTER);
    const bool sees = reply != NULL && reply->type == REDIS_REPLY_ARRAY &&
                      strcmp(field(reply, "flags"), "master") == 0 &&
                      atoi(field(reply, "num-slaves")) == sentinel->servers_len - 1 &&
                      atoi(field(reply, "num-other-sentinels")) == sentinel->watchers_len - 1;

    freeReplyObject(reply);
    return sees;
}

/* By default they look every 10 s for replicas, and rest for 30 s when they
 * were not scheduled for 2 s. No file keeps this. */
static void hurry(const struct sentinel *sentinel)
{
    for (int i = 0; i < sentinel->watchers_len; i++)
        if (redis_server_runs(sentinel->watchers[i]))
            DO(sentinel->watchers[i],
               "SENTINEL DEBUG info-period 300 publish-period 200 ping-period 200 ask-period 200 "
               "tilt-period 1000 min-link-reconnect-period 200 election-timeout 2000");
}

static bool servers_are_settled(const struct sentinel *sentinel, int master)
{
    char port[32];

    snprintf(port, sizeof port, "master_port:%d\r\n", redis_server_port(sentinel->servers[master]));
    for (int i = 0; i < sentinel->servers_len; i++) {
        const struct redis_server *server = sentinel->servers[i];

        if (i != master && !redis_server_runs(server))
            continue;
        if (!redis_server_says(server, "INFO replication", i == master ? "role:master\r\n" : port) ||
            !redis_server_is_in_sync(server))
            return false;
    }
    return true;
}

static bool watchers_agree(const struct sentinel *sentinel, int master)
{
    for (int i = 0; i < sentinel->watchers_len; i++) {
        const struct redis_server *watcher = sentinel->watchers[i];

        if (redis_server_runs(watcher) && (named_by(sentinel, watcher) != master || !sees_all(sentinel, watcher)))
            return false;
    }
    return true;
}

static bool is_settled(const void *argument)
{
    const struct sentinel *sentinel = argument;
    const int master = sentinel_master(sentinel);

    return master >= 0 && watchers_agree(sentinel, master) && servers_are_settled(sentinel, master);
}

void sentinel_wait_settled(const struct sentinel *sentinel)
{
    hurry(sentinel);
    redis_server_wait(sentinel->watchers[0], is_settled, sentinel, "the Sentinels do not settle");
}

static void start_servers(struct sentinel *sentinel, const struct sentinel_options *options)
{
    for (int i = 0; i < sentinel->servers_len; i++) {
        sentinel->servers[i] = options->certificate != NULL
                                   ? redis_server_start_tls(options->certificate, options->args)
                                   : redis_server_start_tcp(options->args);
        if (i > 0)
            DO(sentinel->servers[i], "REPLICAOF 127.0.0.1 %d", redis_server_port(sentinel->servers[0]));
    }
}

static void start_watcher(struct sentinel *sentinel, int i, const struct sentinel_options *options)
{
    struct redis_server *watcher = redis_server_start_sentinel(options->certificate, options->sentinel_args);
    const char *password = redis_server_password(sentinel->servers[0]);
    const char *own_password = redis_server_password(watcher);

    sentinel->watchers[i] = watcher;
    if (own_password != NULL)
        DO(watcher, "SENTINEL CONFIG SET sentinel-pass %s", own_password);
    DO(watcher, "SENTINEL MONITOR " SENTINEL_MASTER " 127.0.0.1 %d %d", redis_server_port(sentinel->servers[0]),
       sentinel->watchers_len / 2 + 1);
    if (password != NULL)
        DO(watcher, "SENTINEL SET " SENTINEL_MASTER " auth-pass %s", password);
    DO(watcher, "SENTINEL SET " SENTINEL_MASTER " down-after-milliseconds 1000 failover-timeout 3000");
}

struct sentinel *sentinel_start(const struct sentinel_options *options)
{
    struct sentinel *sentinel = calloc(1, sizeof *sentinel);
    size_t len;

    if (sentinel == NULL || options->replicas >= SENTINEL_SERVERS_MAX || options->sentinels < 1 ||
        options->sentinels > SENTINEL_SERVERS_MAX)
        abort();
    sentinel->servers_len = 1 + options->replicas;
    sentinel->watchers_len = options->sentinels;
    start_servers(sentinel, options);
    len = (size_t)snprintf(sentinel->uri, sizeof sentinel->uri, "redis%s+sentinel:/", options->certificate ? "s" : "");
    for (int i = 0; i < sentinel->watchers_len; i++) {
        start_watcher(sentinel, i, options);
        len += (size_t)snprintf(sentinel->uri + len, sizeof sentinel->uri - len, "%c127.0.0.1:%d", i == 0 ? '/' : ',',
                                redis_server_port(sentinel->watchers[i]));
    }
    snprintf(sentinel->uri + len, sizeof sentinel->uri - len, "/" SENTINEL_MASTER);
    sentinel_wait_settled(sentinel);
    return sentinel;
}

void sentinel_stop(struct sentinel *sentinel)
{
    if (sentinel == NULL)
        return;
    for (int i = 0; i < sentinel->watchers_len; i++)
        redis_server_stop(sentinel->watchers[i]);
    for (int i = 0; i < sentinel->servers_len; i++)
        redis_server_stop(sentinel->servers[i]);
    free(sentinel);
}

const char *sentinel_uri(const struct sentinel *sentinel)
{
    return sentinel->uri;
}

int sentinel_servers(const struct sentinel *sentinel)
{
    return sentinel->servers_len;
}

struct redis_server *sentinel_server(const struct sentinel *sentinel, int server)
{
    return sentinel->servers[server];
}

struct redis_server *sentinel_watcher(const struct sentinel *sentinel, int watcher)
{
    return sentinel->watchers[watcher];
}

int sentinel_master(const struct sentinel *sentinel)
{
    for (int i = 0; i < sentinel->watchers_len; i++)
        if (redis_server_runs(sentinel->watchers[i]))
            return named_by(sentinel, sentinel->watchers[i]);
    redis_server_give_up(sentinel->watchers[0], "no Sentinel runs");
}
