/* walk.c: add, contains and remove, from items to commands and back. See walk.h.
 *
 *   items -> batch -> pipeline (pipeline.c)
 *         -> its commands, those of two pipelines on their way at once
 *   bits  <- answers of a pipeline, good if its guards are
 *
 * Answers are kept aside, one bit an item, until the whole call is known to be good. An add
 * whose guard was not good takes its bits back (undo.c). */
#include "redis/walk.h"
#include "base/alloc.h"
#include "redis/near.h"

#include <string.h>

static struct walk *walk_of(struct talk *talk)
{
    return (struct walk *)talk;
}

/* Tags: a pipeline's number, and above it that of an exchange: its pack's, or its key's if the one pack is in each key.
 * Behind these: */
static uint32_t tag_of_config(const struct walk *walk)
{
    return walk->keys;
}

static uint32_t tag_of_aside(const struct walk *walk)
{
    return walk->keys + 1;
}

/* The pack that an exchange is of. */
static struct pack *pack_of(const struct walk *walk, const struct pipeline *pipeline, uint32_t exchange)
{
    return &pipeline->pack[walk->encoding->each_key ? 0 : exchange];
}

/* The number of the exchange's key. */
static uint32_t key_of(const struct walk *walk, const struct pipeline *pipeline, uint32_t exchange)
{
    return walk->encoding->each_key ? exchange : pipeline->pack[exchange].segment;
}

/* Is it an add with guards behind its bits? What they show to be in a wrong place is taken back. */
static bool has_guards_behind(const struct walk *walk, const struct link *link)
{
    return walk->encoding->sets && !walk->encoding->own_guard && !link->bare;
}

/* ---- A pipeline of commands ----------------------------------------------------------- */

/* The guards of one exchange: its key's, or those of all keys. The root's is last: a replacement of the filter
 * begins with the root. */
static void ask_guards(const struct walk *walk, struct link *link, struct outbox *outbox, uint32_t i)
{
    char name[KEYS_SIZE];

    for (uint32_t key = walk->encoding->all_keys ? link->count : i + 1; key-- > i;)
        guard_ask(link, outbox, (struct argument){name, keys_name(name, link, key)}, key);
}

/* The key of reply `index` to those. */
static uint32_t guarded_key(const struct walk *walk, uint32_t i, uint32_t index)
{
    const struct link *link = walk->talk.task.link;

    return walk->encoding->all_keys ? link->count - 1 - index / guard_replies(link) : i;
}

/* Has a pack of all keys bits in key i? */
static bool has_bits_in(const struct pack *pack, uint32_t i)
{
    return pack->order == NULL || pack->from[i + 1] > pack->from[i];
}

/* Bits that an answer tells of, without each_key. */
static uint32_t bits_of_answer(const struct walk *walk, const struct pack *pack)
{
    const uint32_t k = walk->in[pack->nth].link->spec->hashes;

    return walk->encoding->each_bit ? 1 : walk->encoding->several ? encoding_bitfield_items(k) * k : k;
}

/* Writes the packs of a pipeline, an exchange each, or only those that have to be sent again. Was there any? */
static bool write_packs(struct walk *walk, struct outbox *outbox, unsigned number, bool again)
{
    struct pipeline *pipeline = &walk->pipelines[number];
    const struct encoding *encoding = walk->encoding;
    const uint32_t count = encoding->each_key && !again ? walk->keys : pipeline->packs;
    bool any = false;

    for (uint32_t at = 0; at < count; at++) {
        struct pack *pack = pack_of(walk, pipeline, at);
        struct link *link = walk->in[pack->nth].link;
        const uint32_t i = key_of(walk, pipeline, at);
        const size_t first = outbox->commands.count;
        char name[KEYS_SIZE];
        uint32_t there = i; /* it exists once the answer has come */
        if (again ? !pack->resend : encoding->each_key && !has_bits_in(pack, at))
            continue;
        any = true;
        pack->resend = false;
        while (encoding->all_keys && !has_bits_in(pack, there))
            there++;
        const struct argument key = link_begin(link, outbox, at << 1 | number, there, name);
        if (encoding->sets && link->bare)
            ask_guards(walk, link, outbox, i);
        walk->before = (uint32_t)(outbox->commands.count - first);
        if (walk->links > 1)
            pipeline_index(walk, pack);
        encoding->ask(encoding, link, &outbox->commands, key, pack, i);
        pipeline->answers[at] = (uint32_t)(outbox->commands.count - first) - walk->before;
        if (!encoding->own_guard)
            ask_guards(walk, link, outbox, i);
        if (encoding->all_keys || encoding->own_guard)
            outbox_end_into(outbox, walk->before, pack->known, (size_t)pack->items * link->spec->hashes);
        else
            outbox_end(outbox);
        struct exchange *exchange = outbox_last(outbox);
        exchange->as_one = !encoding->sets && !encoding->once;
        exchange->guarded = has_guards_behind(walk, link);
        exchange->once = encoding->once;
    }
    return any;
}

