/* plain.c: the policy of one link, for a call that need not send all of its items. See sieve.h. */
#include "base/alloc.h"
#include "redis/sieve.h"

#include <string.h>

/* ---- Which way ------------------------------------------------------------------------------- */

/* Is it less work to read or merge the bitmaps than to send `sent` of n items? An add that reads
 * them first may find nothing in: so that must be little work. */
static bool goes_by_bitmaps(const struct link *link, size_t n, double sent, enum store_op op)
{
    const struct cost_server *to = &link->server->cost;

    if (op != STORE_ADD_NEW)
        return bulk_pays(op, link, n, sent);
    return bulk_can(link) && link->spec->counters == 0 && !link->server->sends_all && /* items in it count, too */
           cost_bitmaps(link->spec, to, STORE_LOOK, n) < sent * cost_item(link->spec, to, op) / 10;
}

bool plain_pays(const struct link *link, size_t n, enum store_op op)
{
    return n > 0 &&
           (link->near != NULL || sieve_looks_first(link, n, op) ||
            (op == STORE_ADD_NEW && bulk_pays(op, link, n, (double)n)) || goes_by_bitmaps(link, n, (double)n, op));
}

/* ---- By commands ------------------------------------------------------------------------------- */

static void set(struct sieve *s)
{
    if (s->op == STORE_ADD_NEW)
        sieve_note(s);
    sieve_end_chunk(s);
}

static void looked(struct sieve *s)
{
    walk_read(&s->inner->walk, s->answers);
    sieve_note_found(s);
    sieve_end_chunk(s);
}

static void chunk(struct sieve *s)
{
    sieve_take(s, s->most);
    if (s->count == 0)
        sieve_end_chunk(s);
    else if (s->task.adds)
        sieve_set(s, s->task.link, set);
    else
        sieve_look(s, s->task.link, 1, s->left, s->count, NULL, looked);
}

/* ---- By bitmaps -------------------------------------------------------------------------------- */

static void bitmaps_done(struct sieve *s)
{
    if (s->bulk_gave_way && !s->task.adds)
        memset(s->yes, 0, FLAGS_BYTES(s->n));
    if (!s->bulk_gave_way && s->in == NULL)
        return; /* all are decided */
    sieve_prove_read(s, !s->bulk_gave_way);
}

/* Item by item there need be no memory for it. */
static void read_first(struct sieve *s)
{
    const struct link *link = s->task.link;

    if (!goes_by_bitmaps(link, s->n, (double)s->n, s->op) ||
        !goes_by_bitmaps(link, s->n, sieve_expect_sent(s), s->op) ||
        (s->op == STORE_ADD_NEW && (s->in = alloc.calloc(FLAGS_BYTES(s->n), 1)) == NULL))
        chunk(s);
    else
        sieve_by_bitmaps(s, s->op == STORE_ADD ? STORE_ADD : STORE_LOOK, s->task.link, s->items, s->n,
                         s->op == STORE_LOOK ? s->yes : s->in, bitmaps_done);
}

/* All are decided. Or what is new by now stays so, and the items go by commands. */
static void merged(struct sieve *s)
{
    if (s->bulk_gave_way)
        chunk(s);
}

static void merge(struct sieve *s)
{
    sieve_by_bitmaps(s, STORE_ADD_NEW, s->task.link, s->items, s->n, s->yes, merged);
}

/* To read bitmaps is less than half the work of merging into them, if most items are in. */
static void sampled(struct sieve *s)
{
    if (sieve_sample_is_new(s))
        merge(s);
    else
        read_first(s);
}

static void begin(struct sieve *s)
{
    if (s->op != STORE_ADD_NEW || !bulk_pays(STORE_ADD_NEW, s->task.link, s->n, sieve_expect_sent(s)))
        read_first(s);
    else if (!sieve_sample(s, sampled))
        merge(s);
}

const struct policy plain_policy = {.begin = begin, .chunk = chunk};
