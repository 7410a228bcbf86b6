/* A borrowed connection stays its owner's: it is left as it was found after each call, refused while something is under
 * way on it, and neither closed nor re-made when it dies. */
#include "support/borrowed.h"
#include "support/served.h"
#include "support/scripted_server.h"
#include "support/temp_dir.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Its owner's time-out: none, but while the server is silent. A busy machine has its time. */
enum { NONE_MS = 0, TIMEOUT_MS = 300 };

static void set_timeout(redisContext *context, int ms)
{
    assert_int_equal(redisSetTimeout(context, (struct timeval){0, ms * 1000}), REDIS_OK);
}

static void reconnect(redisContext *context)
{
    set_timeout(context, NONE_MS);
    assert_int_equal(redisReconnect(context), REDIS_OK);
}

/* ---- As it was found ------------------------------------------------------------------- */

/* Also the functions that its owner has put into the reader. */
static void it_is_left_as_it_was_found_after_each_call(void **state)
{
    for (int v = 0; v < VARIANTS; v += 2) { /* borrowed ones speak SETBIT */
        redisContext *context = connect_owner(redis_server_socket(server));
        redisReplyObjectFunctions theirs = *context->reader->fn;
        struct subject subject;
        int mine;

        assert_int_equal(redisSetTimeout(context, (struct timeval){7, 5000}), REDIS_OK);
        context->reader->fn = &theirs;
        context->reader->privdata = &mine;
        struct found before = look_at(context);
        borrow_begin(&subject, context, &variants[v]);
        for (int i = 0; i < CALLS; i++) {
            assert_ok(calls[i].run(&subject), subject.store);
            assert_as_found(context, &before);
            assert_usable(context);
            subject_check(&subject);
        }
        borrow_end(&subject, context);
    }
}

/* The first call fails before it sends anything. */
static void it_need_not_have_been_used(void **state)
{
    redisContext *context = connect_owner(redis_server_socket(server));
    hibloom_store *store;
    hibloom *filter = NULL;

    assert_ok(hibloom_borrow(&store, context, NULL), store);
    assert_status(hibloom_import_file(&filter, store, "", "/dev/null"), HIBLOOM_EINVAL, store);
    assert_null(filter);
    assert_usable(context);
    hibloom_store_free(store);
    redisFree(context);
}

static void a_refusal_by_the_server_leaves_it_usable(void **state)
{
    redisContext *context = connect_owner(proxy_socket(proxy));
    struct found before = look_at(context);
    struct subject subject;

    borrow_begin(&subject, context, &variants[0]);
    for (int i = 0; i < CALLS; i++) {
        proxy_answer(proxy, "-LOADING it\r\n");
        assert_status(calls[i].run(&subject), HIBLOOM_EUNAVAILABLE, subject.store);
        proxy_answer(proxy, NULL);
        assert_as_found(context, &before);
        assert_usable(context);
        subject_check(&subject);
    }
    borrow_end(&subject, context);
}

static void the_guards_errors_leave_it_usable(void **state)
{
    redisContext *context = connect_owner(redis_server_socket(server));
    struct found before = look_at(context);
    struct subject subject;

    borrow_begin(&subject, context, &variants[0]);
    for (int i = 0; i < CALLS; i++) {
        if (!calls[i].on_handle)
            continue;
        test_command(context, "DEL %s", subject.name);
        assert_status(calls[i].run(&subject), HIBLOOM_ENOTFOUND, subject.store);
        assert_as_found(context, &before);
        assert_usable(context);
    }
    subject.maybe_removed = true;
    borrow_end(&subject, context);
}

/* Whole filters, too: replaced, merged from memory, saved and loaded. */
static void whole_filters_leave_it_as_it_was_found(void **state)
{
    redisContext *context = connect_owner(redis_server_socket(server));
    const struct found before = look_at(context);
    char *dir = temp_dir_make(), *file = temp_dir_path(dir, "saved");
    hibloom_store *store, *memory;
    bool found;

    assert_ok(hibloom_borrow(&store, context, NULL), store);
    assert_ok(hibloom_connect(&memory, "memory:", NULL), memory);
    for (int v = 0; v < VARIANTS; v += 2) {
        hibloom *from = test_open(memory, "from", variants[v].spec),
                *filter = test_open(store, "aside", variants[v].spec);
        assert_ok(hibloom_add(from, "x", 1, NULL), memory);
        assert_ok(hibloom_merge(filter, from), store);
        assert_as_found(context, &before);
        assert_ok(hibloom_save(filter, file), store);
        assert_as_found(context, &before);
        assert_ok(hibloom_clear(filter), store);
        assert_ok(hibloom_restore(filter, file), store);
        assert_as_found(context, &before);
        assert_ok(hibloom_replace(filter, "seen"), store);
        assert_as_found(context, &before);
        assert_usable(context);
        assert_ok(hibloom_contains(filter, "x", 1, &found), store);
        assert_true(found);
        assert_ok(hibloom_drop(filter), store);
        assert_ok(hibloom_drop(from), memory);
        hibloom_close(filter);
        hibloom_close(from);
    }
    hibloom_store_free(memory);
    hibloom_store_free(store);
    redisFree(context);
    free(file);
    temp_dir_remove(dir);
}

