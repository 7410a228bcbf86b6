/* redis_open.c: how a handle comes to be: open, which creates what is not
 * there, and attach.
 *
 * A filter of up to 16 MB is created by one change, spec and bitmaps together.
 * A larger one is claimed and then made step by step, so that the server is not
 * stalled:
 *
 *     {seen}:spec   "creating 0123456789abcdef hash=..."   then the bitmaps   then "hash=..."
 *
 * Whoever finds it so goes on with it: racing creators help each other, and one
 * that dies leaves nothing that the next would not finish. Nobody can have
 * added to it yet, since nobody has opened it. */
#include "redis/store_redis.h"

#include <string.h>
#include <time.h>

/* ---- Creating ------------------------------------------------------------- */

/* A filter's keys expire spec first, its bitmaps in the same instant or, on a
 * busy server, some milliseconds later. */
#define EXPIRING_MS 500

static void fail_taken(hibloom *filter)
{
    connection_fail(&redis_store_of(filter)->connection, HIBLOOM_EMISMATCH,
                    "'%s' is a bitmap without a spec: join it with hibloom_attach if it is another program's, "
                    "else delete it", filter->name);
}

/* Bits that came too late for another filter of the name are soon taken back;
 * it is looked again so often before they count as somebody's. */
#define PATIENCE 20

/* What the changes of a creation need to know. */
struct creation {
    unsigned patience; /* left */
    bool free;         /* all places, as far as they were looked at */
    char mark[REDIS_MARK_SIZE];
};

/* Is there time left for what is in the way to go? */
static bool is_patient(struct creation *creation)
{
    const bool left = creation->patience > 0;

    creation->patience -= left;
    return left;
}

static bool judge_create(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    struct creation *creation = look->argument;

    (void)range;
    if (look->has_spec) /* somebody was faster */
        return false;
    if (look->guard.existing && look->bitmap_ttl_ms >= 0 && look->bitmap_ttl_ms <= EXPIRING_MS)
        return false; /* look again: it is about to go */
    if (look->guard.existing && is_patient(creation))
        return false;
    if (look->guard.existing)
        fail_taken(filter);
    return true;
}

static unsigned ask_claim(hibloom *filter, struct redis_range range, struct commands *out,
                          const struct redis_look *look)
{
    const struct creation *creation = look->argument;

    (void)range;
    return redis_ask_set(out, redis_filter_of(filter)->spec, creation->mark);
}

static bool judge_step(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    struct creation *creation = look->argument;

    (void)range;
    if (!redis_spec_is(look, redis_filter_of(filter)->mark) || redis_bitmaps_stand(filter, look))
        return false; /* done */
    if (look->guard.existing && is_patient(creation))
        return creation->free = false;
    if (look->guard.existing)
        fail_taken(filter);
    return true;
}

static unsigned ask_step(hibloom *filter, struct redis_range range, struct commands *out,
                         const struct redis_look *look)
{
    (void)look;
    return redis_ask_copies(filter, range, out) + redis_ask_bitmaps(filter, range, out);
}

static bool judge_finish(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    (void)range;
    return redis_spec_is(look, redis_filter_of(filter)->mark);
}

static unsigned ask_finish(hibloom *filter, struct redis_range range, struct commands *out,
                           const struct redis_look *look)
{
    (void)range;
    (void)look;
    return redis_ask_set(out, redis_filter_of(filter)->spec, filter->text);
}

static unsigned ask_create(hibloom *filter, struct redis_range range, struct commands *out,
                           const struct redis_look *look)
{
    return ask_finish(filter, range, out, look) + ask_step(filter, range, out, look);
}

/* A server that takes no string of that length has made the spec alone. */
static bool judge_undo(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    (void)range;
    return redis_spec_is(look, filter->text) && look->guard.gone;
}

static const struct redis_change create = {true, judge_create, ask_create};
static const struct redis_change claim = {true, judge_create, ask_claim};
static const struct redis_change step = {true, judge_step, ask_step};
static const struct redis_change finish = {false, judge_finish, ask_finish};
static const struct redis_change undo = {false, judge_undo, redis_ask_drop};

/* Are all places free? So a filter is not begun that another program's bitmap
 * is in the way of. */
static bool judge_free(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    struct creation *creation = look->argument;

    creation->free = creation->free && judge_create(filter, range, look);
    return false;
}

static bool all_free(hibloom *filter, struct creation *creation)
{
    static const struct redis_change check = {true, judge_free, NULL};

    creation->free = true;
    redis_make_each_step(filter, &check, creation);
    return creation->free && redis_store_of(filter)->connection.status == HIBLOOM_OK;
}

/* Whether it is there now, and was made by us. */
static bool create_filter(hibloom *filter, struct creation *creation)
{
    if (redis_is_one_step(filter))
        return redis_make_change(filter, &create, redis_all(filter), creation);
    if (all_free(filter, creation) && redis_new_mark(filter, REDIS_CREATING, creation->mark))
        (void)redis_make_change(filter, &claim, (struct redis_range){0, 1}, creation);
    return false; /* what is claimed, by whomever, is found and gone on with */
}

/* From "creating ..." on. */
static void go_on_creating(hibloom *filter, struct creation *creation)
{
    creation->free = true;
    redis_make_each_step(filter, &step, creation);
    if (creation->free)
        (void)redis_make_change(filter, &finish, (struct redis_range){0, 1}, NULL);
}

/* ---- Opening -------------------------------------------------------------- */

/* Gets the stored spec's text; whether there is one. */
static bool get_spec(hibloom *filter, char text[REPLY_TEXT + 1])
{
    struct redis_store *store = redis_store_of(filter);
    char key[KEYS_SIZE];

    commands_empty(&store->out);
    (void)redis_ask_one(&store->out, "GET", (struct argument){key, keys_spec(key, filter->name)}, NULL);
    connection_send(&store->connection, &store->out);
    return guard_receive_spec(filter, text);
}

