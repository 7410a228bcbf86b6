/* Fuzz target: what servers say of each other: slot maps, redirects, Sentinels' answers, and what a new connection
 * hears. The first byte says which store it is, the rest are its servers' answers, one after the other; after each of
 * them every slot leads to a node of the right kind, or nowhere. */
#include "fuzz.h"
#include "net/routes/topology.h"
#include "spec/spec.h"

enum kind { CLUSTER, SENTINEL, GREETING, KINDS };

#define ANSWERS_MAX 64u /* of one input, since each slot map is 16,384 slots to look at */

static void require_nodes(const struct topology *t)
{
    REQUIRE(t->count >= 1 && t->count <= NODES_MAX);
    for (unsigned i = 0; i < t->count; i++) {
        const struct node *node = t->nodes[i];
        REQUIRE(node->number == i && node->port <= UINT16_MAX);
        REQUIRE(memchr(node->host, '\0', NODE_HOST_SIZE) != NULL);
        REQUIRE(node->role != NODE_REPLICA || t->nodes[node->primary]->role != NODE_REPLICA);
        for (unsigned other = 0; other < i && node->role == NODE_PRIMARY && t->clustered; other++)
            REQUIRE(t->nodes[other]->port != node->port || strcmp(t->nodes[other]->host, node->host) != 0);
    }
    REQUIRE(topology_primaries(t) <= t->count);
}

static void require_routes(struct topology *t)
{
    for (unsigned slot = 0; slot < KEYS_SLOTS; slot++) {
        REQUIRE(t->slots[slot] < t->count || t->slots[slot] >= SLOT_UNSERVED);
        const struct node *primary = topology_route(t, (uint16_t)slot, false);
        REQUIRE((primary == NULL) == (t->slots[slot] >= SLOT_UNSERVED));
        REQUIRE(primary == NULL || primary->role == NODE_PRIMARY);
        const struct node *any = slot % 997 == 0 ? topology_route(t, (uint16_t)slot, true) : primary;
        REQUIRE(any == primary || (any->role == NODE_REPLICA && any->primary == primary->number));
    }
}

/* Where the map says a slot is, there it leads: read anew, with nothing but hosts and ports. */
static void require_as_said(struct topology *t, const struct node *asked, const redisReply *map)
{
    const redisReply *range = map->element[map->elements - 1], *host = range->element[2]->element[0];
    const struct node *node = topology_route(t, (uint16_t)range->element[0]->integer, false);

    REQUIRE(node != NULL && node->port == (unsigned)range->element[2]->element[1]->integer);
    if (host->type == REDIS_REPLY_STRING && host->len > 0 && *host->str != '?')
        REQUIRE(strlen(node->host) == strlen(host->str) && strcmp(node->host, host->str) == 0);
    else
        REQUIRE(strcmp(node->host, asked->host) == 0);
    for (size_t i = 0; i + 1 < map->elements; i++) { /* and earlier ones, unless a later one names the slot, too */
        const long long first = map->element[i]->element[0]->integer;
        bool again = false;
        for (size_t later = i + 1; later < map->elements; later++)
            again = again || (map->element[later]->element[0]->integer <= first &&
                              map->element[later]->element[1]->integer >= first);
        node = topology_route(t, (uint16_t)first, false);
        REQUIRE(again || node->port == (unsigned)map->element[i]->element[2]->element[1]->integer);
    }
}

