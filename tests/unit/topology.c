/* Who has which slot, and whether somebody took over, as maps tell one after another. */
#include "../support/test.h"

#include "net/routes/topology.h"

#include <string.h>

#define A "*3\r\n$7\r\n1.1.1.1\r\n:1\r\n$1\r\na\r\n"
#define B "*3\r\n$7\r\n1.1.1.2\r\n:1\r\n$1\r\nb\r\n"
#define C "*3\r\n$7\r\n1.1.1.3\r\n:1\r\n$1\r\nc\r\n"
#define RANGE(first, last) ":" #first "\r\n:" #last "\r\n"

static struct topology t;

static int set_up(void **state)
{
    static struct uri_host seed = {"1.1.1.1", 1};

    assert_true(topology_make(&t, &(struct uri){.kind = URI_CLUSTER, .hosts = &seed, .host_count = 1}));
    return 0;
}

static int tear_down(void **state)
{
    topology_free(&t);
    return 0;
}

/* Whether it made sense. */
static bool take(const char *resp, bool *took_over)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    assert_int_equal(redisReaderFeed(reader, resp, strlen(resp)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    const bool good = topology_take(&t, t.nodes[0], 0, reply, took_over) == NULL;
    freeReplyObject(reply);
    redisReaderFree(reader);
    return good;
}

static const char *owner(uint16_t slot)
{
    const struct node *node = topology_route(&t, slot, false);

    return node != NULL ? node->host : "(none)";
}

static void slots_that_move_between_primaries_were_not_taken_over(void **state)
{
    bool took_over = true;

    assert_true(take("*2\r\n*4\r\n" RANGE(0, 9) A B "*3\r\n" RANGE(10, 16383) C, &took_over));
    assert_true(take("*2\r\n*4\r\n" RANGE(0, 4) A B "*3\r\n" RANGE(5, 16383) C, &took_over));
    assert_false(took_over);
    assert_string_equal(owner(5), "1.1.1.3");
    assert_non_null(topology_redirect(&t, t.nodes[0], "MOVED 2 1.1.1.3:1", &took_over));
    assert_string_equal(owner(2), "1.1.1.1");                        /* until the map tells */
    assert_true(take("*1\r\n*3\r\n" RANGE(0, 16383) C, &took_over)); /* an heir may have had them meanwhile */
    assert_true(took_over);
}

static void a_map_with_a_gap_hides_no_takeover(void **state)
{
    bool took_over = true;

    assert_true(take("*1\r\n*4\r\n" RANGE(0, 16383) A B, &took_over));
    assert_true(take("*1\r\n*4\r\n" RANGE(10, 16383) A B, &took_over));
    assert_false(took_over);
    assert_string_equal(owner(5), "(none)");
    assert_true(take("*2\r\n*3\r\n" RANGE(0, 9) B "*3\r\n" RANGE(10, 16383) A, &took_over));
    assert_true(took_over);
    assert_string_equal(owner(5), "1.1.1.2");
    assert_true(take("*1\r\n*3\r\n" RANGE(10, 16383) A, &took_over)); /* nor where its node is in no map any more */
    assert_false(took_over);
    assert_true(take("*2\r\n*3\r\n" RANGE(0, 9) C "*3\r\n" RANGE(10, 16383) A, &took_over));
    assert_true(took_over);
    assert_string_equal(owner(5), "1.1.1.3");
}

/* The next greeting does not tell of a takeover once more: of who is connected it is this run's already. */
static void who_takes_over_is_told_of_once_and_its_restart_too(void **state)
{
    bool took_over = true;

    assert_true(take("*1\r\n*3\r\n" RANGE(0, 16383) A, &took_over));
    for (int connected = 0; connected < 2; connected++) {
        char asked[] = "ASK 5 1.1.1.2:1", moved[] = "MOVED 5 1.1.1.2:1";
        asked[strlen(asked) - 3] += (char)connected;
        moved[strlen(moved) - 3] += (char)connected;
        struct node *node = topology_redirect(&t, t.nodes[0], asked, &took_over);
        assert_non_null(node);
        assert_false(took_over);
        node->state = connected ? NODE_READY : NODE_CLOSED;
        strcpy(node->run.id, "before");
        assert_ptr_equal(topology_redirect(&t, t.nodes[0], moved, &took_over), node);
        assert_true(took_over);
        assert_string_equal(node->run.id, connected ? "before" : "");
        node->state = NODE_CLOSED;
    }
}

static void nonsense_changes_nothing(void **state)
{
    bool took_over = true;

    assert_true(take("*1\r\n*3\r\n" RANGE(0, 16383) A, &took_over));
    assert_false(take("*1\r\n*3\r\n" RANGE(9, 3) B, &took_over));
    assert_false(take("*1\r\n*3\r\n" RANGE(0, 16384) B, &took_over));
    assert_false(take("*1\r\n*2\r\n" RANGE(0, 1), &took_over));
    assert_string_equal(owner(0), "1.1.1.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slots_that_move_between_primaries_were_not_taken_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_map_with_a_gap_hides_no_takeover, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_takes_over_is_told_of_once_and_its_restart_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nonsense_changes_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
