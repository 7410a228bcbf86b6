/* A dialogue, and the places in it. See dialogue.h. */
#include "dialogue.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 20, KEYS_MAX = 4, SECONDS = 8, PLACES_LEAST = 3, UNWRITTEN = 0xA5 };

static const char filter_name[] = "said", other_name[] = "other";

/* The items of one call, and those that are never added. */
struct few {
    char text[FEW][16];
    hibloom_item items[FEW];
};

struct partner {
    struct dialogue *d;
    hibloom_spec spec;
    hibloom_store *store, *memory;
    hibloom *filter, *other, *here;
    unsigned char *bits[KEYS_MAX]; /* what has to be in each key of the filter */
};

/* ---- Calls that may fail ------------------------------------------------------------- */

static void enter(const struct dialogue *d)
{
    if (d->enter != NULL)
        d->enter();
}

static void leave(const struct dialogue *d)
{
    if (d->leave != NULL)
        d->leave();
}

static bool is_again(struct dialogue *d, const hibloom_store *store, hibloom_status status, const char *call)
{
    leave(d);
    if (status == HIBLOOM_OK)
        return false;
    d->failures++;
    if (!d->may_fail(d, status, d->failures) || (store != NULL && hibloom_store_error(store)[0] == '\0'))
        fail_msg("%s, place %llu, %s: %s: \"%s\", failure %u", d->what, (unsigned long long)d->place, call,
                 hibloom_strerror(status), hibloom_store_error(store), d->failures);
    return true;
}

