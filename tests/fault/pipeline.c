/* Faults in the middle of a conversation: the connection is cut, falls silent
 * or slows down at every kind of place in what is sent and in what is
 * answered, on every call. A proxy before a real server does it, so that it
 * happens at the same byte each time.
 *
 * Each loop moves the fault on until the call ends before it is reached. */
#include "support/in_time.h"
#include "support/proxied.h"
#include "support/scripted_server.h"
#include "support/subject.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const hibloom_connect_options impatient = {.command_timeout_ms = TIMEOUT_MS};

static hibloom_store *connect_proxy(const struct variant *variant, hibloom_connect_options options)
{
    hibloom_store *store;

    options.commands = variant->commands;
    assert_ok(hibloom_connect(&store, proxy_uri(proxy), &options), store);
    test_item_by_item(store, true);
    return store;
}

static void begin(struct subject *subject, const struct variant *variant, hibloom_connect_options options)
{
    subject_open(subject, connect_proxy(variant, options), variant);
}

/* A fault that came at the very end of the call is found by the next one. */
static void flush_late_fault(struct subject *subject)
{
    bool found;
    const hibloom_status status = hibloom_contains(subject->filter, "x", 1, &found);

    if (status != HIBLOOM_ENOTFOUND && status != HIBLOOM_EIO)
        assert_ok(status, subject->store);
}

/* ---- Cut ------------------------------------------------------------------------ */

static void cut_everywhere(struct subject *subject, const struct call *call, enum proxy_way way, uint64_t step)
{
    uint64_t after = 0;

    for (;; after += step) {
        const unsigned connections = proxy_connections(proxy);
        hibloom_status status;

        proxy_cut(proxy, way, after);
        status = call->run(subject);
        if (status == HIBLOOM_OK)
            break;
        if (status != HIBLOOM_EIO)
            print_error("%s, cut after %u bytes:\n", call->name, (unsigned)after);
        assert_status(status, HIBLOOM_EIO, subject->store);
        assert_string_not_equal(hibloom_store_error(subject->store), "");
        subject_check(subject);
        assert_int_equal(proxy_connections(proxy), connections + 1);
    }
    assert_true(after > 0);
    proxy_heal(proxy);
    flush_late_fault(subject);
    subject_check(subject);
}

static void a_cut_at_any_byte_is_an_io_error_and_the_next_call_reconnects(void **state)
{
    const uint64_t wider = test_is_slow() ? 4 : 1;

    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;

        begin(&subject, &variants[v], (hibloom_connect_options)HIBLOOM_CONNECT_OPTIONS_INIT);
        for (int i = 0; i < CALLS; i++) {
            cut_everywhere(&subject, &calls[i], PROXY_REPLIES, 11 * wider);
            cut_everywhere(&subject, &calls[i], PROXY_REQUESTS, 53 * wider);
        }
        subject_end(&subject);
    }
}

/* ---- Silence ---------------------------------------------------------------------- */

static bool hold_at(struct subject *subject, const struct call *call, int place)
{
    static const struct {
        enum proxy_way way;
        uint64_t after;
    } places[] = {{PROXY_REPLIES, 0}, {PROXY_REPLIES, 3}, {PROXY_REQUESTS, 12}};
    const uint64_t since = test_now_ms();

    proxy_hold(proxy, places[place % 3].way, places[place % 3].after);
    assert_status(call->run(subject), HIBLOOM_ETIMEDOUT, subject->store);
    const bool in_time = gave_up_in_time(since);
    subject_check(subject);
    return in_time;
}

static void silence_is_a_time_out_on_every_call(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        struct subject subject;

        begin(&subject, &variants[i % VARIANTS], impatient);
        ASSERT_IN_TIME(hold_at(&subject, &calls[i], i));
        subject_end(&subject);
    }
}

/* ---- Slowness --------------------------------------------------------------------- */

