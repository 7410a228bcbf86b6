/* Answers that come as no server sends them: in pieces of a few bytes, cut off in the
 * middle, too many, or none that was asked for. Between store and server is a relay that
 * this program itself turns, by turns with the loop: so each piece is an event of its own. */
#include "loops/subject.h"
#include "support/net.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ITEMS 90u

static struct redis_server *server;
static uint32_t numbers[ITEMS];
static hibloom_item items[ITEMS];

static struct {
    struct listener listener;
    int client, upstream; /* -1: nobody is connected */
    struct bytes replies;
    size_t piece, left; /* bytes to pass at a time; until the connection is cut */
    size_t requests;    /* bytes of them so far */
} relay;

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    for (uint32_t i = 0; i < ITEMS; i++) {
        numbers[i] = i / 2; /* each twice */
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
    server = redis_server_start(NULL);
    listener_open_unix(&relay.listener);
    relay.client = relay.upstream = -1;
    return 0;
}

static void hang_up(void)
{
    close(relay.client);
    close(relay.upstream);
    relay.client = relay.upstream = -1;
    bytes_clear(&relay.replies);
}

static int tear_down(void **state)
{
    listener_close(&relay.listener);
    redis_server_stop(server);
    return 0;
}

/* ---- The relay ---------------------------------------------------------------------- */

static void relay_accept(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)fcntl(relay.listener.fd, F_SETFL, O_NONBLOCK);
    relay.client = accept4(relay.listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (relay.client < 0)
        return;
    relay.upstream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", redis_server_socket(server));
    assert_int_equal(connect(relay.upstream, (struct sockaddr *)&address, sizeof address), 0);
}

/* Requests pass whole, of the replies one piece. */
static void relay_step(void)
{
    char buf[65536];

    if (relay.client < 0)
        relay_accept();
    if (relay.client < 0)
        return;
    const ssize_t asked = recv(relay.client, buf, sizeof buf, MSG_DONTWAIT);
    if (asked == 0)
        hang_up();
    if (asked > 0)
        assert_int_equal(send(relay.upstream, buf, (size_t)asked, MSG_NOSIGNAL), asked);
    relay.requests += asked > 0 ? (size_t)asked : 0;
    for (ssize_t n; asked != 0 && (n = recv(relay.upstream, buf, sizeof buf, MSG_DONTWAIT)) > 0;)
        bytes_append(&relay.replies, buf, (size_t)n);
    size_t piece = relay.piece < relay.replies.len ? relay.piece : relay.replies.len;
    piece = piece < relay.left ? piece : relay.left;
    if (piece > 0 && send(relay.client, relay.replies.data, piece, MSG_NOSIGNAL) != (ssize_t)piece)
        hang_up(); /* the store has done so */
    bytes_consume(&relay.replies, relay.client >= 0 ? piece : 0);
    relay.left -= piece;
    if (relay.client >= 0 && relay.left == 0)
        hang_up();
}

static void turn_until(void *loop, hibloom_async *async, const struct outcome *outcomes, size_t n)
{
    const uint64_t until = test_now_ms() + 60000;

    for (size_t answered = 0; answered<n; answered += outcomes[answered].calls> 0) {
        assert_true(test_now_ms() < until);
        relay_step();
        loop_class->turn(loop);
        hibloom_async_tick(async);
    }
}

/* Blocking, and past the relay. */
static hibloom_store *open_blocking(void)
{
    hibloom_store *store;

    assert_ok(hibloom_connect(&store, redis_server_uri(server), NULL), NULL);
    return store;
}

static hibloom_async *open_store(void *loop, uint32_t retry_ms, size_t piece)
{
    relay.piece = piece;
    relay.left = SIZE_MAX;
    return async_store(loop, relay.listener.uri,
                       &(hibloom_connect_options){.size = sizeof(hibloom_connect_options),
                                                  .retry_ms = retry_ms,
                                                  .client_name = "pieces"}); /* the greeting has two answers then */
}

static hibloom_async_filter *open_through_relay(void *loop, hibloom_async *async, const char *name, const char *text)
{
    const hibloom_spec spec = test_spec(text);
    struct outcome opened = {0};

    assert_ok(hibloom_async_open(async, name, &spec, on_opened, &opened), NULL);
    turn_until(loop, async, &opened, 1);
    assert_int_equal(opened.status, HIBLOOM_OK);
    return opened.filter;
}

/* ---- Pieces --------------------------------------------------------------------------- */

/* Answers by integers, arrays, strings, and one that goes where the asker has room. */
static const char *const texts[] = {
    "capacity=100 error=0.01 seed=5",
    "capacity=100 error=0.01 seed=5 layout=blocked",
    "capacity=100 error=0.01 seed=5 segments=3",
    "capacity=100 error=0.01 seed=5 layout=partitioned",
};