/* ---- Refused ------------------------------------------------------------------------------ */

static void assert_refused(struct subject *subject)
{
    for (int i = 0; i < CALLS; i++)
        assert_status(calls[i].run(subject), HIBLOOM_EINVAL, subject->store);
    assert_string_not_equal(hibloom_store_error(subject->store), "");
    subject->maybe_empty = subject->maybe_removed = false; /* nothing was sent */
}

static void assert_next_reply(redisContext *context, const char *text)
{
    void *object;
    redisReply *reply;

    assert_int_equal(redisGetReply(context, &object), REDIS_OK);
    reply = object;
    assert_string_equal(reply->str, text);
    freeReplyObject(reply);
}

static void it_is_refused_while_commands_or_replies_are_pending(void **state)
{
    redisContext *context = connect_owner(redis_server_socket(server));
    struct subject subject;

    borrow_begin(&subject, context, &variants[0]);
    assert_int_equal(redisAppendCommand(context, "ECHO one"), REDIS_OK);
    assert_int_equal(redisAppendCommand(context, "ECHO two"), REDIS_OK);
    assert_refused(&subject); /* two commands wait to be sent */
    assert_next_reply(context, "one");
    assert_refused(&subject); /* one reply waits to be read */
    assert_next_reply(context, "two");
    borrow_end(&subject, context);
}

static void what_cannot_be_borrowed_is_refused(void **state)
{
    redisContext *context = redisConnectUnixNonBlock(redis_server_socket(server));
    hibloom_store *store = NULL;

    assert_non_null(context);
    assert_status(hibloom_borrow(&store, NULL, NULL), HIBLOOM_EINVAL, store);
    hibloom_store_free(store);
    store = NULL;
    assert_status(hibloom_borrow(&store, context, NULL), HIBLOOM_EINVAL, store);
    hibloom_store_free(store);
    redisFree(context);
}

/* Those of the calls are; those of the connection are its owner's. */
static void it_takes_the_options_that_make_sense_for_it(void **state)
{
    static const char *const good[] = {"commands", "bitfield", NULL}, *const bad[] = {"command_timeout", "1s", NULL};
    hibloom_setup setup = {.size = sizeof setup, .options = good};
    redisContext *context = connect_owner(redis_server_socket(server));
    hibloom_store *store = NULL;
    bool found;

    assert_ok(hibloom_borrow(&store, context, &setup), store);
    assert_string_equal(hibloom_store_option(store, "commands"), "bitfield");
    assert_null(hibloom_store_option(store, "command_timeout"));
    test_item_by_item(store, true);
    hibloom *filter = test_open(store, TEST_NAME, variants[0].spec);
    const long long before = redis_server_calls_of(redis, "bitfield_ro");
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_int_equal(redis_server_calls_of(redis, "bitfield_ro"), before + 1);
    assert_dropped_last(filter, store);
    setup.options = bad;
    assert_status(hibloom_borrow(&store, context, &setup), HIBLOOM_EINVAL, store);
    assert_string_equal(hibloom_store_error(store), "command_timeout: not for a borrowed connection");
    hibloom_store_free(store);
    redisFree(context);
}

/* A transaction cannot be seen from outside: the answers give it away. What is in
 * it stays its owner's: he throws it away, and nothing has been done. */
