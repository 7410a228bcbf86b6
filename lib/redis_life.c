/* redis_life.c: the life of a filter: open, attach, clear, expire, drop,
 * repair, remove, and the sweep after an add that came too late.
 *
 * Each change is a record for redis_change.c: whether it may be made, and the
 * commands that make it. */
#include "store_redis.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- The handle's keys ---------------------------------------------------- */

static hibloom_status check_size(hibloom *filter, const hibloom_spec *spec)
{
    if (spec->bits <= REDIS_BITS_MAX)
        return HIBLOOM_OK;
    return error_set(&filter->store->error, HIBLOOM_ERANGE,
                     "a bitmap of %" PRIu64 " bits does not fit one Redis key, which holds 2^32 (512 MiB)", spec->bits);
}

/* Takes a spec over and makes filter->own for it; may be called again. */
static void set_spec(hibloom *filter, const hibloom_spec *spec)
{
    struct connection *c = &redis_store_of(filter)->connection;
    const uint32_t count = spec_keys(spec);
    const uint64_t bytes = spec_bitmap_bytes(spec);
    const bool sealed = !filter->bare && bytes + REDIS_SEAL_BYTES <= REDIS_BITS_MAX / 8;
    struct redis_filter *own = realloc(filter->own, sizeof *own + count * sizeof own->bitmaps[0]);

    if (own == NULL) {
        connection_fail(c, HIBLOOM_ENOMEM, "out of memory");
        return;
    }
    filter->own = own;
    filter->spec = *spec;
    own->spec.len = keys_spec(own->spec.name, filter->name);
    own->block_cut = false;
    own->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct redis_key *key = &own->bitmaps[i];
        key->len = keys_bitmap(key->name, filter->name, count, i);
        key->sealed = sealed;
        key->whole = filter->bare ? 0 : sealed ? bytes + REDIS_SEAL_BYTES : bytes;
        key->length = 0;
    }
    hibloom_status status = hibloom_spec_format(spec, filter->text, sizeof filter->text);
    if (status != HIBLOOM_OK)
        connection_fail(c, status, "the spec could not be written as text");
}

/* ---- The changes ---------------------------------------------------------- */

/* Writing its end makes a bitmap of that length, all 0 before it. A bare one
 * gets the length that it had; one that was not there is left to its first add. */
static unsigned ask_bitmaps(hibloom *filter, struct commands *out)
{
    const struct redis_filter *own = redis_filter_of(filter);
    unsigned count = 0;

    for (uint32_t i = 0; i < own->count; i++) {
        const struct redis_key *key = &own->bitmaps[i];
        const uint64_t length = filter->bare ? key->length : key->whole;
        if (length == 0)
            continue;
        command_start(out, 4, key->sealed ? "SETRANGE" : "SETBIT");
        command_argument(out, redis_key_argument(key));
        command_number(out, key->sealed ? length - REDIS_SEAL_BYTES : length * 8 - 1);
        command_text(out, key->sealed ? REDIS_SEAL : "0");
        count++;
    }
    return count;
}

/* NAME key, or NAME key number */
static void ask_one(struct commands *out, const char *name, const struct redis_key *key, const uint64_t *number)
{
    command_start(out, number != NULL ? 3 : 2, name);
    command_argument(out, redis_key_argument(key));
    if (number != NULL)
        command_number(out, *number);
}

static unsigned ask_each_bitmap(hibloom *filter, struct commands *out, const char *name, const uint64_t *number)
{
    const struct redis_filter *own = redis_filter_of(filter);

    for (uint32_t i = 0; i < own->count; i++)
        ask_one(out, name, &own->bitmaps[i], number);
    return own->count;
}

/* The spec too, where it is ours. */
static unsigned ask_each_key(hibloom *filter, struct commands *out, const char *name, const uint64_t *number)
{
    if (!filter->bare)
        ask_one(out, name, &redis_filter_of(filter)->spec, number);
    return !filter->bare + ask_each_bitmap(filter, out, name, number);
}

/* A filter's keys expire spec first, its bitmaps in the same instant or, on a
 * busy server, some milliseconds later. */
#define EXPIRING_MS 500

static bool judge_create(hibloom *filter, const struct redis_look *look)
{
    if (look->guard.has_spec) /* somebody was faster */
        return false;
    if (look->guard.existing && look->bitmap_ttl_ms >= 0 && look->bitmap_ttl_ms <= EXPIRING_MS)
        return false; /* look again: it is about to go */
    if (look->guard.existing)
        connection_fail(&redis_store_of(filter)->connection, HIBLOOM_EMISMATCH,
                        "'%s' is a bitmap without a spec: join it with hibloom_attach if it is another program's, "
                        "else delete it", filter->name);
    return !look->guard.existing;
}

