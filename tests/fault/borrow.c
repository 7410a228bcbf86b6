/* A borrowed connection stays its owner's: it is left as it was found after
 * each call, refused while something is under way on it, and neither closed
 * nor re-made when it dies. */
#include "support/proxied.h"
#include "support/scripted_server.h"
#include "support/subject.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { TIMEOUT_MS = 300 };

static redisContext *connect_to(const char *path)
{
    redisContext *context = redisConnectUnix(path);

    assert_non_null(context);
    assert_int_equal(context->err, 0);
    return context;
}

static void begin(struct subject *subject, redisContext *context, const struct variant *variant)
{
    hibloom_store *store;

    assert_ok(hibloom_borrow(&store, context), store);
    subject_open(subject, store, variant);
}

static void end(struct subject *subject, redisContext *context)
{
    subject_check(subject);
    subject_remove(subject);
    hibloom_store_free(subject->store);
    test_command(context, "PING");
    redisFree(context);
}

/* ---- As it was found ------------------------------------------------------------------- */

struct found {
    int fd, flags;
    const void *functions;
    void *privdata;
    struct timeval receive, send;
};

static struct found look_at(const redisContext *context)
{
    struct found found = { context->fd, context->flags, context->reader->fn, context->reader->privdata, { 0, 0 },
                           { 0, 0 } };
    socklen_t size = sizeof found.receive;

    assert_int_equal(getsockopt(context->fd, SOL_SOCKET, SO_RCVTIMEO, &found.receive, &size), 0);
    assert_int_equal(getsockopt(context->fd, SOL_SOCKET, SO_SNDTIMEO, &found.send, &size), 0);
    return found;
}

static void assert_as_found(const redisContext *context, const struct found *before)
{
    const struct found now = look_at(context);

    assert_int_equal(now.fd, before->fd);
    assert_int_equal(now.flags, before->flags);
    assert_ptr_equal(now.functions, before->functions);
    assert_ptr_equal(now.privdata, before->privdata);
    assert_memory_equal(&now.receive, &before->receive, sizeof now.receive);
    assert_memory_equal(&now.send, &before->send, sizeof now.send);
}

/* Alive too: nothing left to be sent or read, and its owner's own commands
 * get their own answers. */
static void assert_usable(redisContext *context)
{
    redisReply *reply;

    assert_int_equal(context->err, 0);
    assert_string_equal(context->errstr, "");
    assert_string_equal(context->obuf, "");
    assert_true(context->reader->pos >= context->reader->len);
    reply = redisCommand(context, "ECHO %s", "the owner's");
    assert_non_null(reply);
    assert_string_equal(reply->str, "the owner's");
    freeReplyObject(reply);
}

static void it_is_left_as_it_was_found_after_each_call(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v += 2) { /* borrowed ones speak SETBIT */
        redisContext *context = connect_to(redis_server_socket(server));
        struct subject subject;
        struct found before;
        int mine;

        assert_int_equal(redisSetTimeout(context, (struct timeval){ 7, 5000 }), REDIS_OK);
        context->reader->privdata = &mine;
        before = look_at(context);
        begin(&subject, context, &variants[v]);
        for (int i = 0; i < CALLS; i++) {
            assert_ok(calls[i].run(&subject), subject.store);
            assert_as_found(context, &before);
            assert_usable(context);
            subject_check(&subject);
        }
        end(&subject, context);
    }
}

/* Its answers go through functions that its owner has put into the reader. */
static void its_owners_reply_functions_are_his_again(void **state)
{
    redisContext *context = connect_to(redis_server_socket(server));
    redisReplyObjectFunctions theirs = *context->reader->fn;
    struct subject subject;

    (void)state;
    context->reader->fn = &theirs;
    begin(&subject, context, &variants[0]);
    for (int i = 0; i < CALLS; i++) {
        assert_ok(calls[i].run(&subject), subject.store);
        assert_ptr_equal(context->reader->fn, &theirs);
        subject_check(&subject);
    }
    end(&subject, context);
}

static void a_refusal_by_the_server_leaves_it_usable(void **state)
{
    redisContext *context = connect_to(proxy_socket(proxy));
    struct found before = look_at(context);
    struct subject subject;

    (void)state;
    begin(&subject, context, &variants[0]);
    for (int i = 0; i < CALLS; i++) {
        proxy_answer(proxy, "-LOADING it\r\n");
        assert_status(calls[i].run(&subject), HIBLOOM_ESERVER, subject.store);
        proxy_answer(proxy, NULL);
        assert_as_found(context, &before);
        assert_usable(context);
        subject_check(&subject);
    }
    end(&subject, context);
}

