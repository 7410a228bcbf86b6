/* What nodes say of themselves: no host, a host name, a password, slots that nobody
 * has; and an exchange that is sent on from its middle. */
#include "../support/items.h"
#include "../support/redis_cluster.h"
#include "../support/scripted_server.h"
#include "../support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 3000, PRIMARIES = 3 };

#define TEXT "bits=3000000 hashes=7 segments=12 seed=1"
#define SINGLE "bits=300000 hashes=7 seed=1"

static hibloom_item *items;
static bool answers[ITEMS];

static int set_up(void **state)
{
    items = items_new("in", ITEMS);
    return 0;
}

static int tear_down(void **state)
{
    items_free(items);
    return 0;
}

static struct redis_cluster *start(const char *const *args)
{
    return redis_cluster_start(&(struct redis_cluster_options){.primaries = PRIMARIES, .args = args});
}

/* Adds, and again after some of its slots moved: so MOVED is read as well as the map. */
static void use(struct redis_cluster *cluster, const char *uri)
{
    hibloom_store *store = test_connect(uri, NULL);
    hibloom *filter = test_open(store, "seen", TEXT);
    hibloom_stats stats;

    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    for (int i = 0; i < 12; i++) {
        char key[16];
        snprintf(key, sizeof key, "seen:%d", i);
        const int slot = redis_cluster_slot(cluster, key), from = redis_cluster_owner(cluster, slot);
        const struct redis_cluster_move move = {slot, slot, from, (from + 1) % PRIMARIES};
        redis_cluster_begin_move(cluster, &move);
        assert_int_equal(redis_cluster_move_keys(cluster, &move, 10), 1);
        if (i % 2 == 0) /* the others stay half moved: ASK */
            redis_cluster_end_move(cluster, &move);
        redis_cluster_wait_settled(cluster); /* nodes that have not heard of it may take the slot back */
    }
    assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(answers[i]);
    hibloom_get_stats(store, &stats);
    assert_in_range(stats.redirects, 12, 100);
    hibloom_close(filter);
    hibloom_store_free(store);
    redis_cluster_stop(cluster);
}

static void a_node_that_names_no_host_means_the_one_that_was_asked(void **state)
{
    static const char *const args[] = {"--cluster-preferred-endpoint-type", "unknown-endpoint", NULL};
    struct redis_cluster *cluster = start(args);

    use(cluster, redis_cluster_uri(cluster));
}

static void nodes_may_have_names(void **state)
{
    static const char *const args[] = {"--cluster-preferred-endpoint-type", "hostname", "--cluster-announce-hostname",
                                       "localhost", NULL};
    struct redis_cluster *cluster = start(args);

    use(cluster, redis_cluster_uri(cluster));
}

static void each_node_is_given_the_password(void **state)
{
    static const char *const args[] = {"--requirepass", "secret", "--masterauth", "secret", "--user", "worker", "on",
                                       ">hidden",       "~*",     "&*",           "+@all",  NULL};
    struct redis_cluster *cluster = start(args);
    const char *hosts = redis_cluster_uri(cluster) + strlen("redis+cluster://");
    hibloom_store *store;
    char uri[600];

    assert_status(hibloom_connect(&store, redis_cluster_uri(cluster), NULL), HIBLOOM_EDENIED, store);
    hibloom_store_free(store);
    snprintf(uri, sizeof uri, "redis+cluster://worker:wrong@%s", hosts);
    assert_status(hibloom_connect(&store, uri, NULL), HIBLOOM_EDENIED, store);
    hibloom_store_free(store);
    snprintf(uri, sizeof uri, "redis+cluster://worker:hidden@%s", hosts);
    use(cluster, uri);
}