static void run_in_transaction(const struct variant *variant, const struct call *call)
{
    redisContext *context = connect_owner(redis_server_socket(server));
    struct subject subject;

    borrow_begin(&subject, context, variant);
    test_command(redis, "SET owners 0");
    const long long before = served_digest();
    test_command(context, "MULTI");
    test_command(context, "INCR owners");
    assert_status(call->run(&subject), HIBLOOM_EPROTO, subject.store);
    assert_int_equal(context->err, 0);
    test_command(context, "DISCARD"); /* an error if there were none open any more */
    if (served_digest() != before)
        fail_msg("%s, %s: something was carried out", variant->name, call->name);
    assert_usable(context);
    subject.maybe_empty = subject.maybe_removed = false;
    borrow_end(&subject, context);
}

static void a_transaction_of_its_owner_is_never_carried_out(void **state)
{
    for (int v = 0; v < VARIANTS; v++)
        for (int i = 0; i < CALLS; i++)
            run_in_transaction(&variants[v], &calls[i]);
}

/* ---- Dead ----------------------------------------------------------------------------------- */

/* Its owner too must see that it is dead, or he would read our answers. */
static void assert_dead(struct subject *subject, redisContext *context, const struct found *before)
{
    assert_int_not_equal(context->err, 0);
    assert_string_not_equal(context->errstr, "");
    assert_ptr_equal(context->reader->fn, before->functions);
    assert_ptr_equal(context->reader->privdata, before->privdata);
    assert_null(redisCommand(context, "PING"));
    for (int i = 0; i < CALLS; i++)
        assert_status(calls[i].run(subject), HIBLOOM_EIO, subject->store);
    assert_string_not_equal(hibloom_store_error(subject->store), "");
}

static void die_and_come_back(const struct call *call, bool cut, hibloom_status status)
{
    redisContext *context = connect_owner(proxy_socket(proxy));
    struct subject subject;

    struct found before = look_at(context);
    borrow_begin(&subject, context, &variants[0]);
    unsigned connections = proxy_connections(proxy);
    if (cut) {
        proxy_cut(proxy, PROXY_REPLIES, 2);
    } else {
        set_timeout(context, TIMEOUT_MS);
        proxy_hold(proxy, PROXY_REPLIES, 2);
    }
    assert_status(call->run(&subject), status, subject.store);
    assert_dead(&subject, context, &before);
    assert_int_equal(proxy_connections(proxy), connections);
    reconnect(context);
    borrow_end(&subject, context);
}

static void after_an_io_error_it_is_dead_until_its_owner_reconnects(void **state)
{
    for (int i = 0; i < CALLS; i++)
        die_and_come_back(&calls[i], true, HIBLOOM_EIO);
}

static void after_a_time_out_it_is_dead_until_its_owner_reconnects(void **state)
{
    for (int i = 0; i < CALLS; i++)
        die_and_come_back(&calls[i], false, HIBLOOM_ETIMEDOUT);
}

/* The pipe is so narrow that the commands themselves do not fit: it is the sending that waits for the server. */
static void a_time_out_while_sending_kills_it_too(void **state)
{
    enum { BATCH = 5000, BYTES = 4096 };
    static hibloom_item items[BATCH];
    const int narrow = BYTES;
    redisContext *context = connect_owner(redis_server_socket(server));
    struct subject subject;

    for (int i = 0; i < BATCH; i++)
        items[i] = (hibloom_item){&items[i], sizeof items[i]};
    assert_int_equal(setsockopt(context->fd, SOL_SOCKET, SO_SNDBUF, &narrow, sizeof narrow), 0);
    struct found before = look_at(context);
    borrow_begin(&subject, context, &variants[0]);
    assert_ok(hibloom_add_many(subject.filter, items, BATCH, NULL), subject.store);
    set_timeout(context, TIMEOUT_MS);
    redis_server_pause(server);
    assert_status(hibloom_add_many(subject.filter, items, BATCH, NULL), HIBLOOM_ETIMEDOUT, subject.store);
    redis_server_resume(server);
    assert_dead(&subject, context, &before);
    reconnect(context);
    subject.maybe_empty = subject.maybe_removed = false;    /* those calls found it dead */
    assert_ok(hibloom_drop(subject.filter), subject.store); /* it is too full to tell items apart */
    subject.maybe_removed = true;
    borrow_end(&subject, context);
}

/* Nonsense from the server: whether or not the connection goes on, no answer after it may be another's. */
static void after_nonsense_it_is_dead_or_unshifted(void **state)
{
    static const char *const nonsense[] = {"*1\r\n+x\r\n", "?\r\n", "*3\r\n+x\r\n-y\r\n$1\r\nz\r\n"};

    for (int n = 0; n < 3; n++)
        for (int i = 0; i < CALLS; i++) {
            redisContext *context = connect_owner(proxy_socket(proxy));
            struct subject subject;

            borrow_begin(&subject, context, &variants[0]);
            proxy_replace(proxy, 0, 1, nonsense[n]);
            assert_int_not_equal(calls[i].run(&subject), HIBLOOM_OK);
            proxy_heal(proxy);
            if (context->err != 0)
                assert_int_equal(redisReconnect(context), REDIS_OK);
            assert_usable(context);
            borrow_end(&subject, context);
        }
}