static struct {
    hibloom_async_filter *filter;
    struct outcome outcomes[ITEMS];
    bool answers[ITEMS];
    size_t begun;
} chain;

/* Each answer begins the next look-up, while those behind it are still on their way. */
static void on_answered_ask(hibloom_status status, const bool *answers, size_t n, void *data)
{
    on_answered(status, answers, n, data);
    if (chain.begun == ITEMS)
        return;
    const size_t i = chain.begun++;
    chain.outcomes[i].answers = &chain.answers[i];
    assert_ok(hibloom_async_contains(chain.filter, &items[i], 1, on_answered_ask, &chain.outcomes[i]), NULL);
}

static void assert_answers_as_blocking(void *loop, hibloom_async *async, hibloom *filter, hibloom_async_filter *other)
{
    static bool expected[ITEMS], is_new[ITEMS];
    struct outcome added[2] = {{.answers = is_new}, {.answers = is_new + 30}}, meanwhile[ITEMS] = {0};
    hibloom_store *store = open_blocking();

    assert_ok(hibloom_add_many(filter, items, 60, expected), store);
    assert_ok(hibloom_async_add(other, items, 30, true, on_answered, &added[0]), NULL);
    turn_until(loop, async, added, 1);
    assert_ok(hibloom_async_add(other, items + 30, 30, true, on_answered, &added[1]), NULL);
    for (size_t i = 0; i < ITEMS; i++) { /* calls begin while half an answer is here */
        relay_step();
        loop_class->turn(loop);
        assert_ok(hibloom_async_contains(other, items, 1, on_answered, &meanwhile[i]), NULL);
    }
    turn_until(loop, async, added, 2);
    turn_until(loop, async, meanwhile, ITEMS);
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(meanwhile[i].status, HIBLOOM_OK);
    assert_memory_equal(expected, is_new, 60);
    assert_ok(hibloom_contains_many(filter, items, ITEMS, expected), store);
    memset(&chain, 0, sizeof chain);
    chain.filter = other;
    for (int i = 0; i < 8; i++) /* so many are on their way */
        on_answered_ask(HIBLOOM_OK, NULL, 1, &(struct outcome){0});
    turn_until(loop, async, chain.outcomes, ITEMS);
    assert_memory_equal(expected, chain.answers, ITEMS);
    assert_true(memchr(expected, true, ITEMS) != NULL && memchr(expected, false, ITEMS) != NULL);
    hibloom_store_free(store);
}

/* Single bytes, and of the sizes up to 9 each on one of the loops. */
static void answers_may_come_in_pieces_of_any_size(void **state)
{
    static size_t turn;
    hibloom_store *store = open_blocking();

    turn++;
    for (size_t piece = test_is_slow() ? 4 : 1; piece <= (test_is_slow() ? 6 : 9); piece++) {
        if (piece > 1 && piece % 3 != turn % 3)
            continue;
        void *loop = loop_class->open();
        hibloom_async *async = open_store(loop, 0, piece);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            char names[2][TEST_NAME_SIZE];
            hibloom *filter = test_open(store, test_name(names[0]), texts[i]);
            hibloom_async_filter *other = open_through_relay(loop, async, test_name(names[1]), texts[i]);
            assert_answers_as_blocking(loop, async, filter, other);
            hibloom_close(filter);
            hibloom_async_close(other);
        }
        hibloom_async_free(async);
        relay_step();
        close_loop(loop);
    }
    hibloom_store_free(store);
}

/* No answer passes; so nothing but the call itself makes the loop write it. */
static void a_call_is_sent_while_others_wait_for_answers(void **state)
{
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = open_store(loop, 0, 1000);
    hibloom_async_filter *filter = open_through_relay(loop, async, test_name(name), texts[0]);
    struct outcome asked[3] = {0};

    relay.piece = 0;
    for (int i = 0; i < 3; i++) {
        const size_t before = relay.requests;
        assert_ok(hibloom_async_contains(filter, items, 1, on_answered, &asked[i]), NULL);
        for (int turns = 0; turns < 1000 && relay.requests == before; turns++) {
            loop_class->turn(loop);
            relay_step();
        }
        assert_true(relay.requests > before);
        assert_int_equal(asked[i].calls, 0);
    }
    relay.piece = 1000;
    turn_until(loop, async, asked, 3);
    hibloom_async_free(async);
    relay_step();
    close_loop(loop);
}

/* ---- Cut off, or not asked for ----------------------------------------------------------- */

