/* redis_life.c: what becomes of a filter that stands: clear, expire, repair,
 * drop, remove, and the sweep after an add that came too late.
 *
 * Each change is a record for redis_change.c: whether it may be made, and the
 * commands that make it. Up to 16 MB one change removes a filter; a larger one
 * is marked, and removed step by step, so that the server is not stalled:
 *
 *     {seen}:spec   "removing 0123456789abcdef hash=..."   then the bitmaps   then nothing
 *
 * Whoever finds it so, because a process died over it, goes on with it. */
#include "redis/store_redis.h"

#include <string.h>

/* ---- Changes -------------------------------------------------------------- */

static bool judge_spec(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    (void)range;
    guard_judge_spec(filter, look->has_spec, look->spec);
    return true;
}

static bool judge_all(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    (void)range;
    guard_judge_spec(filter, look->has_spec, look->spec);
    guard_judge(filter, &look->guard);
    return true;
}

/* Only what is damaged, and only once, however many notice: the spec beside it
 * is written anew, so that whoever saw the damage before us looks again. */
static bool judge_repair(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    (void)range;
    guard_judge_spec(filter, look->has_spec, look->spec);
    return !redis_bitmaps_stand(filter, look);
}

/* The new keys get the time to live that the old ones had. */
static unsigned ask_empty(hibloom *filter, struct redis_range range, struct commands *out,
                          const struct redis_look *look)
{
    const long long left = filter->bare ? look->bitmap_ttl_ms : look->spec_ttl_ms;
    const uint64_t ttl_ms = (uint64_t)left;
    const struct redis_filter *own = redis_filter_of(filter);
    unsigned count = redis_ask_each_bitmap(filter, range, out, "UNLINK", NULL);

    count += redis_ask_bitmaps(filter, range, out);
    if (!filter->bare)
        count += own->segmented ? redis_ask_copies(filter, range, out)
                                : redis_ask_set(out, own->spec, filter->text);
    if (left < 0)
        return count;
    if (!filter->bare && !own->segmented)
        count += redis_ask_one(out, "PEXPIRE", own->spec, &ttl_ms);
    return count + redis_ask_each_key(filter, range, out, "PEXPIRE", &ttl_ms);
}

/* Where only the copy of the spec was lost, the bitmap beside it is whole. */
static unsigned ask_repair(hibloom *filter, struct redis_range range, struct commands *out,
                           const struct redis_look *look)
{
    const uint64_t ttl_ms = (uint64_t)look->spec_ttl_ms;

    if (look->guard.changed || look->guard.has_spec)
        return ask_empty(filter, range, out, look);
    const unsigned count = redis_ask_copies(filter, range, out);
    return look->spec_ttl_ms < 0 ? count : count + redis_ask_each_key(filter, range, out, "PEXPIRE", &ttl_ms);
}

static unsigned ask_expire(hibloom *filter, struct redis_range range, struct commands *out,
                           const struct redis_look *look)
{
    const uint64_t seconds = *(const uint64_t *)look->argument;
    const char *name = seconds == 0 ? "PERSIST" : "EXPIRE";
    const uint64_t *number = seconds == 0 ? NULL : &seconds;
    unsigned count = 0;

    if (!filter->bare && range.first == 0)
        count = redis_ask_one(out, name, redis_filter_of(filter)->spec, number);
    return count + redis_ask_each_key(filter, range, out, name, number);
}

/* ---- Removal -------------------------------------------------------------- */

unsigned redis_ask_drop(hibloom *filter, struct redis_range range, struct commands *out,
                        const struct redis_look *look)
{
    unsigned count = 0;

    (void)look;
    if (!filter->bare)
        count = redis_ask_one(out, "UNLINK", redis_filter_of(filter)->spec, NULL);
    return count + redis_ask_each_key(filter, range, out, "UNLINK", NULL);
}

/* Also one that was found still being created. */
static bool judge_doom(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    (void)range;
    if (!redis_spec_is(look, redis_filter_of(filter)->mark))
        guard_judge_spec(filter, look->has_spec, look->spec);
    return true;
}