static void the_guards_errors_leave_it_usable(void **state)
{
    redisContext *context = connect_to(redis_server_socket(server));
    struct found before = look_at(context);
    struct subject subject;

    (void)state;
    begin(&subject, context, &variants[0]);
    for (int i = 0; i < CALLS; i++) {
        if (!calls[i].on_handle)
            continue;
        test_command(context, "DEL {%s}:spec", subject.name);
        assert_status(calls[i].run(&subject), HIBLOOM_ENOTFOUND, subject.store);
        assert_as_found(context, &before);
        assert_usable(context);
    }
    test_command(context, "DEL %s", subject.name);
    subject.maybe_removed = true;
    end(&subject, context);
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
    redisContext *context = connect_to(redis_server_socket(server));
    struct subject subject;

    (void)state;
    begin(&subject, context, &variants[0]);
    assert_int_equal(redisAppendCommand(context, "ECHO one"), REDIS_OK);
    assert_int_equal(redisAppendCommand(context, "ECHO two"), REDIS_OK);
    assert_refused(&subject); /* two commands wait to be sent */
    assert_next_reply(context, "one");
    assert_refused(&subject); /* one reply waits to be read */
    assert_next_reply(context, "two");
    end(&subject, context);
}

static void what_cannot_be_borrowed_is_refused(void **state)
{
    redisContext *context = redisConnectUnixNonBlock(redis_server_socket(server));
    hibloom_store *store = NULL;

    (void)state;
    assert_non_null(context);
    assert_status(hibloom_borrow(&store, NULL), HIBLOOM_EINVAL, store);
    hibloom_store_free(store);
    store = NULL;
    assert_status(hibloom_borrow(&store, context), HIBLOOM_EINVAL, store);
    hibloom_store_free(store);
    redisFree(context);
}

/* A transaction cannot be seen from outside: the answers give it away. */
static void no_answer_comes_out_of_a_transaction_of_its_owner(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        redisContext *context = connect_to(redis_server_socket(server));
        struct subject subject;

        begin(&subject, context, &variants[0]);
        test_command(context, "MULTI");
        assert_int_not_equal(calls[i].run(&subject), HIBLOOM_OK);
        subject_close(&subject);
        hibloom_store_free(subject.store);
        redisFree(context);
    }
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
    redisContext *context = connect_to(proxy_socket(proxy));
    struct subject subject;
    struct found before;
    unsigned connections;

    assert_int_equal(redisSetTimeout(context, (struct timeval){ 0, TIMEOUT_MS * 1000 }), REDIS_OK);
    before = look_at(context);
    begin(&subject, context, &variants[0]);
    connections = proxy_connections(proxy);
    if (cut)
        proxy_cut(proxy, PROXY_REPLIES, 2);
    else
        proxy_hold(proxy, PROXY_REPLIES, 2);
    assert_status(call->run(&subject), status, subject.store);
    assert_dead(&subject, context, &before);
    assert_int_equal(proxy_connections(proxy), connections);
    assert_int_equal(redisReconnect(context), REDIS_OK);
    end(&subject, context);
}

static void after_an_io_error_it_is_dead_until_its_owner_reconnects(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++)
        die_and_come_back(&calls[i], true, HIBLOOM_EIO);
}

static void after_a_time_out_it_is_dead_until_its_owner_reconnects(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++)
        die_and_come_back(&calls[i], false, HIBLOOM_ETIMEDOUT);
}

/* The pipe is so narrow that the commands themselves do not fit: it is the
 * sending that waits for the server. */
static void a_time_out_while_sending_kills_it_too(void **state)
{
    enum { BATCH = 5000, BYTES = 4096 };
    static hibloom_item items[BATCH];
    const int narrow = BYTES;
    redisContext *context = connect_to(redis_server_socket(server));
    struct subject subject;
    struct found before;

    (void)state;
    for (int i = 0; i < BATCH; i++)
        items[i] = (hibloom_item){ &items[i], sizeof items[i] };
    assert_int_equal(setsockopt(context->fd, SOL_SOCKET, SO_SNDBUF, &narrow, sizeof narrow), 0);
    assert_int_equal(redisSetTimeout(context, (struct timeval){ 0, TIMEOUT_MS * 1000 }), REDIS_OK);
    before = look_at(context);
    begin(&subject, context, &variants[0]);
    assert_ok(hibloom_add_many(subject.filter, items, BATCH, NULL), subject.store);
    redis_server_pause(server);
    assert_status(hibloom_add_many(subject.filter, items, BATCH, NULL), HIBLOOM_ETIMEDOUT, subject.store);
    redis_server_resume(server);
    assert_dead(&subject, context, &before);
    assert_int_equal(redisReconnect(context), REDIS_OK);
    subject.maybe_empty = subject.maybe_removed = false; /* those calls found it dead */
    assert_ok(hibloom_drop(subject.filter), subject.store); /* it is too full to tell items apart */
    subject.maybe_removed = true;
    end(&subject, context);
}

