/* The faults of tests/faults/bytes.c on event loops: the connection is cut, falls silent,
 * waits or comes in two pieces at any byte of a dialogue, while several calls are on
 * their way. Each function is called once, with a status as async.h says; the same call
 * then works on the same store; what is stored is right to the bit, and nothing is left.
 *
 * The place of a fault chooses one of the three loops. */
#include "loops/subject.h"
#include "support/byte_faults.h"
#include "support/mirror.h"
#include "support/proxied.h"

enum { SAID_MAX = 256, AT_ONCE = 5, PATIENCE_MS = 60000, UNWRITTEN = 0xA5, TTL_S = 1000 };

static const char filter_name[] = "said", other_name[] = "other";
static const struct loop_class *const loop_classes[] = {&loop_libevent, &loop_libuv, &loop_libev};

/* Of all calls of a dialogue: a function that is called too late still finds its own. */
static struct outcome outcomes[SAID_MAX];
static bool answers[SAID_MAX][FEW], accepted[SAID_MAX];
static size_t said;

enum kind { OPEN, ADD_NEW, ADD, ASK, COUNT, EXPIRE, CLEAR, DROP };

struct call {
    enum kind kind;
    hibloom_async_filter **filter;
    const struct few *few; /* of ADD_NEW, ADD and ASK: all of it, */
    size_t from, n;        /* unless n says how many of it */
    size_t outcome;        /* of the last try */
    bool done;
};

struct partner {
    struct dialogue *d;
    void *loop;
    hibloom_async *async;
    hibloom_async_filter *filter, *other;
    struct mirror mirror; /* of the filter */
};

/* ---- Calls that may fail ------------------------------------------------------------- */

static hibloom_status begin(struct partner *p, const struct call *call, struct outcome *outcome)
{
    hibloom_async_filter *filter = *call->filter;
    const hibloom_item *items = call->few != NULL ? call->few->items + call->from : NULL;
    const size_t n = call->n != 0 ? call->n : FEW;

    switch (call->kind) {
    case OPEN:
        return hibloom_async_open(p->async, call->filter == &p->filter ? filter_name : other_name, &p->mirror.spec,
                                  on_opened, outcome);
    case ADD_NEW:
    case ADD: return hibloom_async_add(filter, items, n, call->kind == ADD_NEW, on_answered, outcome);
    case ASK: return hibloom_async_contains(filter, items, n, on_answered, outcome);
    case COUNT: return hibloom_async_get_info(filter, on_counted, outcome);
    case EXPIRE: return hibloom_async_expire(filter, TTL_S, on_done, outcome);
    case CLEAR: return hibloom_async_clear(filter, on_done, outcome);
    case DROP: return hibloom_async_drop(filter, on_done, outcome);
    }
    return HIBLOOM_EINVAL;
}

static void begin_all(struct partner *p, struct call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (calls[i].done)
            continue;
        assert_true(said < SAID_MAX);
        calls[i].outcome = said;
        outcomes[said] = (struct outcome){.answers = answers[said]};
        memset(answers[said], UNWRITTEN, sizeof answers[said]);
        const hibloom_status status = NOTHING_WITHIN(begin(p, &calls[i], &outcomes[said]));
        accepted[said] = status == HIBLOOM_OK;
        if (!accepted[said])
            outcomes[said].status = status;
        said++;
    }
}

static void await_answers(struct partner *p)
{
    const uint64_t until = test_now_ms() + PATIENCE_MS;

    for (size_t i = 0; i < said; i++)
        while (accepted[i] && outcomes[i].calls == 0) {
            if (test_now_ms() >= until)
                fail_msg("%s, place %llu: a function was not called", p->d->what, (unsigned long long)p->d->place);
            loop_class->turn(p->loop);
            hibloom_async_tick(p->async);
            usleep(20);
        }
}

/* Who drops what an earlier try has dropped finds nothing. */
static hibloom_status status_of(const struct call *call, bool again)
{
    const hibloom_status status = outcomes[call->outcome].status;

    return call->kind == DROP && again && status == HIBLOOM_ENOTFOUND ? HIBLOOM_OK : status;
}

/* One fault may fail all that are on their way: that is one failure. */
static bool any_failed(struct partner *p, struct call *calls, size_t n, bool again)
{
    struct dialogue *d = p->d;
    const unsigned failures = d->failures + 1;

    for (size_t i = 0; i < n; i++) {
        const bool was_done = calls[i].done;
        const hibloom_status status = status_of(&calls[i], again);
        calls[i].done = status == HIBLOOM_OK;
        if (calls[i].done || was_done)
            continue;
        d->failures = failures;
        if (!d->may_fail(d, status, failures) || hibloom_async_error(p->async)[0] == '\0')
            fail_msg("%s, place %llu, %s, call of kind %d: %s: \"%s\", failure %u", d->what,
                     (unsigned long long)d->place, loop_class->name, calls[i].kind, hibloom_strerror(status),
                     hibloom_async_error(p->async), failures);
        if (calls[i].kind == ASK)
            assert_said(d, *(unsigned char *)answers[calls[i].outcome] == UNWRITTEN, "no answer comes with a failure");
    }
    return d->failures == failures;
}

/* Makes them all at once, until each has worked. Did all at the first try? */
static bool say(struct partner *p, struct call *calls, size_t n)
{
    const unsigned before = p->d->failures;

    do {
        begin_all(p, calls, n);
        await_answers(p);
    } while (any_failed(p, calls, n, p->d->failures > before));
    return p->d->failures == before;
}

/* ---- What is said ------------------------------------------------------------------------ */