static void ask_aside(struct walk *walk, struct outbox *outbox, unsigned number)
{
    if (walk->aside != NULL)
        walk->aside->ask(&walk->talk, outbox, tag_of_aside(walk) << 1 | number);
}

static void remake(struct talk *talk, struct outbox *outbox)
{
    (void)write_packs(walk_of(talk), outbox, 0, false);
    ask_aside(walk_of(talk), outbox, 0);
}

/* One exchange of all packs, and of what is asked aside. The packs' commands are only counted: `remake` writes them. */
static void count_together(struct walk *walk, struct outbox *outbox)
{
    const struct pipeline *pipeline = walk->pipelines;
    const struct link *link = walk->in[pipeline->pack->nth].link;

    (void)link_begin(link, outbox, 0, pipeline->pack->segment, KEY_NAME);
    outbox->joins = true;
    for (uint32_t p = 0; p < pipeline->packs; p++) {
        const struct pack *pack = &pipeline->pack[p];
        const uint32_t bits = pack->items * walk->in[pack->nth].link->spec->hashes, each = bits_of_answer(walk, pack);
        pipeline->answers[p] = (bits + each - 1) / each;
        outbox->commands.count += pipeline->answers[p] + guard_replies(link);
    }
    outbox_end(outbox);
    ask_aside(walk, outbox, 0);
    outbox->joins = outbox_last(outbox)->proof = false;
    outbox_last(outbox)->as_one = outbox_last(outbox)->remade = true;
}

static bool write_pipeline(struct talk *talk, struct outbox *outbox, unsigned number)
{
    struct walk *walk = walk_of(talk);
    struct pipeline *pipeline = &walk->pipelines[number];

    if (number == walk->pipelined)
        return false; /* the first one had all */
    if (write_packs(walk, outbox, number, true))
        return true;
    if (!pipeline_fill(walk, pipeline)) /* nobody else sends the other one's packs again */
        return walk->pipelined > 1 && talk->outstanding[number ^ 1] == 0 && write_packs(walk, outbox, number ^ 1, true);
    walk->last = (uint8_t)number;
    memset(pipeline->proven, 0, walk_exchanges(walk, pipeline->packs));
    if (walk->together)
        count_together(walk, outbox);
    else
        (void)write_packs(walk, outbox, number, false);
    guard_ask_config(talk->task.link, outbox, tag_of_config(walk) << 1 | number);
    if (!walk->started && !walk->together)
        ask_aside(walk, outbox, number);
    walk->started = true;
    if (walk->slice != NULL && walk->pipelined == 1 && outbox->count == 1)
        outbox_last(outbox)->remade = true;
    return true;
}

/* ---- Its answers --------------------------------------------------------------------- */

#define CLEARS_MOST 16u /* of one key, between two sendings of one pack */

/* A command that is its own guard has done nothing. */
static void take_nothing_done(struct talk *talk, struct pack *pack, uint32_t i, const struct reply *reply)
{
    if (reply->integers[0] == 0) {
        guard_note_other(talk, i);
        return;
    }
    link_note_epoch(talk->task.link, i, (uint64_t)reply->integers[0] - 1);
    pack->resend = true;
    if (pack->clears++ == CLEARS_MOST)
        task_fail(&talk->task, HIBLOOM_EBUSY, "'%s' is being cleared again and again",
                  link_name(talk->task.link, LINK_NAME));
}

