/* told.c: what calls tell of whole filters: numbers, names, and which call has made one. See names.h. */
#include "sim/names.h"

#include <math.h>

static struct counted count(int name)
{
    const struct filter_seen *seen = &names[name].seen;
    struct counted sum = {.links = seen->links};

    for (const struct link_seen *link = seen->link; link < seen->link + seen->links; link++) {
        const struct text_seen *text = &link->root.text;
        const uint32_t width = text->counters != 0 ? text->counters : 1, keys = (uint32_t)link->root.keys;
        sum.keys += keys;
        sum.bits += text->partitioned ? text->bits * keys : (text->bits + keys - 1) / keys * keys;
        sum.capacity = text->window != 0 ? text->capacity : sum.capacity + text->capacity;
        for (uint32_t k = 0; k < keys; k++) {
            const struct blob *string = world_fetch(NULL, key_of(link, k));
            const size_t bytes = string == NULL ? 0 : string->len < link->root.bytes ? string->len : link->root.bytes;
            for (size_t bit = 0; bit < bytes * 8; bit += width)
                sum.bits_set += ((unsigned char)string->bytes[bit / 8] >> (8 - width - bit % 8) & ((1 << width) - 1)) !=
                                0;
            sum.bytes += string != NULL ? string->len : 0;
        }
    }
    return sum;
}

void told_begin(struct call *c)
{
    c->forgotten = names[c->name].seen.lingering > 0;
    if (c->verb == VERB_INFO || c->verb == VERB_COMPARE)
        c->counted = count(c->name);
    for (int i = 0; i < (int)world.plan->names && c->verb == VERB_LIST; i++) {
        look_again(i, may_go_by_itself(i), "something");
        c->roots[i] = names[i].seen.status == 0 || names[i].there == 0 ? names[i].there : UINT64_MAX;
    }
}

/* The filter was there all the time, and nothing has changed its numbers. */
static bool is_counted(const struct call *c)
{
    const struct name *n = &names[c->name];
    const struct counted now = count(c->name);

    return c->alone && !kind_of(c->name)->bare && c->raw_at_begin == 0 && n->seen.status == 0 && c->lives == n->lives &&
           n->seen.lingering == 0 && memcmp(&now, &c->counted, sizeof now) == 0 && !world.stale[c->client] &&
           !world.plan->client[c->client].from_replicas && !caused(CAUSE_LOSS, c->begun_us) &&
           !world_had(FAULT_STRANGER) /* that may have lengthened a key */;
}

static void check_info(const struct call *c)
{
    const hibloom_info *info = &c->told->info;
    const struct counted *is = &c->counted;
    const uint64_t expiry_ms = world_expiry_ms(root_key(c->name)), now_ms = clock_of(c->name) / 1000;
    const int64_t most = (int64_t)(expiry_ms - c->begun_clock_us / 1000), least = (int64_t)(expiry_ms - now_ms);

    if (info->bits_set != is->bits_set || info->bytes != is->bytes || info->keys != is->keys ||
        info->links != is->links || info->capacity != is->capacity ||
        fabs(info->fill - (double)is->bits_set / (double)is->bits) > 1e-9)
        fail_call(c, "'%s' has %d bits set, %d bytes, %d keys, and other numbers are told", oracle_name(c->name),
                  (int)is->bits_set, (int)is->bytes, (int)is->keys);
    if (expiry_ms == c->expiry_ms && !caused(CAUSE_CLOCK, 1) &&
        (expiry_ms == 0 ? info->ttl_ms != -1 : info->ttl_ms > most + 1 || info->ttl_ms + 1 < least))
        fail_call(c, "the time to live of '%s' is told as %d ms", oracle_name(c->name), (int)info->ttl_ms);
}