static void ask_all(hibloom_async_filter *filter, struct outcome *outcomes, bool *answers)
{
    memset(outcomes, 0, ITEMS * sizeof *outcomes);
    for (size_t i = 0; i < ITEMS; i++) {
        outcomes[i].answers = &answers[i];
        assert_ok(hibloom_async_contains(filter, &items[i], 1, on_answered, &outcomes[i]), NULL);
    }
}

static void ask_one(void *loop, hibloom_async *async, hibloom_async_filter *filter)
{
    struct outcome asked = {0};

    assert_ok(hibloom_async_contains(filter, items, 1, on_answered, &asked), NULL);
    turn_until(loop, async, &asked, 1);
    assert_int_equal(asked.status, HIBLOOM_OK);
}

/* All answers that came whole count; the others fail, or are asked for again. */
static void a_connection_may_die_in_the_middle_of_answers(void **state)
{
    static struct outcome outcomes[ITEMS];
    static bool answers[ITEMS];

    for (uint32_t retry_ms = 0; retry_ms <= 20000; retry_ms += 20000) {
        void *loop = loop_class->open();
        hibloom_async *async = open_store(loop, retry_ms, 1000);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            char name[TEST_NAME_SIZE];
            hibloom_async_filter *filter = open_through_relay(loop, async, test_name(name), texts[i]);
            struct outcome added = {0};
            assert_ok(hibloom_async_add(filter, items, ITEMS, false, on_answered, &added), NULL);
            turn_until(loop, async, &added, 1);
            for (size_t left = 1; left < 4000; left += test_is_slow() ? 1332 : 333) {
                ask_one(loop, async, filter); /* so there is a connection */
                ask_all(filter, outcomes, answers);
                relay.left = left;
                while (relay.client >= 0) {
                    relay_step();
                    loop_class->turn(loop);
                }
                relay.left = SIZE_MAX;
                turn_until(loop, async, outcomes, ITEMS);
                size_t failed = 0;
                for (size_t k = 0; k < ITEMS; k++) {
                    assert_int_equal(outcomes[k].calls, 1);
                    failed += outcomes[k].status == HIBLOOM_EIO;
                    assert_true(outcomes[k].status == HIBLOOM_EIO || (outcomes[k].status == HIBLOOM_OK && answers[k]));
                }
                assert_int_equal(failed > 0, retry_ms == 0);
            }
            hibloom_async_close(filter);
        }
        hibloom_async_free(async);
        relay_step();
        close_loop(loop);
    }
}

/* Behind an answer, together with it, or while nothing is on its way; the second is in no reply of RESP2. */
static void what_nobody_asked_for_ends_the_connection_and_nothing_else(void **state)
{
    static const char *const unasked[] = {":1\r\n",  ">2\r\n+a\r\n+b\r\n", "+OK\r\n",
                                          "$-1\r\n", "*1\r\n:1\r\n",       "-ERR why\r\n"};
    static struct outcome outcomes[ITEMS];
    static bool answers[ITEMS];
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    hibloom_async *async = open_store(loop, 0, 1000000);
    hibloom_async_filter *filter = open_through_relay(loop, async, test_name(name), texts[0]);

    for (size_t i = 0; i < 2 * sizeof unasked / sizeof *unasked; i++) {
        const int before = relay.client;
        if (i % 2 == 0) { /* in front of the answers: they are the wrong ones then */
            bytes_append(&relay.replies, unasked[i / 2], strlen(unasked[i / 2]));
            ask_all(filter, outcomes, answers);
            turn_until(loop, async, outcomes, ITEMS);
            for (size_t k = 0; k < ITEMS; k++)
                assert_true(outcomes[k].calls == 1 && outcomes[k].status != HIBLOOM_OK);
        } else {
            bytes_append(&relay.replies, unasked[i / 2], strlen(unasked[i / 2]));
        }
        for (int turns = 0; turns < 1000 && relay.client == before; turns++) {
            relay_step();
            loop_class->turn(loop);
        }
        ask_all(filter, outcomes, answers);
        turn_until(loop, async, outcomes, ITEMS);
        for (size_t k = 0; k < ITEMS; k++)
            assert_true(outcomes[k].calls == 1 && outcomes[k].status == HIBLOOM_OK);
    }
    hibloom_async_free(async);
    relay_step();
    close_loop(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_may_come_in_pieces_of_any_size),
        cmocka_unit_test(a_call_is_sent_while_others_wait_for_answers),
        cmocka_unit_test(a_connection_may_die_in_the_middle_of_answers),
        cmocka_unit_test(what_nobody_asked_for_ends_the_connection_and_nothing_else),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, tear_down);
}