/* The number of the exchange that a reply is of. Where all packs are one, it is as if each were one, and `index` then
 * counts from the pack's first reply. */
static uint32_t exchange_of(const struct walk *walk, const struct pipeline *pipeline, uint32_t tag, uint32_t *index)
{
    const uint32_t guards = guard_replies(walk->in->link);

    if (!walk->together)
        return tag >> 1;
    for (uint32_t p = 0; p < pipeline->packs; p++) {
        if (*index < pipeline->answers[p] + guards)
            return p;
        *index -= pipeline->answers[p] + guards;
    }
    return tag_of_aside(walk);
}

/* The first bit in pack->known that an answer of key i tells of. */
static size_t bit_of_answer(const struct walk *walk, const struct pack *pack, uint32_t i, uint32_t answer)
{
    if (!walk->encoding->each_key)
        return (size_t)answer * bits_of_answer(walk, pack);
    if (pack->order != NULL)
        return pack->order[pack->from[i] + answer];
    return (size_t)answer * walk->in[pack->nth].link->spec->hashes + i;
}

static void take(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct walk *walk = walk_of(talk);
    struct pipeline *pipeline = &walk->pipelines[tag & 1];

    if (tag >> 1 == tag_of_config(walk)) {
        (void)guard_take(talk, talk->task.link->count, index, reply);
        return;
    }
    const uint32_t guards = guard_replies(walk->in->link), at = exchange_of(walk, pipeline, tag, &index);
    if (at == tag_of_aside(walk)) {
        if (talk_turn_to(talk, walk->in[walk->aside->of_last ? walk->links - 1 : 0].link))
            walk->aside->take(talk, 0, index, reply);
        return;
    }
    struct pack *pack = pack_of(walk, pipeline, at);
    const uint32_t i = key_of(walk, pipeline, at), answer = index - walk->before, answers = pipeline->answers[at];

    if (!talk_turn_to(talk, walk->in[pack->nth].link))
        return;
    if (walk->encoding->own_guard && reply->type == REDIS_REPLY_INTEGER) {
        take_nothing_done(talk, pack, i, reply);
        return;
    }
    if (index == walk->before) /* the first one, also of an exchange that is sent again */
        pipeline->proven[at] = pack->cut = false;
    if (index < walk->before) {
        guard_take_before(talk, guarded_key(walk, i, index), index % guards, reply);
    } else if (answer < answers) {
        walk->encoding->take(&talk->task, pack, i, bit_of_answer(walk, pack, i, answer), reply);
    } else {
        const uint32_t guard = answer - answers, key = guarded_key(walk, i, guard);
        unsigned char *const proven = &pipeline->proven[walk->encoding->all_keys ? key : at];
        if (!has_bits_in(pack, key))
            guard_take_before(talk, key, guard % guards, reply);
        else if (guard_take(talk, key, guard % guards, reply))
            *proven = 1;
        if (*proven && pack->cut)
            task_unexpected(&talk->task);
    }
}

/* The guard goes ahead of a pack. An exchange that was never sent has nothing to take back. */
static bool take_guard_ahead(struct task *task, uint32_t tag, const struct reply *reply)
{
    struct walk *walk = (struct walk *)task;
    struct pipeline *pipeline = &walk->pipelines[tag & 1];
    const struct encoding *encoding = walk->encoding;

    if (reply != NULL)
        (void)guard_take(&walk->talk, key_of(walk, pipeline, tag >> 1), 0, reply);
    else if (encoding->all_keys)
        memset(pipeline->proven, 1, walk->keys);
    else
        pipeline->proven[tag >> 1] = 1;
    return !talk_is_cut(&walk->talk);
}

/* The flag of item number i of a pack. */
static size_t flag_of(const struct walk *walk, const struct pipeline *pipeline, const struct pack *pack, uint32_t i)
{
    return pack->nth * walk->n + pipeline->base + pipeline->item[pack->first + i];
}