static void answers_a_byte_at_a_time_are_answers(void **state)
{
    static const int each[] = {0, 3, 4}; /* dialect and layout once */

    (void)state;
    for (size_t v = 0; v < sizeof each / sizeof each[0]; v++) {
        struct subject subject;

        begin(&subject, &variants[each[v]], (hibloom_connect_options)HIBLOOM_CONNECT_OPTIONS_INIT);
        proxy_drip(proxy, 1);
        for (int i = 0; i < CALLS; i++) {
            assert_ok(calls[i].run(&subject), subject.store);
            if (subject.maybe_empty || subject.maybe_removed)
                subject_check(&subject);
        }
        proxy_heal(proxy);
        subject_end(&subject);
    }
}

static bool drip_endlessly(struct subject *subject, const struct call *call)
{
    static char endless[4096];
    const uint64_t since = test_now_ms();

    snprintf(endless, sizeof endless, "-ERR %04000d\r\n", 0);
    proxy_replace(proxy, 0, 1, endless);
    proxy_drip(proxy, 10000);
    assert_status(call->run(subject), HIBLOOM_ETIMEDOUT, subject->store);
    const bool in_time = gave_up_in_time(since);
    subject_check(subject);
    return in_time;
}

static void an_answer_that_drips_for_ever_is_given_up(void **state)
{
    struct subject subject;

    (void)state;
    begin(&subject, &variants[0], impatient);
    for (int i = 0; i < CALLS; i += 2)
        ASSERT_IN_TIME(drip_endlessly(&subject, &calls[i]));
    subject_end(&subject);
}

/* Each answer comes whole, and well within the time-out of the one before; it
 * is all of a pipeline's together that must come in time. */
static void assert_pipeline_given_up(const struct script_step *script, hibloom_commands commands, bool adds)
{
    enum { ITEMS = 20, PIPELINE_TIMEOUT_MS = 600, LAST_ANSWER_MS = ITEMS * 250 };
    const hibloom_connect_options options = {.command_timeout_ms = PIPELINE_TIMEOUT_MS, .commands = commands};
    struct scripted_server *scripted = scripted_server_start(script);
    hibloom_item items[ITEMS];
    bool answers[ITEMS];
    hibloom_store *store;
    hibloom_spec spec;
    hibloom *filter;
    uint64_t since;

    for (int i = 0; i < ITEMS; i++)
        items[i] = (hibloom_item){"slow", 1 + (size_t)i % 4};
    memset(answers, 0xA5, sizeof answers);
    assert_ok(hibloom_spec_parse(&spec, variants[0].spec), NULL);
    assert_ok(hibloom_connect(&store, scripted_server_uri(scripted), &options), store);
    assert_ok(hibloom_attach(&filter, store, "any", &spec), store);
    since = test_now_ms();
    assert_status((adds ? hibloom_add_many : hibloom_contains_many)(filter, items, ITEMS, answers), HIBLOOM_ETIMEDOUT,
                  store);
    assert_in_range(test_now_ms() - since, PIPELINE_TIMEOUT_MS * 9 / 10, LAST_ANSWER_MS);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(((const unsigned char *)answers)[i], 0xA5);
    hibloom_close(filter);
    test_sleep_ms(300); /* the script sees the end of the old connection when it sends the next time */
    assert_ok(hibloom_attach(&filter, store, "any", &spec), store); /* on a new one */
    hibloom_close(filter);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
}

/* A bare bitmap is joined, which is there and long enough; then comes nothing in
 * time. An add asks its guard first, so that has an answer before the bits. */