/* Makes the call until it works; is_again says whether it may fail. */
#define UNTIL_OK(p, call) \
    do \
        enter((p)->d); \
    while (is_again((p)->d, (p)->store, (call), #call))

static void connect_store(struct partner *p)
{
    struct dialogue *d = p->d;
    hibloom_status status;

    do {
        hibloom_store_free(p->store);
        enter(d);
        status = hibloom_connect(&p->store, d->uri, &d->options);
    } while (is_again(d, p->store, status, "hibloom_connect"));
}

/* The first drop may have done it. */
static void drop(struct partner *p, hibloom *filter)
{
    struct dialogue *d = p->d;
    const unsigned before = d->failures;
    hibloom_status status;

    do {
        enter(d);
        status = hibloom_drop(filter);
        if (status == HIBLOOM_ENOTFOUND && d->failures > before)
            status = HIBLOOM_OK;
    } while (is_again(d, p->store, status, "hibloom_drop"));
}

static void assert_said(const struct partner *p, bool so, const char *what)
{
    if (!so)
        fail_msg("%s, place %llu: not so: %s", p->d->what, (unsigned long long)p->d->place, what);
}

/* ---- What is in ------------------------------------------------------------------------ */

static void make_few(struct few *few, char first)
{
    for (unsigned i = 0; i < FEW; i++)
        few->items[i] = (hibloom_item){few->text[i],
                                       (size_t)snprintf(few->text[i], sizeof few->text[i], "%c%u", first, i)};
}

static uint64_t bits_of_key(const hibloom_spec *spec)
{
    return (spec->bits + spec->segments - 1) / spec->segments;
}

static size_t bytes_of_key(const hibloom_spec *spec)
{
    return (size_t)(bits_of_key(spec) + 7) / 8;
}

static void expect_in(struct partner *p, const struct few *few)
{
    hibloom_position positions[HIBLOOM_HASHES_MAX];

    for (unsigned i = 0; i < FEW; i++) {
        assert_ok(hibloom_positions(&p->spec, few->items[i].data, few->items[i].len, positions), NULL);
        for (unsigned k = 0; k < p->spec.hashes; k++)
            p->bits[positions[k].key][positions[k].bit / 8] |= (unsigned char)(0x80 >> positions[k].bit % 8);
    }
}

static uint64_t count_expected(const struct partner *p)
{
    uint64_t n = 0;

    for (unsigned key = 0; key < p->spec.segments; key++)
        for (size_t i = 0; i < bytes_of_key(&p->spec); i++)
            n += (unsigned)__builtin_popcount(p->bits[key][i]);
    return n;
}

/* Of a cluster's nodes the one that has the key's slot answers. */
static redisReply *ask_servers(const struct dialogue *d, const char *key, size_t last)
{
    for (int i = 0; i < d->server_count; i++) {
        redisReply *reply = redisCommand(d->servers[i], "GETRANGE %s 0 %llu", key, (unsigned long long)last);
        if (reply != NULL && reply->type == REDIS_REPLY_STRING)
            return reply;
        freeReplyObject(reply);
    }
    fail_msg("%s, place %llu: no server has the slot of '%s'", d->what, (unsigned long long)d->place, key);
    return NULL;
}

static void assert_bits(const struct partner *p, const char *after)
{
    const size_t bytes = bytes_of_key(&p->spec);

    for (unsigned key = 0; key < p->spec.segments; key++) {
        char name[64];
        snprintf(name, sizeof name, p->spec.segments > 1 ? "%s:%u" : "%s", filter_name, key);
        redisReply *reply = ask_servers(p->d, name, bytes - 1);
        if (reply->len != bytes || memcmp(reply->str, p->bits[key], bytes) != 0)
            fail_msg("%s, place %llu: after %s, '%s' has other bits than it should", p->d->what,
                     (unsigned long long)p->d->place, after, name);
        freeReplyObject(reply);
    }
}

/* ---- What is said ------------------------------------------------------------------------ */

static void open_filters(struct partner *p)
{
    hibloom *const unwritten = (hibloom *)(void *)p;

    p->filter = p->other = unwritten;
    UNTIL_OK(p, hibloom_open(&p->filter, p->store, filter_name, &p->spec));
    UNTIL_OK(p, hibloom_open(&p->other, p->store, other_name, &p->spec));
}

/* Where no call failed, each is new: nobody has added it before. */
static void add_as_new(struct partner *p, const struct few *few)
{
    const unsigned before = p->d->failures;
    bool is_new[FEW], one;

    UNTIL_OK(p, hibloom_add_many(p->filter, few->items, FEW - 1, is_new));
    for (unsigned i = 0; i < FEW - 1; i++)
        assert_said(p, is_new[i] || p->d->failures > before, "a fresh item is new");
    const unsigned single = p->d->failures;
    UNTIL_OK(p, hibloom_add(p->filter, few->items[FEW - 1].data, few->items[FEW - 1].len, &one));
    assert_said(p, one || p->d->failures > single, "a fresh item that is added by itself is new");
    expect_in(p, few);
}

static void ask_for(struct partner *p, const struct few *few, bool in)
{
    bool found[FEW], one = !in;
    unsigned char *bytes = (unsigned char *)found;

    memset(found, UNWRITTEN, sizeof found);
    const unsigned before = p->d->failures;
    UNTIL_OK(p, (assert_said(p, p->d->failures == before || bytes[FEW - 1] == UNWRITTEN, "no answer is written"),
                 hibloom_contains_many(p->filter, few->items, FEW, found)));
    for (unsigned i = 0; i < FEW; i++)
        assert_said(p, found[i] == in, "the answer of contains_many is right");
    UNTIL_OK(p, hibloom_contains(p->filter, few->items[0].data, few->items[0].len, &one));
    assert_said(p, one == in, "the answer of contains is right");
}

static void count(struct partner *p)
{
    hibloom_info info;

    UNTIL_OK(p, hibloom_get_info(p->filter, &info));
    assert_said(p, info.keys == p->spec.segments && info.bits_set == count_expected(p), "info counts right");
}

static void merge(struct partner *p, const struct few *remote, const struct few *local)
{
    UNTIL_OK(p, hibloom_add_many(p->other, remote->items, FEW, NULL));
    UNTIL_OK(p, hibloom_merge(p->filter, p->other));
    expect_in(p, remote);
    assert_ok(hibloom_add_many(p->here, local->items, FEW, NULL), p->memory);
    UNTIL_OK(p, hibloom_merge(p->filter, p->here));
    expect_in(p, local);
    assert_bits(p, "merge");
}

static void clear(struct partner *p)
{
    UNTIL_OK(p, hibloom_clear(p->filter));
    for (unsigned key = 0; key < p->spec.segments; key++)
        memset(p->bits[key], 0, bytes_of_key(&p->spec));
    assert_bits(p, "clear");
}

static void assert_no_key(const struct dialogue *d)
{
    for (int i = 0; i < d->server_count; i++)
        if (test_command(d->servers[i], "DBSIZE") != 0)
            fail_msg("%s, place %llu: a key is left over", d->what, (unsigned long long)d->place);
}

static void converse(struct partner *p)
{
    struct few first, second, third, fourth, absent;

    make_few(&first, 'a');
    make_few(&second, 'b');
    make_few(&third, 'c');
    make_few(&fourth, 'd');
    make_few(&absent, 'x');
    open_filters(p);
    add_as_new(p, &first);
    UNTIL_OK(p, hibloom_add_many(p->filter, second.items, FEW, NULL));
    expect_in(p, &second);
    assert_bits(p, "add");
    ask_for(p, &first, true);
    ask_for(p, &second, true);
    ask_for(p, &absent, false);
    count(p);
    merge(p, &third, &fourth);
    clear(p);
    ask_for(p, &second, false);
    add_as_new(p, &first);
    assert_bits(p, "the second add");
    drop(p, p->other);
    drop(p, p->filter);
}

void dialogue_hold(struct dialogue *d)
{
    struct partner p = {.d = d, .spec = test_spec(d->spec)};

    d->failures = 0;
    p.spec.segments += p.spec.segments == 0;
    assert_true(p.spec.segments <= KEYS_MAX);
    for (unsigned key = 0; key < p.spec.segments; key++) {
        p.bits[key] = calloc(1, bytes_of_key(&p.spec));
        assert_non_null(p.bits[key]);
    }
    assert_ok(hibloom_memory(&p.memory), NULL);
    p.here = test_open(p.memory, "here", d->spec);
    connect_store(&p);
    converse(&p);
    assert_no_key(d);
    hibloom_get_stats(p.store, &d->stats);
    hibloom_close(p.filter);
    hibloom_close(p.other);
    hibloom_store_free(p.store);
    hibloom_close(p.here);
    hibloom_store_free(p.memory);
    for (unsigned key = 0; key < p.spec.segments; key++)
        free(p.bits[key]);
}

/* ---- Places ------------------------------------------------------------------------------- */

static uint64_t seconds(void)
{
    const char *given = getenv("FAULTS_SECONDS");

    return given != NULL ? strtoull(given, NULL, 10) : SECONDS;
}

void walk_begin(struct walk *walk, uint64_t places, unsigned walks_in_program)
{
    const uint64_t all = seconds() * 1000;

    assert_true(places > 0);
    *walk = (struct walk){.places = places, .until_ms = all == 0 ? UINT64_MAX : test_now_ms() + all / walks_in_program};
}

bool walk_next(struct walk *walk, uint64_t *place)
{
    static const uint64_t primes[] = {1000003, 999983}; /* one of them divides no number of places that is met */
    const uint64_t stride = primes[walk->places % primes[0] == 0];

    if (walk->visited == walk->places || (walk->visited >= PLACES_LEAST && test_now_ms() >= walk->until_ms))
        return false;
    *place = walk->visited++ * stride % walk->places;
    return true;
}

void walk_end(const struct walk *walk, const char *what)
{
    print_message("%s: %llu of %llu places\n", what, (unsigned long long)walk->visited,
                  (unsigned long long)walk->places);
}
