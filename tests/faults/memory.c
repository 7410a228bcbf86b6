/* Each allocation of the library fails once, and then for good until a call has failed
 * of it: in a dialogue with one server, with a cluster one of whose connections is cut,
 * so that calls are sent again and the slot map is asked anew, and with a server that a
 * Sentinel names and that has a replica to wait for. The call is ENOMEM, the next one
 * works, what is stored is right to the bit, and nothing stays allocated.
 *
 * malloc and its kin are wrapped by the linker (see the Makefile) in this program's own
 * objects, of which the library's are a part and hiredis is not: so it works under ASan,
 * too. tests/fault/memory.c has the calls that this dialogue lacks. */
#include "support/dialogue.h"
#include "support/proxy.h"
#include "support/redis_cluster.h"
#include "support/sentinel.h"
#include "support/served.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATIENT_MS = 5000, RETRY_MS = 4000, RETRY_SHORT_MS = 300, NODES = 3, WALKS = 6 };

/* ---- Allocations that fail --------------------------------------------------------- */

static atomic_long live; /* that are not freed yet */
static _Thread_local bool armed;
static uint64_t allocations, nth; /* since it was set; the one that fails, 0: none */
static bool lasts, met;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *old);

static bool fails(void)
{
    if (!armed)
        return false;
    allocations++;
    if (nth == 0 || allocations < nth || (allocations > nth && !lasts))
        return false;
    met = true;
    errno = ENOMEM;
    return true;
}

static void *count(void *fresh)
{
    live += fresh != NULL;
    return fresh;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (fails())
        return NULL;
    void *fresh = __real_realloc(old, size);
    live += old == NULL && fresh != NULL;
    return fresh;
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : count(__real_strdup(text));
}

void __wrap_free(void *old)
{
    live -= old != NULL;
    __real_free(old);
}

static void arm(void)
{
    armed = true;
}

static void disarm(void)
{
    armed = false;
}

static void set(uint64_t number)
{
    allocations = 0;
    nth = number;
    met = false;
}

/* ---- Committing ---------------------------------------------------------------------- */

static struct proxy *proxy; /* NULL: none is in between */
static uint64_t cut_after;

static bool may_fail(const struct dialogue *d, hibloom_status status, unsigned failures)
{
    const bool allowed = met && status == HIBLOOM_ENOMEM && failures == 1;

    if (lasts)
        nth = 0;
    return allowed;
}

/* Gives the number of allocations. */
static uint64_t hold(struct dialogue *d, uint64_t number)
{
    if (proxy != NULL) {
        proxy_wait_idle(proxy);
        if (cut_after > 0)
            proxy_cut(proxy, PROXY_REPLIES, cut_after);
    }
    const long before = live;
    set(number);
    dialogue_hold(d);
    if (proxy != NULL)
        proxy_wait_idle(proxy);
    if (live != before)
        fail_msg("%s, place %llu: %ld allocations are left", d->what, (unsigned long long)d->place, live - before);
    assert_true(cut_after == 0 || d->stats.retries > 0 || number > 0);
    return allocations;
}

static void commit(struct dialogue *d, const char *what, unsigned replicas, bool retries, bool lasting)
{
    unsigned failed = 0;
    struct walk walk;
    char name[64];

    snprintf(name, sizeof name, "%s, %s", what, lasting ? "for good" : "once");
    d->what = name;
    lasts = lasting;
    snprintf(d->options, sizeof d->options,
             "client_name=faults&connect_timeout=%dms&command_timeout=%dms&min_replicas=%u&retry=%dms", PATIENT_MS,
             PATIENT_MS, replicas,
             !retries  ? 0
             : lasting ? RETRY_SHORT_MS
                       : RETRY_MS);
    (void)hold(d, 0); /* what the C library allocates once and keeps */
    faults_begin(&walk, hold(d, 0), WALKS);
    while (faults_next(&walk, &d->place)) {
        (void)hold(d, d->place + 1);
        failed += d->failures;
    }
    faults_end(&walk, name);
    assert_true(failed * 2 > walk.visited); /* a retry may need fewer than were counted, but few do */
}

static struct dialogue dialogue_of(const char *uri, const char *spec)
{
    return (struct dialogue){.uri = uri, .spec = spec, .enter = arm, .leave = disarm, .may_fail = may_fail};
}

static void on_one_server(void **state)
{
    struct dialogue d = dialogue_of(redis_server_uri(server), "bits=8192 hashes=4 seed=5eed segments=3");

    d.servers = &redis;
    d.server_count = 1;
    commit(&d, "one server", 0, false, false);
    commit(&d, "one server", 0, false, true);
}

static bool all_know_the_proxy(const void *cluster)
{
    char address[32];
    bool all = true;

    snprintf(address, sizeof address, "127.0.0.1:%d@", proxy_port(proxy));
    for (int i = 0; i < NODES; i++)
        all = all && redis_server_says(redis_cluster_node(cluster, i), "CLUSTER NODES", address);
    return all;
}

static void on_a_cluster_while_calls_are_sent_again(void **state)
{
    struct redis_cluster *cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = NODES});
    redisContext *nodes[NODES];
    char uri[64];

    proxy = proxy_start_tcp(redis_server_socket(redis_cluster_node(cluster, 0)));
    snprintf(uri, sizeof uri, "redis+cluster://127.0.0.1:%d", proxy_port(proxy));
    freeReplyObject(
        redis_server_must(redis_cluster_node(cluster, 0), "CONFIG SET cluster-announce-port %d", proxy_port(proxy)));
    redis_server_wait(redis_cluster_node(cluster, 0), all_know_the_proxy, cluster, "not all know the proxy's port");
    for (int i = 0; i < NODES; i++)
        nodes[i] = redis_server_connect(redis_cluster_node(cluster, i));
    struct dialogue d = dialogue_of(uri, "bits=8192 hashes=4 seed=5eed segments=4");
    d.servers = nodes;
    d.server_count = NODES;
    cut_after = 1500;
    commit(&d, "cluster", 0, true, false);
    commit(&d, "cluster", 0, true, true);
    cut_after = 0;
    proxy_stop(proxy);
    proxy = NULL;
    for (int i = 0; i < NODES; i++)
        redisFree(nodes[i]);
    redis_cluster_stop(cluster);
}

static void where_a_sentinel_names_the_server(void **state)
{
    struct sentinel *sentinel = sentinel_start(&(struct sentinel_options){.replicas = 1, .sentinels = 1});
    redisContext *master = redis_server_connect(sentinel_server(sentinel, sentinel_master(sentinel)));
    struct dialogue d = dialogue_of(sentinel_uri(sentinel), "bits=8192 hashes=4 seed=5eed");

    d.servers = &master;
    d.server_count = 1;
    commit(&d, "sentinel", 1, true, false);
    commit(&d, "sentinel", 1, true, true);
    redisFree(master);
    sentinel_stop(sentinel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(on_one_server, served_leave_nothing),
        cmocka_unit_test(on_a_cluster_while_calls_are_sent_again),
        cmocka_unit_test(where_a_sentinel_names_the_server),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