static void answers_that_come_one_by_one_are_given_up_as_one(void **state)
{
#define SLOWLY(before, answer) \
    SCRIPT_WELCOME, SCRIPT_JOIN(THERE), SCRIPT_READ(3), SCRIPT_SEND(before), SCRIPT_PACE(answer, 250), SCRIPT_END
    static const struct script_step bits[] = {SLOWLY("", ":1\r\n")};
    static const struct script_step bitfields[] = {SLOWLY("", "*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n")};
    static const struct script_step bitfields_set[] = {SLOWLY(THERE, "*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n")};

    (void)state;
    assert_pipeline_given_up(bits, HIBLOOM_COMMANDS_SETBIT, false);
    assert_pipeline_given_up(bitfields, HIBLOOM_COMMANDS_BITFIELD, false);
    assert_pipeline_given_up(bitfields_set, HIBLOOM_COMMANDS_SETBIT, true);
}

/* An answer that trickles for ever, and one that stops just before the time-out:
 * that is the longest that a call of one pipeline can take. */
static bool give_up_a_trickle(const struct script_step *script)
{
    enum { TRICKLE_MS = 1000, LATEST_MS = 2 * TRICKLE_MS + 1500 }; /* and not four times */
    const hibloom_connect_options options = {.command_timeout_ms = TRICKLE_MS};
    struct scripted_server *scripted = scripted_server_start(script);
    hibloom_store *store = test_connect(scripted_server_uri(scripted), &options);
    hibloom *filter = test_attach(store, "any", variants[0].spec);
    const uint64_t since = test_now_ms();
    bool found;

    assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_ETIMEDOUT, store);
    const uint64_t elapsed = test_now_ms() - since;
    assert_true(elapsed >= TRICKLE_MS * 9 / 10);
    hibloom_close(filter);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
    return elapsed <= LATEST_MS;
}

static void a_trickle_is_given_up_after_twice_the_time_out(void **state)
{
    static const struct script_step for_ever[] = {SCRIPT_WELCOME,           SCRIPT_JOIN(THERE),     SCRIPT_READ(6),
                                                  SCRIPT_SEND("$9999\r\n"), SCRIPT_REPEAT("x", 20), SCRIPT_END};
    static const struct script_step stops[] = {SCRIPT_WELCOME, SCRIPT_JOIN(THERE), SCRIPT_READ(6),
                                               SCRIPT_DRIP(":1\r\n:1\r", 120), SCRIPT_END};
    static const struct script_step *const scripts[] = {for_ever, stops};

    (void)state;
    for (int i = 0; i < 2; i++)
        ASSERT_IN_TIME(give_up_a_trickle(scripts[i]));
}

/* ---- Large batches ------------------------------------------------------------------ */

enum { BATCH = 20000 };

struct batch {
    uint32_t numbers[BATCH];
    hibloom_item items[BATCH];
    bool answers[BATCH];
};

static void fill(struct batch *batch)
{
    for (uint32_t i = 0; i < BATCH; i++) {
        batch->numbers[i] = i;
        batch->items[i] = (hibloom_item){&batch->numbers[i], sizeof batch->numbers[i]};
    }
    memset(batch->answers, 0xA5, sizeof batch->answers);
}

static void assert_no_answers(const struct batch *batch)
{
    for (size_t i = 0; i < sizeof batch->answers; i++)
        assert_int_equal(((const unsigned char *)batch->answers)[i], 0xA5);
}

/* The fault comes while one pipeline is being answered and the next was sent. */
static void a_cut_in_any_of_several_pipelines_gives_no_answers(void **state)
{
    static struct batch batch;
    const uint64_t places[] = {1000, 20000, 100001, 150002};

    (void)state;
    fill(&batch);
    for (size_t i = 0; i < 2 * sizeof places / sizeof places[0]; i++) {
        const enum proxy_way way = i % 2 == 0 ? PROXY_REPLIES : PROXY_REQUESTS;
        struct subject subject;

        begin(&subject, &variants[i % VARIANTS], (hibloom_connect_options)HIBLOOM_CONNECT_OPTIONS_INIT);
        proxy_cut(proxy, way, places[i / 2]);
        assert_status(hibloom_contains_many(subject.filter, batch.items, BATCH, batch.answers), HIBLOOM_EIO,
                      subject.store);
        assert_no_answers(&batch);
        subject_check(&subject);
        proxy_cut(proxy, way, places[i / 2]);
        assert_status(hibloom_add_many(subject.filter, batch.items, BATCH, batch.answers), HIBLOOM_EIO, subject.store);
        assert_no_answers(&batch);
        subject_end(&subject);
    }
}