/* The items of a pack that are in by now are near from now on. They are learned here, where the offsets are known, and
 * the server has the next pipeline to work on. */
static void learn_pack(const struct walk *walk, const struct pipeline *pipeline, const struct pack *pack)
{
    const struct walk_link *link = &walk->in[pack->nth];
    struct bits *near = near_to_learn(link->link, link->mark);
    const unsigned char *absent = walk->encoding->sets ? NULL : walk->missing;
    uint32_t from = 0;

    if (near != NULL && walk->links > 1)
        pipeline_index(walk, pack);
    for (uint32_t i = 0; near != NULL && i <= pack->items; i++)
        if (i == pack->items || (absent != NULL && flags_has(absent, flag_of(walk, pipeline, pack, i)))) {
            bits_put(near, pack->segment, pack->bits + (size_t)from * link->link->spec->hashes, i - from);
            from = i + 1;
        }
}

/* If the answer for a bit was lost, an add counts it as new. To work on an item twice is better
 * than never. */
static void note_pack(const struct walk *walk, const struct pipeline *pipeline, const struct pack *pack)
{
    const uint32_t k = walk->in[pack->nth].link->spec->hashes;
    const unsigned char *known = pack->known;

    for (uint32_t i = 0; (walk->missing != NULL || pack->late) && i < pack->items; i++, known += k) {
        if (walk->missing != NULL && (memchr(known, BIT_WAS_UNSET, k) != NULL ||
                                      (walk->encoding->sets && memchr(known, BIT_UNKNOWN, k) != NULL)))
            flags_set(walk->missing, flag_of(walk, pipeline, pack, i));
        if (pack->late)
            flags_set(walk->late, flag_of(walk, pipeline, pack, i));
    }
}

static void answered(struct talk *talk, unsigned number)
{
    struct walk *walk = walk_of(talk);
    const struct pipeline *pipeline = &walk->pipelines[number];

    for (uint32_t p = 0; !talk_is_cut(talk) && p < pipeline->packs; p++) {
        note_pack(walk, pipeline, &pipeline->pack[p]);
        learn_pack(walk, pipeline, &pipeline->pack[p]);
    }
}

/* ---- The task -------------------------------------------------------------------------------- */

static void start(struct talk *, struct outbox *);

static void take_root(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    if (talk_turn_to(talk, walk_of(talk)->in[tag].link))
        (void)guard_take(talk, 0, index, reply);
}

/* The last step. Packs that have to be sent again go first. If all items were left out, no key was touched. Then the
 * roots of all links are asked whether they are there. */
static void finish(struct talk *talk, struct outbox *outbox)
{
    const struct walk *walk = walk_of(talk);

    for (unsigned w = 0; w < walk->pipelined; w++)
        for (uint32_t p = 0; p < walk->pipelines[w].packs; p++)
            if (walk->pipelines[w].pack[p].resend) {
                start(talk, outbox);
                return;
            }
    if (walk->started || talk->task.link->bare)
        return;
    for (uint32_t i = 0; i < walk->links; i++)
        guard_ask_alone(walk->in[i].link, outbox, i, 0);
    talk_then(talk, take_root, NULL);
}

static void start(struct talk *talk, struct outbox *outbox)
{
    talk_stream(talk, write_pipeline, take, finish);
    talk->answered = answered;
    if (has_guards_behind(walk_of(talk), talk->task.link))
        talk->cleanup = walk_undo;
}

/* The first step of an add. It proves first if the last proof is old, or for more than one pipeline: by the root's guard, and
 * that of the key that failed last. Else a caller that ignores errors would send bits to this key again and again. */
static void start_add(struct talk *talk, struct outbox *outbox)
{
    const struct walk *walk = walk_of(talk);
    struct link *link = talk->task.link;
    const uint32_t suspect = link->suspect;

    if (!has_guards_behind(walk, link) ||
        (!guard_is_stale(link) && walk->n * walk->item_bytes <= walk->pipeline_bytes)) {
        start(talk, outbox);
        return;
    }
    for (uint32_t i = 0; i <= suspect; i += suspect > 0 ? suspect : 1)
        guard_ask_alone(link, outbox, i, i);
    talk_then(talk, guard_take_alone, start);
}