/* Its owner has set no time-out, so that none runs out; the death of the
 * server ends the wait all the same, and raises no SIGPIPE. */
static void a_killed_server_kills_it_and_nothing_else(void **state)
{
    struct redis_server *mortal = redis_server_start(NULL);
    redisContext *context = connect_to(redis_server_socket(mortal));
    struct found before = look_at(context);
    struct subject subject;

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        begin(&subject, context, &variants[0]);
        redis_server_kill(mortal);
        assert_status(calls[i].run(&subject), HIBLOOM_EIO, subject.store);
        assert_dead(&subject, context, &before);
        redis_server_restart(mortal);
        assert_int_equal(redisReconnect(context), REDIS_OK);
        before = look_at(context);
        subject.maybe_removed = true;
        subject_check(&subject);
        subject_remove(&subject);
        hibloom_store_free(subject.store);
    }
    redisFree(context);
    redis_server_stop(mortal);
}

/* Nonsense from the server: whether or not the connection goes on, no answer
 * after it may be another's. */
static void after_nonsense_it_is_dead_or_unshifted(void **state)
{
    static const char *const nonsense[] = { "*1\r\n+x\r\n", "?\r\n", "*3\r\n+x\r\n-y\r\n$1\r\nz\r\n" };

    (void)state;
    for (int n = 0; n < 3; n++)
        for (int i = 0; i < CALLS; i++) {
            redisContext *context = connect_to(proxy_socket(proxy));
            struct subject subject;

            begin(&subject, context, &variants[0]);
            proxy_replace(proxy, 0, 1, nonsense[n]);
            assert_int_not_equal(calls[i].run(&subject), HIBLOOM_OK);
            proxy_heal(proxy);
            if (context->err != 0)
                assert_int_equal(redisReconnect(context), REDIS_OK);
            assert_usable(context);
            end(&subject, context);
        }
}

/* ---- Given up in the middle of an answer --------------------------------------------------- */

/* A bare bitmap that is not there is joined; then an item is added, and of the
 * array that answers it only the beginning comes. What of that is in the
 * reader is nothing that its owner could free. */
#define NEITHER "$-1\r\n:0\r\n" /* to a guard: no spec, no bitmap */
#define BREAKS_OFF(literal) SCRIPT_ACCEPT, SCRIPT_READ(2), SCRIPT_SEND(NEITHER), SCRIPT_READ(5), \
                            SCRIPT_SEND(NEITHER literal)

static const struct script_step falls_silent[] = { BREAKS_OFF("*4\r\n:1\r\n"), SCRIPT_END };
static const struct script_step falls_silent_inside[] = { BREAKS_OFF("*4\r\n*2\r\n:1\r\n"), SCRIPT_END };
static const struct script_step hangs_up[] = { BREAKS_OFF("*4\r\n:1\r\n"), SCRIPT_CLOSE, SCRIPT_END };
static const struct script_step hangs_up_before_the_first[] = { BREAKS_OFF("*4\r\n"), SCRIPT_CLOSE, SCRIPT_END };
static const struct script_step talks_nonsense[] = { BREAKS_OFF("*4\r\n:1\r\n?\r\n"), SCRIPT_END };

static const struct {
    const struct script_step *script;
    hibloom_status status;
} broken_off[] = {
    { falls_silent, HIBLOOM_ETIMEDOUT },
    { falls_silent_inside, HIBLOOM_ETIMEDOUT },
    { hangs_up, HIBLOOM_EIO },
    { hangs_up_before_the_first, HIBLOOM_EIO },
    { talks_nonsense, HIBLOOM_EPROTO },
};

static hibloom *attach_any(hibloom_store *store)
{
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, variants[0].spec), NULL);
    assert_ok(hibloom_attach(&filter, store, "any", &spec), store);
    return filter;
}

static void break_off(const struct script_step *script, hibloom_status status, bool reconnects)
{
    struct scripted_server *scripted = scripted_server_start(script);
    redisContext *context = connect_to(scripted_server_socket(scripted));
    struct found before;
    hibloom_store *store;
    hibloom *filter;
    bool is_new;

    assert_int_equal(redisSetTimeout(context, (struct timeval){ 0, 500000 }), REDIS_OK);
    before = look_at(context);
    assert_ok(hibloom_borrow(&store, context), store);
    filter = attach_any(store);
    assert_status(hibloom_add(filter, "x", 1, &is_new), status, store);
    assert_int_not_equal(context->err, 0);
    assert_ptr_equal(context->reader->fn, before.functions);
    hibloom_close(filter);
    if (reconnects) {
        assert_int_equal(redisReconnect(context), REDIS_OK);
        hibloom_close(attach_any(store)); /* the script has begun anew */
    }
    hibloom_store_free(store);
    redisFree(context);
    scripted_server_stop(scripted);
}