/* One that is about to go need not be the wanted one. */
bool redis_load(hibloom *filter, const hibloom_spec *wanted, enum redis_state *state)
{
    struct connection *c = &redis_store_of(filter)->connection;
    char stored[REPLY_TEXT + 1];
    const char *text;
    hibloom_spec spec;

    if (!get_spec(filter, stored))
        return false;
    *state = redis_state_of(stored, &text);
    hibloom_status status = spec_adopt(&spec, *state == REDIS_REMOVING ? NULL : wanted, text);
    if (status == HIBLOOM_ENOMEM)
        connection_fail(c, status, "out of memory");
    else if (status == HIBLOOM_ECORRUPT)
        connection_fail(c, status, "what is stored as the spec of '%s' is none", filter->name);
    else if (status != HIBLOOM_OK)
        guard_fail_spec(filter, text);
    else
        redis_set_spec(filter, &spec);
    if (c->status == HIBLOOM_OK)
        strcpy(redis_filter_of(filter)->mark, stored);
    return true;
}

/* Is the spec still the one that was loaded? Then the bitmaps are judged, too. */
static bool judge_loaded(hibloom *filter, struct redis_range range, const struct redis_look *look)
{
    bool *loaded = look->argument;

    (void)range;
    *loaded = *loaded && redis_spec_is(look, filter->text);
    if (*loaded)
        guard_judge(filter, &look->guard);
    return false;
}

/* Only where something looks wrong it is looked at under a WATCH, which costs
 * a round trip more. */
static bool verify(hibloom *filter)
{
    static const struct redis_change check = {true, judge_loaded, NULL};
    const struct connection *c = &redis_store_of(filter)->connection;
    struct redis_range range = {0, 0};
    struct redis_look look;
    bool loaded = true;

    while (loaded && c->status == HIBLOOM_OK && redis_next_look(filter, &range))
        if (!redis_look_at(filter, range, &look) || !redis_spec_is(&look, filter->text) ||
            !redis_bitmaps_stand(filter, &look))
            (void)redis_make_change(filter, &check, range, &loaded);
    return loaded;
}

/* Whether it is there now, and was made by us. */
static bool create_with_seed(hibloom *filter, const hibloom_spec *wanted, struct creation *creation)
{
    struct connection *c = &redis_store_of(filter)->connection;
    hibloom_spec spec = *wanted;

    if (spec_draw_seed(&spec) != HIBLOOM_OK) {
        connection_fail(c, HIBLOOM_EIO, "the system has no random numbers for a seed");
        return false;
    }
    redis_set_spec(filter, &spec);
    return c->status == HIBLOOM_OK && create_filter(filter, creation);
}

static void pause_before(int attempt)
{
    if (attempt > 1) /* a filter that is just expiring is soon gone */
        nanosleep(&(struct timespec){0, attempt < 20 ? 1000000 : 10000000}, NULL);
}

/* Whether it tried to create it in one step. */
static bool open_or_create(hibloom *filter, const hibloom_spec *wanted)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct creation creation = {.patience = PATIENCE};
    enum redis_state state;

    if (wanted != NULL && !redis_fits(filter, wanted))
        return false;
    for (int i = 0; i < REDIS_ATTEMPTS && c->status == HIBLOOM_OK; i++) {
        pause_before(i);
        const bool stored = redis_load(filter, wanted, &state);
        if (c->status != HIBLOOM_OK)
            return false;
        if (stored && state == REDIS_STANDS && verify(filter))
            return false;
        if (stored && state == REDIS_CREATING)
            go_on_creating(filter, &creation);
        if (stored && state == REDIS_REMOVING)
            redis_go_on_removing(filter);
        if (!stored && wanted == NULL)
            connection_fail(c, HIBLOOM_ENOTFOUND, "there is no filter '%s'", filter->name);
        if (!stored && wanted != NULL && (create_with_seed(filter, wanted, &creation) || c->status != HIBLOOM_OK))
            return filter->impl != NULL && redis_is_one_step(filter);
    }
    connection_fail(c, HIBLOOM_ESERVER, "gave up on '%s': other clients keep changing it", filter->name);
    return false;
}

/* After a failure, whose words are what the caller is told. */
static void undo_creation(hibloom *filter)
{
    struct connection *c = &redis_store_of(filter)->connection;
    const struct error before = filter->store->error;

    if (connection_enter(c) == HIBLOOM_OK) {
        (void)redis_make_change(filter, &undo, redis_all(filter), NULL);
        (void)connection_leave(c);
    }
    filter->store->error = before;
}

/* ---- Operations ----------------------------------------------------------- */

hibloom_status redis_open(hibloom *filter, const hibloom_spec *wanted)
{
    struct connection *c = &redis_store_of(filter)->connection;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    const bool tried = open_or_create(filter, wanted);
    hibloom_status status = connection_leave(c);
    if (tried && status == HIBLOOM_ESERVER)
        undo_creation(filter);
    if (status != HIBLOOM_OK)
        redis_forget(filter);
    return status;
}

hibloom_status redis_attach(hibloom *filter)
{
    struct connection *c = &redis_store_of(filter)->connection;
    const hibloom_spec spec = filter->spec;
    struct redis_range range = {0, 0};
    struct guard guard;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    redis_set_spec(filter, &spec);
    while (c->status == HIBLOOM_OK && redis_next_look(filter, &range)) {
        guard_look(filter, range, &guard);
        guard_judge_spec(filter, guard.has_spec, guard.spec);
    }
    hibloom_status status = connection_leave(c);
    if (status != HIBLOOM_OK)
        redis_forget(filter);
    return status;
}