static void silence_in_the_middle_of_a_batch_is_a_time_out(void **state)
{
    static struct batch batch;
    struct subject subject;

    (void)state;
    fill(&batch);
    begin(&subject, &variants[0], impatient);
    proxy_hold(proxy, PROXY_REPLIES, 60000);
    assert_status(hibloom_contains_many(subject.filter, batch.items, BATCH, batch.answers), HIBLOOM_ETIMEDOUT,
                  subject.store);
    assert_no_answers(&batch);
    subject_check(&subject);
    proxy_hold(proxy, PROXY_REQUESTS, 60000);
    assert_status(hibloom_add_many(subject.filter, batch.items, BATCH, NULL), HIBLOOM_ETIMEDOUT, subject.store);
    subject_end(&subject);
}

/* ---- No answer, and no filter -----------------------------------------------------------------
 *
 * What an add has set that got no answer may lie where no filter is any more. It
 * connects once more to take that back, which may take as long again. */

static void assert_nothing_is_left(const struct subject *subject)
{
    const char *name = subject->name;

    if (test_command(redis, "EXISTS %s %s:0 %s:1 %s:2 %s:3", name, name, name, name, name) != 0)
        fail_msg("%s: late bits are left", subject->variant->name);
}

/* Whether bits were sent: where the last guard is too long ago, the call asks
 * first. And whether it was in time. */
static bool add_without_an_answer(struct subject *subject, const struct call *call, bool cuts)
{
    const char *name = subject->name;
    bool found;

    assert_ok(hibloom_contains(subject->filter, "in-0", 4, &found), subject->store); /* a fresh guard */
    assert_true(test_command(redis, "DEL %s %s:0 %s:1 %s:2 %s:3", name, name, name, name, name) > 0);
    const unsigned connections = proxy_connections(proxy);
    const uint64_t since = test_now_ms();
    (cuts ? proxy_cut : proxy_hold)(proxy, PROXY_REPLIES, 0);
    assert_status(call->run(subject), cuts ? HIBLOOM_EIO : HIBLOOM_ETIMEDOUT, subject->store);
    const bool was_in_time = in_time(since);
    assert_nothing_is_left(subject);
    return was_in_time && proxy_connections(proxy) == connections + 1;
}

static void late_bits_without_an_answer_are_taken_back(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * VARIANTS * CALLS; i++) {
        const struct call *call = &calls[i / 2 / VARIANTS];
        const bool cuts = i % 2 == 0;
        bool were_late = false;

        if (!call->adds || (!cuts && i / 2 % VARIANTS % 3 != 0)) /* time-outs of some will do */
            continue;
        for (int tries = 0; tries < 10 && !were_late; tries++) {
            struct subject subject;

            begin(&subject, &variants[i / 2 % VARIANTS], cuts ? (hibloom_connect_options){0} : impatient);
            were_late = add_without_an_answer(&subject, call, cuts);
            subject.maybe_removed = true;
            subject_end(&subject);
        }
        assert_true(were_late);
    }
}

/* ---- Lost and made anew in the middle of a pipeline -----------------------------------------
 *
 *   first part of the adds arrives   the key is lost   it is made anew   the rest arrives
 *
 * At the end there is a whole key that takes all that is sent, so who looks at
 * no more than that takes the first part's bits for set, and they are gone. */

enum { SPLIT = 8 }; /* items, in one pipeline: the next but one would wait for answers */

struct split_add {
    pthread_t thread;
    struct subject *subject;
    struct batch *batch;
    bool asks; /* is_new */
    hibloom_status status;
};