static void its_owner_can_free_or_reconnect_it_after_half_an_array(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken_off / sizeof broken_off[0]; i++)
        for (int reconnects = 0; reconnects < 2; reconnects++)
            break_off(broken_off[i].script, broken_off[i].status, reconnects);
}

/* ---- Pushes ---------------------------------------------------------------------------------
 *
 * Under RESP3, which hiredis knows since 1.0, the server sends its owner
 * messages between the answers if he has asked for them. */
#if HIREDIS_MAJOR >= 1

struct pushes {
    const char *name; /* of the filter that others change */
    unsigned of_spec, of_bitmap, strange;
};

/* As Redis says it: >2 invalidate [key]. */
static void hear_push(void *privdata, void *object)
{
    struct pushes *pushes = privdata;
    redisReply *push = object;
    char spec[TEST_NAME_SIZE + 8];

    snprintf(spec, sizeof spec, "{%s}:spec", pushes->name);
    if (push->type != REDIS_REPLY_PUSH || push->elements != 2 || push->element[0]->type != REDIS_REPLY_STRING ||
        strcmp(push->element[0]->str, "invalidate") != 0 || push->element[1]->type != REDIS_REPLY_ARRAY ||
        push->element[1]->elements != 1)
        pushes->strange++;
    else if (strcmp(push->element[1]->element[0]->str, spec) == 0)
        pushes->of_spec++;
    else if (strncmp(push->element[1]->element[0]->str, pushes->name, strlen(pushes->name)) == 0)
        pushes->of_bitmap++;
    freeReplyObject(push);
}

static redisContext *connect_resp3(const char *path, struct pushes *pushes)
{
    redisContext *context = connect_to(path);

    test_command(context, "HELLO 3");
    test_command(context, "CLIENT TRACKING ON");
    *pushes = (struct pushes){ .name = "" };
    context->privdata = pushes;
    (void)redisSetPushCallback(context, hear_push);
    return context;
}

/* What our own commands change is pushed as well, behind their answers. */
static void assert_pushes_come_through(const char *path, const struct variant *variant)
{
    struct pushes pushes;
    redisContext *context = connect_resp3(path, &pushes);
    struct subject subject;

    begin(&subject, context, variant);
    pushes.name = subject.name;
    for (int i = 0; i < CALLS; i++) {
        const unsigned before = pushes.of_spec + pushes.of_bitmap;
        redisReply *reply;

        assert_ok(calls[i].run(&subject), subject.store);
        reply = redisCommand(context, "ECHO %s", "the owner's"); /* hiredis itself takes pushes before it */
        assert_non_null(reply);
        assert_string_equal(reply->str, "the owner's");
        freeReplyObject(reply);
        if (calls[i].undoes)
            assert_true(pushes.of_spec + pushes.of_bitmap > before);
        subject_check(&subject);
    }
    assert_true(pushes.of_spec > 0 && pushes.of_bitmap > 0);
    assert_int_equal(pushes.strange, 0);
    end(&subject, context);
}

static void pushes_reach_its_owner_and_disturb_no_answer(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v += 2)
        assert_pushes_come_through(redis_server_socket(server), &variants[v]);
}

static void pushes_in_pieces_reach_its_owner_too(void **state)
{
    (void)state;
    proxy_drip(proxy, 1);
    assert_pushes_come_through(proxy_socket(proxy), &variants[0]);
    proxy_heal(proxy);
}

/* hiredis' own callback throws them away; without one they are in nobody's way. */
static void pushes_that_its_owner_does_not_want_disturb_no_answer(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct pushes pushes;
        redisContext *context = connect_resp3(redis_server_socket(server), &pushes);
        redisContext *plain = connect_to(redis_server_socket(server));
        struct subject subject;

        (void)redisSetPushCallback(context, own ? plain->push_cb : NULL);
        begin(&subject, context, &variants[0]);
        for (int i = 0; i < CALLS; i++) {
            assert_ok(calls[i].run(&subject), subject.store);
            subject_check(&subject);
        }
        end(&subject, context);
        redisFree(plain);
    }
}

#define HALF_A_PUSH ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3"