static unsigned ask_doom(hibloom *filter, struct redis_range range, struct commands *out,
                         const struct redis_look *look)
{
    (void)range;
    return redis_ask_set(out, redis_filter_of(filter)->spec, look->argument);
}

static bool judge_remove(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    (void)range;
    return redis_spec_is(look, redis_filter_of(filter)->mark);
}

static unsigned ask_remove(hibloom *filter, struct redis_range range, struct commands *out,
                           const struct redis_look *look)
{
    (void)look;
    return redis_ask_each_key(filter, range, out, "UNLINK", NULL);
}

static unsigned ask_remove_spec(hibloom *filter, struct redis_range range, struct commands *out,
                                const struct redis_look *look)
{
    (void)range;
    (void)look;
    return redis_ask_one(out, "UNLINK", redis_filter_of(filter)->spec, NULL);
}

/* The number that late adders keep beside bitmaps. */
static struct argument late_key(const hibloom *filter, struct redis_range range, char name[KEYS_SIZE])
{
    return (struct argument){name, keys_passing(name, redis_filter_of(filter)->bitmaps[range.first].key.bytes, 'l')};
}

/* A leftover of adds is shorter than what is created; what is not is about to
 * expire, some milliseconds after the first. */
static bool is_leftover(const struct redis_bitmap *bitmap)
{
    return bitmap->length != 0 && bitmap->length < bitmap->whole;
}

/* It holds at most the bits that late adders have set since the guard last held
 * for them; some of those may have gone into the filter while it was there. */
static bool judge_sweep(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    const struct redis_filter *own = redis_filter_of(filter);
    uint64_t bits = 0;
    struct guard guard;
    const char *text;

    if (look->guard.has_spec && redis_state_of(look->guard.spec, &text) != REDIS_CREATING)
        return false;
    for (uint32_t i = range.first; i < range.first + range.count; i++)
        if (is_leftover(&own->bitmaps[i]))
            bits += redis_count_bits(filter, i, &guard);
    return bits != 0 && bits <= *(const uint64_t *)look->argument;
}

static unsigned ask_sweep(hibloom *filter, struct redis_range range, struct commands *out,
                          const struct redis_look *look)
{
    const struct redis_filter *own = redis_filter_of(filter);
    unsigned count = 0;
    char late[KEYS_SIZE];

    (void)look;
    for (uint32_t i = range.first; i < range.first + range.count; i++)
        if (is_leftover(&own->bitmaps[i]))
            count += redis_ask_one(out, "UNLINK", own->bitmaps[i].key, NULL);
    return count + redis_ask_one(out, "UNLINK", late_key(filter, range, late), NULL);
}

/* Of several late adders none knows what the others have set. So each adds its
 * bits to a number that is there for some seconds, and the last one takes all
 * of them back. */
#define LATE_MS 10000

static bool add_up_late(hibloom *filter, struct redis_range range, uint64_t *bits)
{
    struct redis_store *store = redis_store_of(filter);
    const uint64_t ms = LATE_MS;
    char name[KEYS_SIZE];
    long long all = 0, done;

    commands_empty(&store->out);
    (void)redis_ask_one(&store->out, "INCRBY", late_key(filter, range, name), bits);
    (void)redis_ask_one(&store->out, "PEXPIRE", late_key(filter, range, name), &ms);
    connection_send(&store->connection, &store->out);
    const bool added = connection_receive_integer(&store->connection, &all);
    const bool kept = connection_receive_integer(&store->connection, &done);
    *bits = (uint64_t)all;
    return added && kept && all > 0;
}

static const struct redis_change empty = {false, judge_spec, ask_empty};
static const struct redis_change repair = {false, judge_repair, ask_repair};
static const struct redis_change expire = {false, judge_all, ask_expire};
static const struct redis_change drop = {false, judge_spec, redis_ask_drop};
static const struct redis_change doom = {false, judge_doom, ask_doom};
static const struct redis_change remove_step = {false, judge_remove, ask_remove};
static const struct redis_change remove_spec = {false, judge_remove, ask_remove_spec};
static const struct redis_change sweep = {true, judge_sweep, ask_sweep};