static void assert_answers(const struct partner *p, const struct call *call, bool expected, const char *what)
{
    const size_t n = call->n != 0 ? call->n : FEW;

    assert_said(p->d, outcomes[call->outcome].n == n, "there are as many answers as items");
    for (size_t i = 0; i < n; i++)
        assert_said(p->d, answers[call->outcome][i] == expected, what);
}

static void open_filters(struct partner *p)
{
    struct call calls[] = {{OPEN, .filter = &p->filter}, {OPEN, .filter = &p->other}};

    (void)say(p, calls, 2);
    p->filter = outcomes[calls[0].outcome].filter;
    p->other = outcomes[calls[1].outcome].filter;
}

/* Where no call failed, each is new: nobody has added it before. */
static void add(struct partner *p, const struct few *first, const struct few *second)
{
    struct call calls[AT_ONCE] = {{ADD_NEW, &p->filter, .few = first, .n = FEW - 1},
                                  {ADD, &p->filter, .few = second},
                                  {ADD_NEW, &p->filter, .few = first, .from = FEW - 1, .n = 1},
                                  {ADD_NEW, &p->other, .few = first},
                                  {ADD, &p->other, .few = second, .n = 2}};
    const bool at_once = say(p, calls, AT_ONCE);

    for (size_t i = 0; i < AT_ONCE && at_once; i++)
        if (calls[i].kind == ADD_NEW)
            assert_answers(p, &calls[i], true, "a fresh item is new");
    mirror_add(&p->mirror, first);
    mirror_add(&p->mirror, second);
    mirror_assert(&p->mirror, "add");
}

static void ask(struct partner *p, const struct few *first, const struct few *second, const struct few *absent)
{
    struct call calls[AT_ONCE] = {{ASK, &p->filter, .few = first},
                                  {ASK, &p->filter, .few = second},
                                  {ASK, &p->filter, .few = absent},
                                  {ASK, &p->other, .few = first, .n = 1},
                                  {COUNT, .filter = &p->filter}};

    (void)say(p, calls, AT_ONCE);
    for (size_t i = 0; i < AT_ONCE; i++)
        if (calls[i].kind == ASK)
            assert_answers(p, &calls[i], calls[i].few != absent, "a look-up is answered right");
    const hibloom_info *info = &outcomes[calls[4].outcome].info;
    assert_said(p->d, info->keys == p->mirror.spec.segments && info->bits_set == mirror_count(&p->mirror),
                "info counts right");
}

static void expire(struct partner *p)
{
    struct call expiring = {EXPIRE, .filter = &p->filter}, counting = {COUNT, .filter = &p->filter};

    (void)say(p, &expiring, 1);
    (void)say(p, &counting, 1);
    const hibloom_info *info = &outcomes[counting.outcome].info;
    assert_said(p->d, info->ttl_ms > 0 && info->ttl_ms <= (TTL_S + 1) * 1000, "it has a time to live");
}

static void clear(struct partner *p, const struct few *gone)
{
    struct call clearing = {CLEAR, .filter = &p->filter};
    struct call calls[] = {{ASK, &p->filter, .few = gone}, {ASK, &p->other, .few = gone}};

    (void)say(p, &clearing, 1);
    mirror_clear(&p->mirror);
    mirror_assert(&p->mirror, "clear");
    (void)say(p, calls, 2);
    assert_answers(p, &calls[0], false, "what was cleared is out");
    assert_answers(p, &calls[1], true, "what is in the other filter stays");
}

static void converse(struct partner *p)
{
    struct few first, second, absent;
    struct call drops[] = {{DROP, .filter = &p->filter}, {DROP, .filter = &p->other}};

    few_make(&first, 'a');
    few_make(&second, 'b');
    few_make(&absent, 'x');
    open_filters(p);
    add(p, &first, &second);
    ask(p, &first, &second, &absent);
    expire(p);
    clear(p, &first);
    struct call again = {ADD_NEW, &p->filter, .few = &first};
    if (say(p, &again, 1))
        assert_answers(p, &again, true, "what was cleared is new");
    mirror_add(&p->mirror, &first);
    mirror_assert(&p->mirror, "the second add");
    (void)say(p, drops, 2);
}

static void hold(struct dialogue *d)
{
    struct partner p = {.d = d};

    loop_class = loop_classes[d->place % (sizeof loop_classes / sizeof *loop_classes)];
    d->failures = 0;
    said = 0;
    mirror_make(&p.mirror, d, filter_name);
    p.loop = loop_class->open();
    p.async = async_store(p.loop, d->uri, &d->options);
    hibloom_async_tick(p.async);
    converse(&p);
    assert_no_key(d);
    hibloom_async_close(p.other); /* the store closes what is left open */
    hibloom_async_free(p.async);
    close_loop(p.loop);
    for (size_t i = 0; i < said; i++)
        assert_said(d, outcomes[i].calls == accepted[i], "each function is called once");
    mirror_free(&p.mirror);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static struct byte_faults faults;

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    (void)proxied_set_up(state);
    faults = (struct byte_faults){.proxy = proxy,
                                  .hold = hold,
                                  .walks = 2 * BYTE_FAULT_WALKS,
                                  .dialogue = {.uri = proxy_uri(proxy), .servers = &redis, .server_count = 1}};
    return 0;
}

static void on_one_key(void **state)
{
    byte_faults_on_one_key(&faults);
}

static void on_several_keys(void **state)
{
    byte_faults_on_several_keys(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(on_one_key, served_leave_nothing),
        cmocka_unit_test_teardown(on_several_keys, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, proxied_tear_down);
}