static void take_cluster(struct topology *t, const redisReply *reply)
{
    struct node *asked = t->nodes[t->turn++ % t->count];
    uint16_t *before = malloc(KEYS_SLOTS * sizeof *before);
    bool took_over = false;

    REQUIRE(before != NULL);
    memcpy(before, t->slots, KEYS_SLOTS * sizeof *before);
    if (reply->type == REDIS_REPLY_ERROR || reply->type == REDIS_REPLY_STATUS) {
        REQUIRE(reply->str != NULL && reply->str[reply->len] == '\0');
        struct node *to = topology_redirect(t, asked, reply->str, &(bool){false});
        if (to != NULL) {
            REQUIRE(to->port <= UINT16_MAX && t->nodes[to->number] == to);
            to->state = NODE_READY; /* commands were sent to it */
        }
    } else if (topology_take(t, asked, 0, reply, &took_over) == NULL) {
        require_as_said(t, asked, reply);
    } else {
        REQUIRE(!took_over && memcmp(before, t->slots, KEYS_SLOTS * sizeof *before) == 0);
    }
    free(before);
    require_nodes(t);
    require_routes(t);
}

static void take_sentinel(struct topology *t, unsigned index, const redisReply *reply)
{
    const bool taken = topology_take(t, t->nodes[1], index % 2, reply, &(bool){false}) == NULL;

    if (taken && index % 2 == 0)
        REQUIRE(t->nodes[0]->host[0] != '\0' && strcmp(t->nodes[0]->host, reply->element[0]->str) == 0);
    require_nodes(t);
    REQUIRE(t->nodes[0]->role == NODE_PRIMARY && t->nodes[1]->role == NODE_SENTINEL);
    REQUIRE(topology_route(t, 0, false) == t->nodes[0]);
    REQUIRE(topology_primaries(t) == 1);
}

static void take_greeting(struct greeting *g, const struct store_settings *settings, unsigned index,
                          const redisReply *reply)
{
    struct error error = {0};

    if (index >= g->count)
        return;
    const hibloom_status status = greeting_take(g, settings, index, reply, &error);
    REQUIRE(strspn(g->run.id, "0123456789abcdef") == strlen(g->run.id) && strlen(g->run.id) < RUN_ID_SIZE);
    REQUIRE(status == HIBLOOM_OK || error.words[0] != '\0' || *reply->str == '\0');
    REQUIRE(strstr(error.words, "5ec4e7") == NULL);
}

static const char *const uris[KINDS] = {"redis+cluster://127.0.0.1:7000,h:7001", "redis+sentinel://127.0.0.1:26379/m",
                                        "redis+sentinel://u:5ec4e7@127.0.0.1:26379/m/3"};

static void take_all(redisReader *reader, enum kind kind, struct topology *t, const struct store_settings *settings)
{
    struct greeting greeting;
    struct commands commands = {0};
    void *object = NULL;

    greeting_write(&greeting, &commands, settings, NODE_PRIMARY);
    REQUIRE(!commands.failed && greeting.count <= sizeof greeting.step / sizeof *greeting.step);
    commands_free(&commands);
    for (unsigned i = 0; i < ANSWERS_MAX && redisReaderGetReply(reader, &object) == REDIS_OK && object != NULL; i++) {
        if (kind == CLUSTER)
            take_cluster(t, object);
        else if (kind == SENTINEL)
            take_sentinel(t, i, object);
        else
            take_greeting(&greeting, settings, i, object);
        freeReplyObject(object);
        object = NULL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const pairs[] = {"client_name", "fuzz", NULL};
    const hibloom_setup setup = {.size = sizeof setup, .options = pairs};
    struct store_settings *settings;
    struct topology topology;
    struct error error;

    if (size < 2)
        return 0;
    const enum kind kind = (enum kind)(data[0] % KINDS);
    REQUIRE(settings_make(&settings, false, uris[kind], &setup, &error) == HIBLOOM_OK);
    REQUIRE(topology_make(&topology, &settings->uri));
    redisReader *reader = redisReaderCreate();
    REQUIRE(reader != NULL);
    char *copy = fuzz_copy(data + 1, size - 1, 0);
    if (redisReaderFeed(reader, copy, size - 1) == REDIS_OK)
        take_all(reader, kind, &topology, settings);
    free(copy);
    redisReaderFree(reader);
    topology_free(&topology);
    settings_free(settings);
    return 0;
}
