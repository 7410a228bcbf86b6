/* Under RESP3, which hiredis knows since 1.0, the server sends the owner of a borrowed connection messages between the
 * answers if he has asked for them: they reach him and disturb no answer. */
#include "support/borrowed.h"
#include "support/served.h"
#include "support/scripted_server.h"

#include <stdio.h>
#include <string.h>

#if HIREDIS_MAJOR >= 1

struct pushes {
    const char *name; /* of the filter that others change */
    unsigned of_filter, strange;
};

/* As Redis says it: >2 invalidate [key]. */
static void hear_push(void *privdata, void *object)
{
    struct pushes *pushes = privdata;
    redisReply *push = object;

    if (push->type != REDIS_REPLY_PUSH || push->elements != 2 || push->element[0]->type != REDIS_REPLY_STRING ||
        strcmp(push->element[0]->str, "invalidate") != 0 || push->element[1]->type != REDIS_REPLY_ARRAY ||
        push->element[1]->elements != 1)
        pushes->strange++;
    else if (strncmp(push->element[1]->element[0]->str, pushes->name, strlen(pushes->name)) == 0)
        pushes->of_filter++;
    freeReplyObject(push);
}

static redisContext *connect_resp3(const char *path, struct pushes *pushes)
{
    redisContext *context = connect_owner(path);

    test_command(context, "HELLO 3");
    test_command(context, "CLIENT TRACKING ON");
    *pushes = (struct pushes){.name = ""};
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

    borrow_begin(&subject, context, variant);
    pushes.name = subject.name;
    for (int i = 0; i < CALLS; i++) {
        const unsigned before = pushes.of_filter;
        redisReply *reply;

        assert_ok(calls[i].run(&subject), subject.store);
        reply = redisCommand(context, "ECHO %s", "the owner's"); /* hiredis itself takes pushes before it */
        assert_non_null(reply);
        assert_string_equal(reply->str, "the owner's");
        freeReplyObject(reply);
        if (calls[i].undoes)
            assert_true(pushes.of_filter > before);
        subject_check(&subject);
    }
    assert_true(pushes.of_filter > 0);
    assert_int_equal(pushes.strange, 0);
    borrow_end(&subject, context);
}

static void pushes_reach_its_owner_and_disturb_no_answer(void **state)
{
    for (int v = 0; v < VARIANTS; v += 2)
        assert_pushes_come_through(redis_server_socket(server), &variants[v]);
}

static void pushes_in_pieces_reach_its_owner_too(void **state)
{
    proxy_drip(proxy, 1);
    assert_pushes_come_through(proxy_socket(proxy), &variants[0]);
    proxy_heal(proxy);
}

/* hiredis' own callback throws them away; without one they are in nobody's way. */
static void pushes_that_its_owner_does_not_want_disturb_no_answer(void **state)
{
    for (int own = 0; own < 2; own++) {
        struct pushes pushes;
        redisContext *context = connect_resp3(redis_server_socket(server), &pushes);
        redisContext *plain = connect_owner(redis_server_socket(server));
        struct subject subject;

        (void)redisSetPushCallback(context, own ? plain->push_cb : NULL);
        borrow_begin(&subject, context, &variants[0]);
        for (int i = 0; i < CALLS; i++) {
            assert_ok(calls[i].run(&subject), subject.store);
            subject_check(&subject);
        }
        borrow_end(&subject, context);
        redisFree(plain);
    }
}

#define HALF_A_PUSH ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3"

static void attach_between_pushes(const struct script_step *script, hibloom_status status)
{
    struct scripted_server *scripted = scripted_server_start(script);
    redisContext *context = connect_owner(scripted_server_socket(scripted));
    struct pushes pushes = {.name = "any"};
    hibloom_store *store;
    bool found;

    context->privdata = &pushes;
    (void)redisSetPushCallback(context, hear_push);
    assert_ok(hibloom_borrow(&store, context, NULL), store);
    hibloom *filter = attach_any(store);
    if (status == HIBLOOM_ETIMEDOUT)
        assert_int_equal(redisSetTimeout(context, (struct timeval){0, 500000}), REDIS_OK);
    test_sleep_ms(300); /* for the push to be there, or its half, before anything is asked */
    assert_status(hibloom_contains(filter, "x", 1, &found), status, store);
    assert_int_equal(pushes.of_filter, status == HIBLOOM_ENOTFOUND);
    assert_int_equal(pushes.strange, 0);
    test_close(filter, store);
    redisFree(context);
    scripted_server_stop(scripted);
}

/* The rest of it comes slowly, or never; then its owner has to get rid of the half. */
static void half_a_push_behind_an_answer(void **state)
{
    static const struct script_step whole[] = {SCRIPT_ACCEPT, SCRIPT_JOIN(ABSENT HALF_A_PUSH "\r\nany\r\n"),
                                               SCRIPT_READ(6), SCRIPT_SEND(":0\r\n:0\r\n:0\r\n:0\r\n" ABSENT),
                                               SCRIPT_END};
    static const struct script_step slow[] = {SCRIPT_ACCEPT,
                                              SCRIPT_JOIN(ABSENT HALF_A_PUSH),
                                              SCRIPT_DRIP("\r\nany\r\n", 60),
                                              SCRIPT_READ(6),
                                              SCRIPT_SEND(":0\r\n:0\r\n:0\r\n:0\r\n" ABSENT),
                                              SCRIPT_END};
    static const struct script_step silent[] = {SCRIPT_ACCEPT, SCRIPT_JOIN(ABSENT HALF_A_PUSH), SCRIPT_END};
    static const struct script_step none[] = {SCRIPT_ACCEPT, SCRIPT_JOIN(ABSENT ">-1\r\n"), SCRIPT_END};

    attach_between_pushes(whole, HIBLOOM_ENOTFOUND); /* there is no bitmap yet */
    attach_between_pushes(slow, HIBLOOM_ENOTFOUND);
    attach_between_pushes(silent, HIBLOOM_ETIMEDOUT);
    attach_between_pushes(none, HIBLOOM_EPROTO);
}

#else

static void skip_without_resp3(void **state)
{
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
        cmocka_unit_test(pushes_reach_its_owner_and_disturb_no_answer),
        cmocka_unit_test(pushes_in_pieces_reach_its_owner_too),
        cmocka_unit_test(pushes_that_its_owner_does_not_want_disturb_no_answer),
        cmocka_unit_test(half_a_push_behind_an_answer),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
