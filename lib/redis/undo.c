/* undo.c: takes back bits that an add set in a wrong place. See walk.h.
 *
 * SETBIT on a key that is gone makes a new string, which is no filter: late bits. SETBIT on a
 * key that another filter took writes into that. The guard behind them shows it. Then each adder
 * takes back its own bits, and nobody else's. The last one's undo removes the late string. */
#include "redis/scripts.h"
#include "redis/walk.h"
#include "spec/spec.h"

/* The bits of a pipeline in key i that no guard has proven; NULL: none. Each key
 * comes up once, with the bits of both pipelines. */
static const struct pack *find_unproven(const struct walk *walk, unsigned w, uint32_t i)
{
    const struct pipeline *pipeline = &walk->pipelines[w];

    if (w >= walk->pipelined || pipeline->items == 0)
        return NULL;
    if (walk_by_key(walk))
        return pipeline->proven[i] ? NULL : pipeline->pack;
    for (uint32_t p = 0; p < pipeline->packs; p++)
        if (pipeline->pack[p].segment == i && !pipeline->proven[p])
            return &pipeline->pack[p];
    return NULL;
}

/* Returns the number of their bits in key i whose knowledge is `known`, and writes them if `out` is not NULL. */
static size_t write_bits(const struct walk *walk, struct commands *out, const struct pack *const packs[2], uint32_t i,
                         unsigned char known)
{
    const uint32_t k = walk->talk.task.link->spec->hashes;
    size_t bits = 0;

    for (unsigned p = 0; p < 2; p++)
        for (size_t at = walk_by_key(walk) ? i : 0; packs[p] != NULL && at < (size_t)packs[p]->items * k;
             at += walk_by_key(walk) ? k : 1) {
            if (packs[p]->known[at] != known)
                continue;
            bits++;
            if (out != NULL)
                command_number(out, packs[p]->bits[at]);
        }
    return bits;
}

static bool undo_next(struct talk *talk, struct outbox *outbox, unsigned number)
{
    struct walk *walk = (struct walk *)talk;
    const struct link *link = talk->task.link;
    const struct pack *packs[2] = {NULL, NULL};
    uint32_t i = 0;

    while (packs[0] == NULL && packs[1] == NULL) {
        if (walk->undo_at == link->count)
            return false;
        i = walk->undo_at++;
        packs[0] = find_unproven(walk, walk->last ^ 1, i); /* the older one first */
        packs[1] = find_unproven(walk, walk->last, i);
    }
    const size_t ours = write_bits(walk, NULL, packs, i, BIT_WAS_UNSET);
    const size_t doubtful = write_bits(walk, NULL, packs, i, BIT_UNKNOWN);
    struct commands *out = &outbox->commands;
    const struct argument key = link_begin(link, outbox, number, i, KEY_NAME);
    script_start(out, SCRIPT_UNDO, 1, 4 + ours + doubtful);
    command_argument(out, key);
    link_expect(out, link, i, RECORD_IDENTITY);
    command_number(out, spec_bitmap_bytes(link->spec));
    command_number(out, ours);
    (void)write_bits(walk, out, packs, i, BIT_WAS_UNSET);
    (void)write_bits(walk, out, packs, i, BIT_UNKNOWN);
    outbox_end(outbox);
    return true;
}

/* A refusal is not told: there is another failure already, or will be. */
void walk_undo(struct talk *talk, struct outbox *outbox)
{
    talk_stream(talk, undo_next, NULL, NULL);
}
