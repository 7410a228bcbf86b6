/* setup.c: the carrier of a store, from the settings. See setup.h. */
#include "net/flights/setup.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "net/flights/call.h"
#include "net/flights/replicas.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the options say of the server; the rest is found out. */
static void note_options(struct redis_server_traits *server, const struct store_options *o, bool clustered)
{
    *server = (struct redis_server_traits){
        .clustered = clustered,
        .retry_ms = (uint32_t)o->retry_ms,
        .sends_all = o->min_replicas > 0 || o->read_from_replicas != 0,
        .asks_replicas = o->read_from_replicas != 0,
        .cost = {o->bitfield != 0, o->network_bytes != 0 ? (double)o->network_bytes / 1e6 : COST_NETWORK_HERE_MB_S},
        .near_room = o->near_bytes,
    };
}

static void refresh(struct redis_store *store)
{
    struct carrier *c = (struct carrier *)store;

    c->locate.stale = c->locate.stale || c->topology.clustered; /* of a master a check tells in time */
}

_Static_assert(NODES_MAX <= REDIS_SERVERS_MAX, "a node's number is a server's");

static uint32_t server_of(const struct redis_store *store, uint16_t slot)
{
    const struct node *node = topology_route(&((struct carrier *)store)->topology, slot, false);

    return node != NULL && !node->retired ? node->number : REDIS_SERVERS_MAX; /* a replica has no slot */
}

bool setup_make(struct carrier *c, struct store_settings *settings, const struct pipe_class *pipes)
{
    c->settings = c->store.base.settings = settings;
    c->pipes = pipes;
    c->store.base.class = &redis_store_class;
    c->store.base.stats = &c->store.server.stats;
    c->store.refresh = refresh;
    c->store.server_of = server_of;
    TAILQ_INIT(&c->calls);
    TAILQ_INIT(&c->ended);
    TAILQ_INIT(&c->asleep);
    TAILQ_INIT(&c->runnable);
    if (getentropy(&c->random, sizeof c->random) != 0)
        c->random = clock_now_ms();
    if (!topology_make(&c->topology, &c->settings->uri))
        return false;
    carrier_note_stale(c);
    note_options(&c->store.server, &settings->options, c->topology.clustered);
    return true;
}

/* Is the peer on this machine? If that is not known: no. */
static bool is_here(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    } peer = {.room = {0}};
    socklen_t len = sizeof peer;

    if (getpeername(fd, &peer.any, &len) != 0)
        return false;
    if (peer.any.sa_family == AF_INET)
        return ntohl(peer.v4.sin_addr.s_addr) >> 24 == 127;
    return peer.any.sa_family == AF_UNIX ||
           (peer.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&peer.v6.sin6_addr));
}

void setup_note_network(struct carrier *c, int fd)
{
    double *const mb_s = &c->store.server.cost.network_mb_s;

    if (c->settings->options.network_bytes == 0 && *mb_s > COST_NETWORK_MB_S && (c->settings->uri.tls || !is_here(fd)))
        *mb_s = COST_NETWORK_MB_S;
}

static void free_flights(struct carrier *c, struct flights *flights)
{
    for (struct flight *flight; (flight = flights_take(flights)) != NULL;)
        flight_free(&c->pool, flight);
}

void setup_free(struct carrier *c)
{
    for (struct call *call = TAILQ_FIRST(&c->calls); call != NULL; call = TAILQ_NEXT(call, in_calls)) {
        free_flights(c, &call->waiting);
        replicas_forget(call);
    }
    for (unsigned i = 0; i < c->topology.count; i++) {
        struct node *node = c->topology.nodes[i];
        free_flights(c, &node->sent);
        free_flights(c, &node->touched);
        free_flights(c, &node->unwritten);
        c->pipes->close(c, node);
        alloc.free(node->pipe);
    }
    outbox_free(&c->outbox);
    flight_pool_free(&c->pool);
    topology_free(&c->topology);
}