static void attach_between_pushes(const struct script_step *script, hibloom_status status)
{
    struct scripted_server *scripted = scripted_server_start(script);
    redisContext *context = connect_to(scripted_server_socket(scripted));
    struct pushes pushes = { .name = "any" };
    hibloom_store *store;
    hibloom *filter;
    bool found;

    context->privdata = &pushes;
    (void)redisSetPushCallback(context, hear_push);
    assert_int_equal(redisSetTimeout(context, (struct timeval){ 0, 500000 }), REDIS_OK);
    assert_ok(hibloom_borrow(&store, context), store);
    filter = attach_any(store);
    test_sleep_ms(300); /* for the push to be there, or its half, before anything is asked */
    assert_status(hibloom_contains(filter, "x", 1, &found), status, store);
    assert_int_equal(pushes.of_bitmap, status == HIBLOOM_ENOTFOUND);
    assert_int_equal(pushes.strange, 0);
    hibloom_close(filter);
    hibloom_store_free(store);
    redisFree(context);
    scripted_server_stop(scripted);
}

/* The rest of it comes slowly, or never; then its owner has to get rid of the half. */
static void half_a_push_behind_an_answer(void **state)
{
    static const struct script_step whole[] = {
        SCRIPT_ACCEPT, SCRIPT_READ(2), SCRIPT_SEND(NEITHER HALF_A_PUSH "\r\nany\r\n"), SCRIPT_READ(6),
        SCRIPT_SEND(":0\r\n:0\r\n:0\r\n:0\r\n" NEITHER), SCRIPT_END
    };
    static const struct script_step slow[] = {
        SCRIPT_ACCEPT, SCRIPT_READ(2), SCRIPT_SEND(NEITHER HALF_A_PUSH), SCRIPT_DRIP("\r\nany\r\n", 60),
        SCRIPT_READ(6), SCRIPT_SEND(":0\r\n:0\r\n:0\r\n:0\r\n" NEITHER), SCRIPT_END
    };
    static const struct script_step silent[] = { SCRIPT_ACCEPT, SCRIPT_READ(2), SCRIPT_SEND(NEITHER HALF_A_PUSH),
                                                 SCRIPT_END };
    static const struct script_step none[] = { SCRIPT_ACCEPT, SCRIPT_READ(2), SCRIPT_SEND(NEITHER ">-1\r\n"),
                                               SCRIPT_END };

    (void)state;
    attach_between_pushes(whole, HIBLOOM_ENOTFOUND); /* there is no bitmap yet */
    attach_between_pushes(slow, HIBLOOM_ENOTFOUND);
    attach_between_pushes(silent, HIBLOOM_ETIMEDOUT);
    attach_between_pushes(none, HIBLOOM_EPROTO);
}

#else

static void skip_without_resp3(void **state)
{
    (void)state;
    print_message("hiredis %d.%d does not know RESP3\n", HIREDIS_MAJOR, HIREDIS_MINOR);
    skip();
}

#define pushes_reach_its_owner_and_disturb_no_answer skip_without_resp3
#define pushes_in_pieces_reach_its_owner_too skip_without_resp3
#define pushes_that_its_owner_does_not_want_disturb_no_answer skip_without_resp3
#define half_a_push_behind_an_answer skip_without_resp3

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_left_as_it_was_found_after_each_call),
        cmocka_unit_test(its_owners_reply_functions_are_his_again),
        cmocka_unit_test(a_refusal_by_the_server_leaves_it_usable),
        cmocka_unit_test(the_guards_errors_leave_it_usable),
        cmocka_unit_test(it_is_refused_while_commands_or_replies_are_pending),
        cmocka_unit_test(what_cannot_be_borrowed_is_refused),
        cmocka_unit_test(no_answer_comes_out_of_a_transaction_of_its_owner),
        cmocka_unit_test(after_an_io_error_it_is_dead_until_its_owner_reconnects),
        cmocka_unit_test(after_a_time_out_it_is_dead_until_its_owner_reconnects),
        cmocka_unit_test(a_time_out_while_sending_kills_it_too),
        cmocka_unit_test(a_killed_server_kills_it_and_nothing_else),
        cmocka_unit_test(after_nonsense_it_is_dead_or_unshifted),
        cmocka_unit_test(its_owner_can_free_or_reconnect_it_after_half_an_array),
        cmocka_unit_test(pushes_reach_its_owner_and_disturb_no_answer),
        cmocka_unit_test(pushes_in_pieces_reach_its_owner_too),
        cmocka_unit_test(pushes_that_its_owner_does_not_want_disturb_no_answer),
        cmocka_unit_test(half_a_push_behind_an_answer),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