static void keys_of_slots_that_nobody_has_are_unavailable_and_others_work(void **state)
{
    static const char *const args[] = {"--cluster-require-full-coverage", "no", NULL};
    struct redis_cluster *cluster = start(args);
    const int slot = redis_cluster_slot(cluster, "here"), owner = redis_cluster_owner(cluster, slot);
    hibloom_store *early = test_connect(redis_cluster_uri(cluster), NULL), *late;
    hibloom *filters[2] = {test_open(early, "here", SINGLE), test_open(early, "there", SINGLE)};

    for (int i = 0; i < PRIMARIES; i++) /* the owner first, or it would tell the others that it has it */
        freeReplyObject(
            redis_server_must(redis_cluster_node(cluster, (owner + i) % PRIMARIES), "CLUSTER DELSLOTS %d", slot));
    late = test_connect(redis_cluster_uri(cluster), NULL);
    hibloom *second = test_open(late, "there", SINGLE), *opened = NULL;
    hibloom_spec spec = test_spec(SINGLE);
    assert_status(hibloom_add_many(filters[0], items, ITEMS, NULL), HIBLOOM_EUNAVAILABLE, early);
    assert_non_null(strstr(hibloom_store_error(early), "not served"));
    assert_status(hibloom_open(&opened, late, "here", &spec), HIBLOOM_EUNAVAILABLE, late);
    assert_non_null(strstr(hibloom_store_error(late), "no node of the cluster has the key's slot"));
    assert_ok(hibloom_add_many(filters[1], items, ITEMS, NULL), early);
    assert_ok(hibloom_add_many(second, items, ITEMS, NULL), late);
    freeReplyObject(redis_server_must(redis_cluster_node(cluster, owner), "CLUSTER ADDSLOTS %d", slot));
    redis_cluster_wait_settled(cluster);
    assert_ok(hibloom_add_many(filters[0], items, ITEMS, NULL), early);
    assert_ok(hibloom_open(&opened, late, "here", &spec), late);
    hibloom_close(filters[0]);
    hibloom_close(filters[1]);
    hibloom_close(second);
    hibloom_close(opened);
    hibloom_store_free(early);
    hibloom_store_free(late);
    redis_cluster_stop(cluster);
}

/* ---- Nodes that lose their slots ---------------------------------------------------------- */

static bool is_connected(struct redis_cluster *cluster, int node)
{
    redisReply *list = redis_server_must(redis_cluster_node(cluster, node), "CLIENT LIST TYPE NORMAL");
    const bool connected = strstr(list->str, " name=counted ") != NULL;

    freeReplyObject(list);
    return connected;
}

/* Where no key is in them, that is quicker than to move one after the other. */
static void hand_over(struct redis_cluster *cluster, int from, int to)
{
    const int first = REDIS_CLUSTER_SLOTS * 2 / 3, last = REDIS_CLUSTER_SLOTS - 1;

    for (int i = 0; i < PRIMARIES; i++)
        freeReplyObject(redis_server_must(redis_cluster_node(cluster, (from + i) % PRIMARIES),
                                          "CLUSTER DELSLOTSRANGE %d %d", first, last));
    freeReplyObject(redis_server_must(redis_cluster_node(cluster, to), "CLUSTER ADDSLOTSRANGE %d %d", first, last));
    redis_cluster_wait_settled(cluster);
}

static void a_node_that_the_map_names_no_more_is_not_kept_connected(void **state)
{
    static const char *const args[] = {"--cluster-allow-replica-migration", "no", NULL};
    const hibloom_connect_options options = {.size = sizeof options, .accept_restarts = true, .client_name = "counted"};
    struct redis_cluster *cluster = start(args);
    hibloom_store *store = test_connect(redis_cluster_uri(cluster), &options);
    char name[] = "a";

    while (redis_cluster_slot(cluster, name) < REDIS_CLUSTER_SLOTS * 2 / 3)
        name[0]++;
    for (int turn = 0; turn < 4; turn++) { /* it loses them before the second one, and has them back before the third */
        const long long asked = redis_cluster_calls_of(cluster, "cluster|slots");
        if (turn > 0)
            hand_over(cluster, turn % 2 == 1 ? 2 : 0, turn % 2 == 1 ? 0 : 2);
        hibloom *filter = test_open(store, name, SINGLE);
        assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
        assert_ok(hibloom_contains_many(filter, items, ITEMS, answers), store);
        for (size_t i = 0; i < ITEMS; i++)
            assert_true(answers[i]);
        assert_int_equal(is_connected(cluster, 2), turn % 2 == 0);
        assert_int_equal(redis_cluster_calls_of(cluster, "cluster|slots") - asked, turn > 0);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
    }
    hibloom_store_free(store);
    redis_cluster_stop(cluster);
}

/* A seed whose place in the cluster is not known yet. One that is closed begins its script anew. */
static void a_seed_that_cannot_tell_yet_is_asked_again_on_its_connection(void **state)
{
#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"
    static const struct script_step script[] = {
        SCRIPT_WELCOME,
        SCRIPT_READ(1),
        SCRIPT_SEND(LOADING),
        SCRIPT_READ(1),
        SCRIPT_SEND(LOADING),
        SCRIPT_READ(1),
        SCRIPT_SEND("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n"),
        SCRIPT_END};
    const hibloom_connect_options options = {.size = sizeof options, .retry_ms = 5000};
    struct scripted_server *seed = scripted_server_start_tcp(script, "127.0.0.1");
    hibloom_stats stats;
    char uri[64];

    snprintf(uri, sizeof uri, "redis+cluster://127.0.0.1:%d", scripted_server_port(seed));
    hibloom_store *store = test_connect(uri, &options);
    hibloom_get_stats(store, &stats);
    assert_int_equal(stats.connections, 1);
    hibloom_store_free(store);
    scripted_server_stop(seed);
}