static void *run_split_add(void *argument)
{
    struct split_add *add = argument;

    add->status = hibloom_add_many(add->subject->filter, add->batch->items, SPLIT,
                                   add->asks ? add->batch->answers : NULL);
    return NULL;
}

/* How many bytes the adds are: of items that are in already, so it changes nothing. */
static uint64_t measure_add(struct split_add *add)
{
    proxy_mark(proxy);
    run_split_add(add);
    assert_ok(add->status, add->subject->store);
    return proxy_bytes(proxy, PROXY_REQUESTS);
}

/* By others: all keys but the root, which are repaired, or the one, which is opened. */
static void lose_and_make_anew(const struct subject *subject, bool several, hibloom_store *other)
{
    const char *name = subject->name;

    if (several) {
        assert_true(test_command(redis, "DEL %s:1 %s:2 %s:3", name, name, name) > 0);
        assert_ok(hibloom_repair(other, name), other);
    } else {
        assert_int_equal(test_command(redis, "DEL %s", name), 1);
        hibloom_close(test_open(other, name, subject->variant->spec));
    }
}

static void make_anew_between_parts(struct split_add *add, unsigned percent, bool several, hibloom_store *other)
{
    const uint64_t part = measure_add(add) * percent / 100;

    memset(add->batch->answers, 0xA5, sizeof add->batch->answers);
    proxy_mark(proxy);
    proxy_hold(proxy, PROXY_REQUESTS, part);
    assert_int_equal(pthread_create(&add->thread, NULL, run_split_add, add), 0);
    for (int i = 0; i < 5000 && proxy_bytes(proxy, PROXY_REQUESTS) < part; i++)
        test_sleep_ms(1);
    assert_int_equal(proxy_bytes(proxy, PROXY_REQUESTS), part);
    test_sleep_ms(5); /* for the server to have taken it */
    lose_and_make_anew(add->subject, several, other);
    proxy_heal(proxy);
    pthread_join(add->thread, NULL);
}

static void an_add_into_which_a_key_is_made_anew_is_not_ok(void **state)
{
    static struct batch batch;
    hibloom_store *other = test_connect(redis_server_uri(server), NULL);

    (void)state;
    fill(&batch);
    for (int i = 0; i < 4 * VARIANTS; i++) {
        struct subject subject;
        struct split_add add = {.subject = &subject, .batch = &batch, .asks = i % 2 == 0};

        begin(&subject, &variants[i / 4], (hibloom_connect_options)HIBLOOM_CONNECT_OPTIONS_INIT);
        const bool several = test_command(redis, "EXISTS %s:0", subject.name) == 1;
        make_anew_between_parts(&add, i / 2 % 2 == 0 ? 37 : 90, several, other);
        assert_status(add.status, several ? HIBLOOM_ECORRUPT : HIBLOOM_EMISMATCH, subject.store);
        assert_no_answers(&batch);
        assert_ok(hibloom_delete(other, subject.name), other);
        subject.maybe_removed = true;
        subject_end(&subject);
    }
    hibloom_store_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_at_any_byte_is_an_io_error_and_the_next_call_reconnects),
        cmocka_unit_test(silence_is_a_time_out_on_every_call),
        cmocka_unit_test(answers_a_byte_at_a_time_are_answers),
        cmocka_unit_test(an_answer_that_drips_for_ever_is_given_up),
        cmocka_unit_test(answers_that_come_one_by_one_are_given_up_as_one),
        cmocka_unit_test(a_trickle_is_given_up_after_twice_the_time_out),
        cmocka_unit_test(a_cut_in_any_of_several_pipelines_gives_no_answers),
        cmocka_unit_test(silence_in_the_middle_of_a_batch_is_a_time_out),
        cmocka_unit_test(late_bits_without_an_answer_are_taken_back),
        cmocka_unit_test(an_add_into_which_a_key_is_made_anew_is_not_ok),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
