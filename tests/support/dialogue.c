/* A dialogue, and the places in it. See dialogue.h. */
#include "dialogue.h"
#include "base/store.h"
#include "spec/positions.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNWRITTEN = 0xA5 };

static const char filter_name[] = "said", other_name[] = "other";

/* ---- What a filter should hold --------------------------------------------------------
 *
 * Bit by bit, beside the server that holds it. Its strings are read past the library and compared, so an answer that
 * is lost, doubled or shifted is seen. */

enum { FEW = 20, BYTES = 1024 };
static const char spec_text[] = "bits=8192 hashes=4 seed=5eed"; /* with a seed, so that a test repeats itself */

/* The items of one call. */
struct few {
    char text[FEW][16];
    hibloom_item items[FEW];
};

struct mirror {
    const struct dialogue *dialogue; /* for the server, and the message of a failure */
    struct spec spec;
    unsigned char bits[BYTES];
};

static void few_make(struct few *few, char first)
{
    for (unsigned i = 0; i < FEW; i++)
        few->items[i] = (hibloom_item){few->text[i],
                                       (size_t)snprintf(few->text[i], sizeof few->text[i], "%c%u", first, i)};
}

static void mirror_add(struct mirror *mirror, const struct few *few)
{
    hibloom_position positions[HIBLOOM_HASHES_MAX];

    for (unsigned i = 0; i < FEW; i++) {
        assert_ok(positions_of(&mirror->spec, few->items[i].data, few->items[i].len, positions), NULL);
        for (unsigned k = 0; k < mirror->spec.hashes; k++)
            mirror->bits[positions[k].bit / 8] |= (unsigned char)(0x80 >> positions[k].bit % 8);
    }
}

/* The bits that are set. */
static uint64_t mirror_count(const struct mirror *mirror)
{
    uint64_t n = 0;

    for (size_t i = 0; i < BYTES; i++)
        n += (unsigned)__builtin_popcount(mirror->bits[i]);
    return n;
}

/* The server holds just this; `after` is what was done last. */
static void mirror_assert(const struct mirror *mirror, const char *after)
{
    const struct dialogue *d = mirror->dialogue;
    redisReply *reply = redisCommand(d->server, "GETRANGE %s 0 %d", filter_name, BYTES - 1);

    if (reply == NULL || reply->len != BYTES || memcmp(reply->str, mirror->bits, BYTES) != 0)
        fail_msg("%s, place %llu: after %s, the filter has other bits than it should", d->what,
                 (unsigned long long)d->place, after);
    freeReplyObject(reply);
}

/* It holds no key. */
static void assert_no_key(const struct dialogue *d)
{
    redisReply *keys = redisCommand(d->server, "KEYS *");

    for (size_t k = 0; k < keys->elements; k++) /* a temporary one, of a call that failed, ends by itself */
        if (test_command(d->server, "PTTL %b", keys->element[k]->str, keys->element[k]->len) == -1)
            fail_msg("%s, place %llu: a key is left over", d->what, (unsigned long long)d->place);
    freeReplyObject(keys);
}

/* The message of a failure names the fault and its place. */
static void assert_said(const struct dialogue *d, bool so, const char *what)
{
    if (!so)
        fail_msg("%s, place %llu: not so: %s", d->what, (unsigned long long)d->place, what);
}

/* ---- The two sides ------------------------------------------------------------------------ */

struct partner {
    struct dialogue *d;
    hibloom_store *store, *memory;
    hibloom *filter, *other, *here;
    struct mirror mirror; /* of the filter */
};

/* ---- Calls that may fail ------------------------------------------------------------- */