static void check_comparison(const struct call *c) /* with itself */
{
    const hibloom_comparison *told = &c->told->comparison;
    const double bits = (double)c->counted.bits, k = names[c->name].seen.link[0].root.text.hashes;
    const double items = -bits / k * log1p(-(double)c->counted.bits_set / bits), near = 1e-6 * (1 + items);

    if (isfinite(items) && (fabs(told->union_items - items) > near || fabs(told->intersection_items - items) > near))
        fail_call(c, "'%s' has some %g items, but not in common with itself", oracle_name(c->name), items);
}

/* A filter that is there all the time is listed, and none that is not. */
static void check_listed(const struct call *c)
{
    if (c->torn && world.plan->client[c->client].loop == 0 && !caused(CAUSE_DENIAL, 1))
        fail_call(c, "OK, but a server was another run, or another one, as it went on");
    if (world.stale[c->client] || caused(CAUSE_SLOTS, c->begun_us - LATE_US) || caused(CAUSE_LOSS, c->begun_us) ||
        caused(CAUSE_DENIAL, c->begun_us) || world_had(FAULT_STRANGER) || world.plan->client[c->client].from_replicas)
        return;
    for (int i = 0; i < (int)world.plan->names; i++) {
        const struct name *n = &names[i];
        look_again(i, may_go_by_itself(i), "something"); /* another one may have expired */
        const bool listed = (c->told->listed >> i & 1) != 0, there = n->there != 0 && !kind_of(i)->bare;
        if (caused(CAUSE_CLOCK, 1) && world_expiry_ms(root_key(i)) != 0)
            continue; /* by the clock of one server it may have expired */
        if (n->there_since_us <= c->begun_us && n->there == c->roots[i] && listed != there &&
            (there ? n->seen.status == 0 : !n->haunted /* bits of before hide its spec (8) */))
            fail_call(c, "'%s' is %s", oracle_name(i), listed ? "listed, but not there" : "there, but not listed");
    }
    if (c->told->stray)
        fail_call(c, "a name is listed that is no filter's");
}

/* One of those who open it has made it (hibloom_created). */
static void check_created(const struct call *c, bool unclean)
{
    struct name *n = &names[c->name];

    if (world.stale[c->client] || n->seen.status != 0 || c->ready != 1 || caused(CAUSE_LOSS, 1))
        return;
    if (!c->told->created && c->raw_at_begin == HIBLOOM_ENOTFOUND && c->alone && !unclean &&
        !caused(CAUSE_CLOCK, c->begun_us)) /* one that steps back shows again what had expired */
        fail_call(c, "'%s' was made, and nobody is said to have done so", oracle_name(c->name));
    if (!c->told->created && c->only_new)
        fail_call(c, "'%s' was to be made, or not to be opened, and is not said to be made", oracle_name(c->name));
    if (!c->told->created || c->doubtful)
        return;
    if (c->raw_at_begin == 0)
        fail_call(c, "'%s' was there, and is said to be made", oracle_name(c->name));
    /* One that has made it, while others removed that again, may have got what the next one has made. */
    if (n->created == oracle_root(c->name) && !somebody_may_remove(c->name) && !caused(CAUSE_KEYS, 1))
        fail_call(c, "'%s' is said to be made by two", oracle_name(c->name));
    n->created = oracle_root(c->name);
}

/* A root may forget its growth on a failover. Who opens the filter looks one link further (docs/format.md, 15). */
static void note_opened(const struct call *c)
{
    struct name *n = &names[c->name];
    const bool knows = c->forgotten && c->raw_at_begin == 0 && n->seen.status == 0 && c->lives == n->lives &&
                       !world.stale[c->client] && !caused(CAUSE_LOSS, c->begun_us);

    n->knew_us[c->client] = knows ? net_now_us() : 0;
}

void told_check(const struct call *c, bool unclean)
{
    if (c->verb == VERB_OPEN)
        note_opened(c);
    if (c->verb == VERB_INFO && is_counted(c))
        check_info(c);
    if (c->verb == VERB_COMPARE && is_counted(c))
        check_comparison(c);
    if (c->verb == VERB_LIST)
        check_listed(c);
    if (c->verb == VERB_OPEN && !kind_of(c->name)->bare)
        check_created(c, unclean);
}