/* ---- From the middle of an exchange on --------------------------------------------------
 *
 * A bare bitmap "b" of 8 bits, whose slot is 3300; three items with is_new. Its node says that
 * it has carried out the first and that the key has gone meanwhile. */

#define ITEM "*2\r\n:0\r\n:0\r\n"
#define SEEN "*2\r\n:1\r\n:1\r\n"
#define GUARD ":131072\r\n$8\r\n\1\1\1\1\1\1\1\1\r\n"

enum { MAP = 4, ASKS = 10 }; /* the steps that name a port */

static char first_map[128], first_asks[512];
static struct script_step first_script[] = {
    SCRIPT_ACCEPT,
    SCRIPT_READ(1),
    SCRIPT_SEND("-ERR no INFO\r\n"),
    SCRIPT_READ(1),
    {SCRIPT_DO_SEND, first_map, 0, 0},
    SCRIPT_JOIN(GUARD),
    SCRIPT_READ(7), /* two guards before, three items, two behind */
    {SCRIPT_DO_SEND, first_asks, 0, 0},
    SCRIPT_END,
};
static const struct script_step second_script[] = {
    SCRIPT_ACCEPT,
    SCRIPT_READ(1),
    SCRIPT_SEND("-ERR no INFO\r\n"),
    SCRIPT_READ(8), /* ASKING before each of the four */
    SCRIPT_SEND("+OK\r\n" ITEM "+OK\r\n" SEEN "+OK\r\n:131072\r\n+OK\r\n$8\r\n\1\1\1\1\1\1\1\1\r\n"),
    SCRIPT_END,
};

static size_t count_words(const char *heard, size_t len, const char *word)
{
    size_t n = 0;

    for (const char *at = heard; (at = memmem(at, len - (size_t)(at - heard), word, strlen(word))) != NULL; at++)
        n++;
    return n;
}

static void an_exchange_that_is_refused_in_its_middle_goes_on_there(void **state)
{
    struct scripted_server *second = scripted_server_start_tcp(second_script, "127.0.0.1");
    char asks[64], uri[64];
    hibloom_store *store;
    hibloom_stats stats;
    size_t len;

    const int port = scripted_server_port(second);
    snprintf(asks, sizeof asks, "-ASK 3300 127.0.0.1:%d\r\n", port);
    first_script[ASKS].len = (size_t)snprintf(first_asks, sizeof first_asks, ":131072\r\n$8\r\n%s\r\n" ITEM "%s%s%s%s",
                                              "\1\1\1\1\1\1\1\1", asks, asks, asks, asks);
    struct scripted_server *first = scripted_server_start_tcp(first_script, "127.0.0.1");
    first_script[MAP].len = (size_t)snprintf(first_map, sizeof first_map,
                                             "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:%d\r\n",
                                             scripted_server_port(first));
    snprintf(uri, sizeof uri, "redis+cluster://127.0.0.1:%d", scripted_server_port(first));
    store = test_connect(uri, NULL);
    hibloom *filter = test_attach(store, "b", "bits=1048576 hashes=2 hash=poly seeds=3,5");
    assert_ok(hibloom_add_many(filter, items, 3, answers), store);
    assert_true(answers[0]);
    assert_true(answers[1]);
    assert_false(answers[2]);
    char *heard = scripted_server_heard(second, &len);
    assert_int_equal(count_words(heard, len, "ASKING"), 4);
    assert_int_equal(count_words(heard, len, "BITFIELD"), 2);
    free(heard);
    hibloom_get_stats(store, &stats);
    assert_int_equal(stats.redirects, 1);
    assert_int_equal(stats.in_doubt, 0);
    hibloom_close(filter);
    hibloom_store_free(store);
    scripted_server_stop(first);
    scripted_server_stop(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_names_no_host_means_the_one_that_was_asked),
        cmocka_unit_test(nodes_may_have_names),
        cmocka_unit_test(each_node_is_given_the_password),
        cmocka_unit_test(keys_of_slots_that_nobody_has_are_unavailable_and_others_work),
        cmocka_unit_test(a_node_that_the_map_names_no_more_is_not_kept_connected),
        cmocka_unit_test(a_seed_that_cannot_tell_yet_is_asked_again_on_its_connection),
        cmocka_unit_test(an_exchange_that_is_refused_in_its_middle_goes_on_there),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