static unsigned ask_create(hibloom *filter, struct commands *out, const struct redis_look *look)
{
    (void)look;
    command_start(out, 3, "SET");
    command_argument(out, redis_key_argument(&redis_filter_of(filter)->spec));
    command_text(out, filter->text);
    return 1 + ask_bitmaps(filter, out);
}

static bool judge_spec(hibloom *filter, const struct redis_look *look)
{
    guard_judge_spec(filter, &look->guard);
    return true;
}

static bool judge_all(hibloom *filter, const struct redis_look *look)
{
    guard_judge(filter, &look->guard);
    return true;
}

/* Only what is damaged, and only once, however many notice. */
static bool judge_repair(hibloom *filter, const struct redis_look *look)
{
    guard_judge_spec(filter, &look->guard);
    return look->guard.changed;
}

/* A leftover of adds is shorter than what is created. It holds at most the bits
 * that the caller has set since the guard last held; some of those may have
 * gone into the filter while it was still there. */
static bool judge_sweep(hibloom *filter, const struct redis_look *look)
{
    const struct redis_filter *own = redis_filter_of(filter);
    uint64_t bits = 0;
    struct guard guard;

    if (look->guard.has_spec)
        return false;
    for (uint32_t i = 0; i < own->count; i++) {
        if (own->bitmaps[i].length >= own->bitmaps[i].whole)
            return false;
        bits += redis_count_bits(filter, i, &guard);
    }
    return bits != 0 && bits <= look->argument;
}

static unsigned ask_sweep(hibloom *filter, struct commands *out, const struct redis_look *look)
{
    (void)look;
    return ask_each_bitmap(filter, out, "UNLINK", NULL);
}

static unsigned ask_clear(hibloom *filter, struct commands *out, const struct redis_look *look)
{
    const long long left = filter->bare ? look->bitmap_ttl_ms : look->spec_ttl_ms;
    const uint64_t ttl_ms = (uint64_t)left;
    unsigned count = ask_each_bitmap(filter, out, "UNLINK", NULL) + ask_bitmaps(filter, out);

    return left >= 0 ? count + ask_each_key(filter, out, "PEXPIRE", &ttl_ms) : count;
}

static unsigned ask_drop(hibloom *filter, struct commands *out, const struct redis_look *look)
{
    (void)look;
    return ask_each_key(filter, out, "UNLINK", NULL);
}

static unsigned ask_expire(hibloom *filter, struct commands *out, const struct redis_look *look)
{
    if (look->argument == 0)
        return ask_each_key(filter, out, "PERSIST", NULL);
    return ask_each_key(filter, out, "EXPIRE", &look->argument);
}

static const struct redis_change create = {true, judge_create, ask_create};
static const struct redis_change clear = {false, judge_spec, ask_clear};
static const struct redis_change drop = {false, judge_spec, ask_drop};
static const struct redis_change repair = {true, judge_repair, ask_clear};
static const struct redis_change expire = {false, judge_all, ask_expire};
static const struct redis_change sweep = {true, judge_sweep, ask_sweep};

static hibloom_status converse_change(hibloom *filter, const struct redis_change *change, uint64_t argument)
{
    struct connection *c = &redis_store_of(filter)->connection;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    (void)redis_make_change(filter, change, argument);
    return connection_leave(c);
}

/* ---- Operations ----------------------------------------------------------- */

/* Gets the stored spec's text; whether there is one. */
static bool get_spec(hibloom *filter, char text[REPLY_TEXT + 1])
{
    struct redis_store *store = redis_store_of(filter);
    char key[KEYS_SIZE];

    commands_empty(&store->out);
    command_start(&store->out, 2, "GET");
    command_argument(&store->out, (struct argument){key, keys_spec(key, filter->name)});
    connection_send(&store->connection, &store->out);
    return guard_receive_spec(&store->connection, text);
}

/* Takes the stored spec over, if there is one and it is the wanted one. */
static bool load(hibloom *filter, const hibloom_spec *wanted)
{
    struct connection *c = &redis_store_of(filter)->connection;
    char text[REPLY_TEXT + 1];
    hibloom_spec spec;

    if (!get_spec(filter, text))
        return false;
    hibloom_status status = spec_adopt(&spec, wanted, text);
    if (status == HIBLOOM_OK && spec.bits <= REDIS_BITS_MAX)
        set_spec(filter, &spec);
    else if (status == HIBLOOM_ENOMEM)
        connection_fail(c, status, "out of memory");
    else
        guard_fail_spec(filter, text);
    return true;
}

/* A round trip for the guard alone. */
static void look_at(hibloom *filter, struct guard *guard)
{
    struct redis_store *store = redis_store_of(filter);

    commands_empty(&store->out);
    guard_ask(filter, &store->out);
    connection_send(&store->connection, &store->out);
    guard_receive(filter, guard);
}