/* ---- Given up in the middle of an answer --------------------------------------------------- */

/* A bare bitmap that is not there is joined; then an item is added, and of the array that answers it only the beginning
 * comes. What of that is in the reader is nothing that its owner could free. */
#define BREAKS_OFF(literal) SCRIPT_ACCEPT, SCRIPT_JOIN(ABSENT), SCRIPT_READ(5), SCRIPT_SEND(ABSENT literal)

static const struct script_step falls_silent[] = {BREAKS_OFF("*4\r\n:1\r\n"), SCRIPT_END};
static const struct script_step falls_silent_inside[] = {BREAKS_OFF("*4\r\n*2\r\n:1\r\n"), SCRIPT_END};
static const struct script_step hangs_up[] = {BREAKS_OFF("*4\r\n:1\r\n"), SCRIPT_CLOSE, SCRIPT_END};
static const struct script_step hangs_up_before_the_first[] = {BREAKS_OFF("*4\r\n"), SCRIPT_CLOSE, SCRIPT_END};
static const struct script_step talks_nonsense[] = {BREAKS_OFF("*4\r\n:1\r\n?\r\n"), SCRIPT_END};

static const struct {
    const struct script_step *script;
    hibloom_status status;
} broken_off[] = {
    {falls_silent, HIBLOOM_ETIMEDOUT},        {falls_silent_inside, HIBLOOM_ETIMEDOUT}, {hangs_up, HIBLOOM_EIO},
    {hangs_up_before_the_first, HIBLOOM_EIO}, {talks_nonsense, HIBLOOM_EPROTO},
};

static void break_off(const struct script_step *script, hibloom_status status, bool reconnects)
{
    struct scripted_server *scripted = scripted_server_start(script);
    redisContext *context = connect_owner(scripted_server_socket(scripted));
    hibloom_store *store;
    bool is_new;

    struct found before = look_at(context);
    assert_ok(hibloom_borrow(&store, context, NULL), store);
    hibloom *filter = attach_any(store);
    if (status == HIBLOOM_ETIMEDOUT)
        set_timeout(context, TIMEOUT_MS);
    assert_status(hibloom_add(filter, "x", 1, &is_new), status, store);
    assert_int_not_equal(context->err, 0);
    assert_ptr_equal(context->reader->fn, before.functions);
    hibloom_close(filter);
    if (reconnects) {
        reconnect(context);
        hibloom_close(attach_any(store)); /* the script has begun anew */
    }
    hibloom_store_free(store);
    redisFree(context);
    scripted_server_stop(scripted);
}

static void its_owner_can_free_or_reconnect_it_after_half_an_array(void **state)
{
    for (size_t i = 0; i < sizeof broken_off / sizeof broken_off[0]; i++)
        for (int reconnects = 0; reconnects < 2; reconnects++)
            break_off(broken_off[i].script, broken_off[i].status, reconnects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_left_as_it_was_found_after_each_call),
        cmocka_unit_test(it_need_not_have_been_used),
        cmocka_unit_test(whole_filters_leave_it_as_it_was_found),
        cmocka_unit_test(a_refusal_by_the_server_leaves_it_usable),
        cmocka_unit_test(the_guards_errors_leave_it_usable),
        cmocka_unit_test(it_is_refused_while_commands_or_replies_are_pending),
        cmocka_unit_test(what_cannot_be_borrowed_is_refused),
        cmocka_unit_test(it_takes_the_options_that_make_sense_for_it),
        cmocka_unit_test(a_transaction_of_its_owner_is_never_carried_out),
        cmocka_unit_test(after_an_io_error_it_is_dead_until_its_owner_reconnects),
        cmocka_unit_test(after_a_time_out_it_is_dead_until_its_owner_reconnects),
        cmocka_unit_test(a_time_out_while_sending_kills_it_too),
        cmocka_unit_test(after_nonsense_it_is_dead_or_unshifted),
        cmocka_unit_test(its_owner_can_free_or_reconnect_it_after_half_an_array),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