static bool is_again(struct dialogue *d, const hibloom_store *store, hibloom_status status, const char *call)
{
    d->leave();
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
        (p)->d->enter(); \
    while (is_again((p)->d, (p)->store, (call), #call))

static void connect_store(struct partner *p)
{
    struct dialogue *d = p->d;
    hibloom_status status;

    do {
        hibloom_store_free(p->store);
        d->enter();
        status = hibloom_connect(&p->store, with_options(d->uri, "%s", d->options), NULL);
    } while (is_again(d, p->store, status, "hibloom_connect"));
}

/* The first drop may have done it. */
static void drop(struct partner *p, hibloom *filter)
{
    struct dialogue *d = p->d;
    const unsigned before = d->failures;
    hibloom_status status;

    do {
        d->enter();
        status = hibloom_drop(filter);
        if (status == HIBLOOM_ENOTFOUND && d->failures > before)
            status = HIBLOOM_OK;
    } while (is_again(d, p->store, status, "hibloom_drop"));
}

/* ---- What is said ------------------------------------------------------------------------ */

static void open_filters(struct partner *p)
{
    hibloom *const unwritten = (hibloom *)(void *)p;

    p->filter = p->other = unwritten;
    UNTIL_OK(p, hibloom_open(&p->filter, p->store, filter_name, test_text(&p->mirror.spec)));
    UNTIL_OK(p, hibloom_open(&p->other, p->store, other_name, test_text(&p->mirror.spec)));
}

/* Where no call failed, each is new: nobody has added it before. */
static void add_as_new(struct partner *p, const struct few *few)
{
    const unsigned before = p->d->failures;
    bool is_new[FEW], one;

    UNTIL_OK(p, hibloom_add_many(p->filter, few->items, FEW - 1, is_new));
    for (unsigned i = 0; i < FEW - 1; i++)
        assert_said(p->d, is_new[i] || p->d->failures > before, "a fresh item is new");
    const unsigned single = p->d->failures;
    UNTIL_OK(p, hibloom_add(p->filter, few->items[FEW - 1].data, few->items[FEW - 1].len, &one));
    assert_said(p->d, one || p->d->failures > single, "a fresh item that is added by itself is new");
    mirror_add(&p->mirror, few);
}

static void ask_for(struct partner *p, const struct few *few, bool in)
{
    bool found[FEW], one = !in;
    unsigned char *bytes = (unsigned char *)found;

    memset(found, UNWRITTEN, sizeof found);
    const unsigned before = p->d->failures;
    UNTIL_OK(p, (assert_said(p->d, p->d->failures == before || bytes[FEW - 1] == UNWRITTEN, "no answer is written"),
                 hibloom_contains_many(p->filter, few->items, FEW, found)));
    for (unsigned i = 0; i < FEW; i++)
        assert_said(p->d, found[i] == in, "the answer of contains_many is right");
    UNTIL_OK(p, hibloom_contains(p->filter, few->items[0].data, few->items[0].len, &one));
    assert_said(p->d, one == in, "the answer of contains is right");
}

static void count(struct partner *p)
{
    hibloom_info info;

    UNTIL_OK(p, hibloom_get_info(p->filter, &info, sizeof info));
    assert_said(p->d, info.keys == 1 && info.bits_set == mirror_count(&p->mirror), "info counts right");
}

static void merge(struct partner *p, const struct few *remote, const struct few *local)
{
    UNTIL_OK(p, hibloom_add_many(p->other, remote->items, FEW, NULL));
    UNTIL_OK(p, hibloom_merge(p->filter, p->other));
    mirror_add(&p->mirror, remote);
    assert_ok(hibloom_add_many(p->here, local->items, FEW, NULL), p->memory);
    UNTIL_OK(p, hibloom_merge(p->filter, p->here));
    mirror_add(&p->mirror, local);
    mirror_assert(&p->mirror, "merge");
}

static void clear(struct partner *p)
{
    UNTIL_OK(p, hibloom_clear(p->filter));
    memset(p->mirror.bits, 0, BYTES);
    mirror_assert(&p->mirror, "clear");
}

/* The filter takes the place of the other one. */
static void replace(struct partner *p, const struct few *few)
{
    UNTIL_OK(p, hibloom_replace(p->filter, other_name));
    ask_for(p, few, true);
}

static void converse(struct partner *p)
{
    struct few first, second, third, fourth, absent;

    few_make(&first, 'a');
    few_make(&second, 'b');
    few_make(&third, 'c');
    few_make(&fourth, 'd');
    few_make(&absent, 'x');
    open_filters(p);
    add_as_new(p, &first);
    UNTIL_OK(p, hibloom_add_many(p->filter, second.items, FEW, NULL));
    mirror_add(&p->mirror, &second);
    mirror_assert(&p->mirror, "add");
    ask_for(p, &first, true);
    ask_for(p, &second, true);
    ask_for(p, &absent, false);
    count(p);
    merge(p, &third, &fourth);
    clear(p);
    ask_for(p, &second, false);
    add_as_new(p, &first);
    mirror_assert(&p->mirror, "the second add");
    replace(p, &first);
    drop(p, p->filter);
}

void dialogue_hold(struct dialogue *d)
{
    struct partner p = {.d = d, .mirror = {.dialogue = d, .spec = test_spec(spec_text)}};

    d->failures = 0;
    assert_ok(hibloom_connect(&p.memory, "memory:", NULL), NULL);
    p.here = test_open(p.memory, "here", spec_text);
    connect_store(&p);
    converse(&p);
    assert_no_key(d);
    hibloom_close(p.filter);
    hibloom_close(p.other);
    hibloom_store_free(p.store);
    hibloom_close(p.here);
    hibloom_store_free(p.memory);
}