/* Whether the spec is still the one that was loaded; then the bitmaps are
 * judged, too. */
static bool verify(hibloom *filter)
{
    const struct connection *c = &redis_store_of(filter)->connection;
    struct guard guard;

    look_at(filter, &guard);
    if (c->status == HIBLOOM_OK && (!guard.has_spec || strcmp(guard.spec, filter->text) != 0))
        return false;
    guard_judge_bitmaps(filter, &guard);
    return true;
}

/* Whether it is there now, and was made by us. */
static bool create_with_seed(hibloom *filter, const hibloom_spec *wanted)
{
    struct connection *c = &redis_store_of(filter)->connection;
    hibloom_spec spec = *wanted;

    if (spec_draw_seed(&spec) != HIBLOOM_OK) {
        connection_fail(c, HIBLOOM_EIO, "the system has no random numbers for a seed");
        return false;
    }
    set_spec(filter, &spec);
    if (c->status != HIBLOOM_OK)
        return false;
    const char *seed = strstr(filter->text, " seed=");
    if (seed != NULL)
        c->secret = (struct argument){seed + 6, strcspn(seed + 6, " ")};
    const bool created = redis_make_change(filter, &create, 0);
    c->secret = (struct argument){NULL, 0};
    return created;
}

static void open_or_create(hibloom *filter, const hibloom_spec *wanted)
{
    struct connection *c = &redis_store_of(filter)->connection;

    for (int i = 0; i < REDIS_ATTEMPTS && c->status == HIBLOOM_OK; i++) {
        if (i > 1) /* a filter that is just expiring is soon gone */
            nanosleep(&(struct timespec){0, i < 20 ? 1000000 : 10000000}, NULL);
        if (load(filter, wanted)) {
            if (c->status == HIBLOOM_OK && verify(filter))
                return;
        } else if (wanted == NULL) {
            connection_fail(c, HIBLOOM_ENOTFOUND, "there is no filter '%s'", filter->name);
        } else if (c->status == HIBLOOM_OK && create_with_seed(filter, wanted)) {
            return;
        }
    }
    connection_fail(c, HIBLOOM_ESERVER, "gave up on '%s': other clients keep changing it", filter->name);
}

hibloom_status redis_open(hibloom *filter, const hibloom_spec *wanted)
{
    struct connection *c = &redis_store_of(filter)->connection;

    if (wanted != NULL && check_size(filter, wanted) != HIBLOOM_OK)
        return HIBLOOM_ERANGE;
    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    open_or_create(filter, wanted);
    if (connection_leave(c) != HIBLOOM_OK)
        free(filter->own);
    return c->status;
}

hibloom_status redis_attach(hibloom *filter)
{
    struct connection *c = &redis_store_of(filter)->connection;
    const hibloom_spec spec = filter->spec;
    struct guard guard = {0};

    if (check_size(filter, &spec) != HIBLOOM_OK)
        return HIBLOOM_ERANGE;
    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    set_spec(filter, &spec);
    if (c->status == HIBLOOM_OK)
        look_at(filter, &guard);
    guard_judge_spec(filter, &guard);
    if (connection_leave(c) != HIBLOOM_OK)
        free(filter->own);
    return c->status;
}

hibloom_status redis_clear(hibloom *filter)
{
    hibloom_status status = converse_change(filter, &clear, 0);
    struct redis_filter *own = redis_filter_of(filter);

    for (uint32_t i = 0; status == HIBLOOM_OK && filter->bare && i < own->count; i++)
        own->bitmaps[i].whole = own->bitmaps[i].length; /* what was lost before is forgotten */
    return status;
}

hibloom_status redis_drop(hibloom *filter)
{
    return converse_change(filter, &drop, 0);
}

hibloom_status redis_expire(hibloom *filter, uint64_t seconds)
{
    return converse_change(filter, &expire, seconds);
}

/* Changes the filter of that name, whatever its spec. */
static hibloom_status change_by_name(hibloom *filter, const struct redis_change *change)
{
    struct connection *c = &redis_store_of(filter)->connection;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    if (!load(filter, NULL))
        connection_fail(c, HIBLOOM_ENOTFOUND, "there is no filter '%s'", filter->name);
    if (c->status == HIBLOOM_OK)
        (void)redis_make_change(filter, change, 0);
    free(filter->own);
    return connection_leave(c);
}

hibloom_status redis_repair(hibloom *filter)
{
    return change_by_name(filter, &repair);
}

hibloom_status redis_remove(hibloom *filter)
{
    return change_by_name(filter, &drop);
}

void redis_sweep(hibloom *filter, uint64_t bits)
{
    const struct error before = filter->store->error; /* what led here is what the caller is told */

    (void)converse_change(filter, &sweep, bits);
    filter->store->error = before;
}