void redis_go_on_removing(hibloom *filter)
{
    redis_make_each_step(filter, &remove_step, NULL);
    (void)redis_make_change(filter, &remove_spec, (struct redis_range){0, 1}, NULL);
}

static void remove_filter(hibloom *filter)
{
    char mark[REDIS_MARK_SIZE];

    if (redis_is_one_step(filter) || filter->bare) {
        redis_make_each_step(filter, &drop, NULL);
        return;
    }
    if (!redis_new_mark(filter, REDIS_REMOVING, mark))
        return;
    if (redis_make_change(filter, &doom, (struct redis_range){0, 1}, mark)) {
        strcpy(redis_filter_of(filter)->mark, mark);
        redis_go_on_removing(filter);
    }
}

/* ---- Operations ----------------------------------------------------------- */

hibloom_status redis_clear(hibloom *filter)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct redis_filter *own = redis_filter_of(filter);

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    redis_make_each_step(filter, &empty, NULL);
    hibloom_status status = connection_leave(c);
    for (uint32_t i = 0; status == HIBLOOM_OK && filter->bare && i < own->count; i++)
        own->bitmaps[i].whole = own->bitmaps[i].length; /* what was lost before is forgotten */
    return status;
}

hibloom_status redis_drop(hibloom *filter)
{
    struct connection *c = &redis_store_of(filter)->connection;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    remove_filter(filter);
    return connection_leave(c);
}

hibloom_status redis_expire(hibloom *filter, uint64_t seconds)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct redis_range range = {0, 0};

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    while (c->status == HIBLOOM_OK && redis_next_look(filter, &range))
        (void)redis_make_change(filter, &expire, range, &seconds);
    return connection_leave(c);
}

/* Changes the filter of that name, whatever its spec. */
static hibloom_status change_by_name(hibloom *filter, void (*change)(hibloom *))
{
    struct connection *c = &redis_store_of(filter)->connection;
    enum redis_state state;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    if (!redis_load(filter, NULL, &state))
        connection_fail(c, HIBLOOM_ENOTFOUND, "there is no filter '%s'", filter->name);
    if (c->status == HIBLOOM_OK)
        change(filter);
    hibloom_status status = connection_leave(c);
    redis_forget(filter);
    return status;
}

/* Of segments only those that are damaged. */
static void repair_filter(hibloom *filter)
{
    const struct connection *c = &redis_store_of(filter)->connection;
    const struct redis_filter *own = redis_filter_of(filter);

    if (!own->segmented) {
        redis_make_each_step(filter, &repair, NULL);
        return;
    }
    for (uint32_t i = 0; i < own->count && c->status == HIBLOOM_OK; i++)
        (void)redis_make_change(filter, &repair, (struct redis_range){i, 1}, NULL);
}

hibloom_status redis_repair(hibloom *filter)
{
    return change_by_name(filter, repair_filter);
}

hibloom_status redis_remove(hibloom *filter)
{
    return change_by_name(filter, remove_filter);
}

static void sweep_range(hibloom *filter, struct redis_range range)
{
    uint64_t bits = redis_filter_of(filter)->bitmaps[range.first].unproven;

    if (bits != 0 && add_up_late(filter, range, &bits))
        (void)redis_make_change(filter, &sweep, range, &bits);
}

/* Comes after a failure, whose words are what the caller is told. */
void redis_sweep(hibloom *filter, bool gone)
{
    struct redis_filter *own = redis_filter_of(filter);
    const struct error before = filter->store->error;
    struct connection *c = &redis_store_of(filter)->connection;

    if (gone && connection_enter(c) == HIBLOOM_OK) {
        for (uint32_t i = 0; i < own->count; i += redis_touched(filter, i).count)
            sweep_range(filter, redis_touched(filter, i));
        (void)connection_leave(c);
    }
    for (uint32_t i = 0; i < own->count; i++)
        own->bitmaps[i].unproven = 0;
    filter->store->error = before;
}