/* Items known to be new stay so. */
static void redo(struct task *task)
{
    struct walk *walk = (struct walk *)task;

    task->status = HIBLOOM_OK;
    walk->talk.cleaning = task->cleans = false;
    walk->talk.diagnose = NULL;
    walk->talk.step = walk->encoding->sets ? start_add : start;
    walk->batch.base = walk->batch.end = 0;
    walk->batch.nth = walk->batch.items = walk->batch.next = 0;
    walk->started = false;
    for (unsigned w = 0; w < walk->pipelined; w++)
        walk->pipelines[w].items = walk->pipelines[w].packs = 0;
    if (!walk->encoding->sets)
        memset(walk->missing, 0, FLAGS_BYTES(walk->n * walk->links));
}

/* Before Redis 6 there was no BITFIELD_RO. */
static void retry_without_ro(struct talk *talk, struct outbox *outbox)
{
    struct redis_server_traits *server = talk->task.link->server;
    const bool asked = server->cost.bitfield || talk->task.link->spec->counters != 0;

    if (talk->task.refusal != REFUSAL_UNKNOWN_COMMAND || server->lacks_bitfield_ro || !asked)
        return;
    server->lacks_bitfield_ro = true;
    redo(&talk->task);
    start(talk, outbox);
}

/* ---- Beginning and end ---------------------------------------------------------------------------- */

static void release(struct task *task)
{
    alloc.free(((struct walk *)task)->memory);
}

static void begin(struct walk *walk, struct link *link, uint32_t links, const struct encoding *encoding,
                  const hibloom_item *items, size_t n, bool answers)
{
    memset(walk, 0, sizeof *walk);
    talk_begin(&walk->talk, link, start);
    walk->talk.task.release = release;
    walk->talk.remake = remake;
    walk->encoding = encoding;
    walk->items = items;
    walk->n = n;
    walk->links = links;
    if (!pipeline_make(walk, link, answers))
        task_no_memory(&walk->talk.task);
}

void walk_begin_add(struct walk *walk, struct link *link, const hibloom_item *items, size_t n, bool exact)
{
    begin(walk, link, 1, encoding_to_add(link, exact), items, n, exact);
    walk->talk.step = start_add;
    walk->talk.task.adds = true;
    walk->talk.task.redo = redo;
    walk->talk.task.take_guard_ahead = take_guard_ahead;
    if (walk->encoding->all_keys && !link_is_together(link, link))
        task_fail(
            &walk->talk.task, HIBLOOM_ENOTSUP,
            "the keys of '%s' lie on several servers of the cluster, and an item has bits in several of them: is_new "
            "takes all of them in one step. Ask for no is_new, or choose a name with a {tag}",
            link_name(link, LINK_NAME));
}

void walk_begin_look(struct walk *walk, struct link *link, uint32_t links, const hibloom_item *items, size_t n,
                     const struct aside *aside)
{
    begin(walk, link, links, encoding_to_look(link), items, n, true);
    walk->aside = aside;
    walk->talk.task.reads = true;
    /* one replica may have bits, and another a config, of another time: so it asks no replica */
    walk->talk.task.redo = keys_have_config(link->spec) ? NULL : redo;
    walk->talk.cleanup = retry_without_ro;
}

/* Carried out once at most: it never begins again. Items that a server forgot were added once,
 * but to remove them there would be wrong. So it ends where an add goes on. */
void walk_begin_remove(struct walk *walk, struct link *link, const hibloom_item *items, size_t n)
{
    begin(walk, link, 1, &encoding_to_remove, items, n, true);
    walk->talk.task.removes = true;
}

void walk_read(const struct walk *walk, bool *answers)
{
    if (walk->missing == NULL || walk->talk.task.status != HIBLOOM_OK || answers == NULL)
        return;
    for (size_t i = 0; i < walk->n; i++) {
        uint32_t nth = 0;
        while (nth < walk->links && !walk_found(walk, nth, i))
            nth++;
        answers[i] = (nth == walk->links) == walk->encoding->sets;
    }
}
