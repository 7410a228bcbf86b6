/* redis_filter.c: the keys of a filter, as a handle knows them: names, sizes,
 * which of them are dealt with in one step, and the commands that make, mark
 * and remove them. */
#include "redis/store_redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RANGE_KEYS HIBLOOM_HASHES_MAX /* that are looked at or changed at a time */

static struct argument add_name(char **at, size_t len)
{
    const struct argument name = {*at, len};

    *at += len + 1;
    return name;
}

static void name_bitmaps(hibloom *filter, char *at)
{
    struct redis_filter *own = redis_filter_of(filter);

    own->spec = add_name(&at, keys_spec(at, filter->name));
    for (uint32_t i = 0; i < own->count; i++) {
        struct redis_bitmap *bitmap = &own->bitmaps[i];
        bitmap->key = add_name(&at, keys_bitmap(at, filter->name, own->count, i));
        bitmap->spec = own->segmented ? add_name(&at, keys_spec(at, bitmap->key.bytes)) : own->spec;
    }
}

static struct redis_filter *new_filter(const hibloom *filter, uint32_t count)
{
    struct redis_filter *own = calloc(1, sizeof *own + count * sizeof own->bitmaps[0]);

    if (own != NULL)
        own->names = malloc((1 + 2 * (size_t)count) * keys_size(filter->name));
    if (own != NULL && own->names == NULL) {
        free(own);
        return NULL;
    }
    return own;
}

bool redis_fits(hibloom *filter, const hibloom_spec *spec)
{
    const bool fits = spec_bitmap_bits(spec) <= REDIS_BITS_MAX;

    if (!fits)
        connection_fail(&redis_store_of(filter)->connection, HIBLOOM_ERANGE,
                        "a bitmap of %" PRIu64 " bits does not fit one Redis key, which holds 2^32 (512 MiB)",
                        spec_bitmap_bits(spec));
    return fits;
}

void redis_set_spec(hibloom *filter, const hibloom_spec *spec)
{
    struct connection *c = &redis_store_of(filter)->connection;
    const uint64_t bytes = spec_bitmap_bytes(spec);
    struct redis_filter *own;

    redis_forget(filter);
    if (!redis_fits(filter, spec))
        return;
    filter->impl = own = new_filter(filter, spec_keys(spec));
    if (own == NULL) {
        connection_fail(c, HIBLOOM_ENOMEM, "out of memory");
        return;
    }
    filter->spec = *spec;
    own->count = spec_keys(spec);
    own->segmented = spec_segments(spec) > 1;
    own->sealed = !filter->bare && bytes + REDIS_SEAL_BYTES <= REDIS_BITS_MAX / 8;
    name_bitmaps(filter, own->names);
    for (uint32_t i = 0; i < own->count; i++)
        own->bitmaps[i].whole = filter->bare ? 0 : own->sealed ? bytes + REDIS_SEAL_BYTES : bytes;
    hibloom_status status = hibloom_spec_format(spec, filter->text, sizeof filter->text);
    if (status != HIBLOOM_OK)
        connection_fail(c, status, "the spec could not be written as text");
}

void redis_forget(hibloom *filter)
{
    struct redis_filter *own = filter->impl;

    if (own != NULL)
        free(own->names);
    free(own);
    filter->impl = NULL;
}

static bool next_range(const hibloom *filter, struct redis_range *range, uint32_t most)
{
    const uint32_t left = redis_filter_of(filter)->count - range->first - range->count;

    range->first += range->count;
    range->count = left < most ? left : most;
    return left != 0;
}

bool redis_next_look(const hibloom *filter, struct redis_range *range)
{
    return next_range(filter, range, RANGE_KEYS);
}

bool redis_next_step(const hibloom *filter, struct redis_range *range)
{
    const uint64_t fit = STORE_PIECE / spec_bitmap_bytes(&filter->spec);

    return next_range(filter, range, fit < 1 ? 1 : fit > RANGE_KEYS ? RANGE_KEYS : (uint32_t)fit);
}

bool redis_is_one_step(const hibloom *filter)
{
    struct redis_range range = {0, 0};

    return redis_next_step(filter, &range) && range.count == redis_filter_of(filter)->count;
}

/* ---- The stored spec ------------------------------------------------------- */

static const char *const state_words[] = {"", "creating", "removing"};

enum redis_state redis_state_of(const char *stored, const char **text)
{
    const char *blank = strchr(stored, ' '), *second = blank != NULL ? strchr(blank + 1, ' ') : NULL;

    *text = stored;
    for (enum redis_state state = REDIS_CREATING; second != NULL && state <= REDIS_REMOVING; state++)
        if (strlen(state_words[state]) == (size_t)(blank - stored) &&
            memcmp(stored, state_words[state], (size_t)(blank - stored)) == 0) {
            *text = second + 1;
            return state;
        }
    return REDIS_STANDS;
}

bool redis_new_mark(hibloom *filter, enum redis_state state, char mark[REDIS_MARK_SIZE])
{
    uint64_t number;

    if (getentropy(&number, sizeof number) != 0) {
        connection_fail(&redis_store_of(filter)->connection, HIBLOOM_EIO, "the system has no random numbers");
        return false;
    }
    snprintf(mark, REDIS_MARK_SIZE, "%s %016" PRIx64 " %s", state_words[state], number, filter->text);
    return true;
}

/* ---- Commands on whole keys ------------------------------------------------ */

unsigned redis_ask_one(struct commands *out, const char *name, struct argument key, const uint64_t *number)
{
    command_start(out, number != NULL ? 3 : 2, name);
    command_argument(out, key);
    if (number != NULL)
        command_number(out, *number);
    return 1;
}

unsigned redis_ask_set(struct commands *out, struct argument key, const char *text)
{
    command_start(out, 3, "SET");
    command_argument(out, key);
    command_text(out, text);
    return 1;
}

unsigned redis_ask_each_bitmap(hibloom *filter, struct redis_range range, struct commands *out, const char *name,
                               const uint64_t *number)
{
    const struct redis_filter *own = redis_filter_of(filter);

    for (uint32_t i = range.first; i < range.first + range.count; i++)
        (void)redis_ask_one(out, name, own->bitmaps[i].key, number);
    return range.count;
}

unsigned redis_ask_each_key(hibloom *filter, struct redis_range range, struct commands *out, const char *name,
                            const uint64_t *number)
{
    const struct redis_filter *own = redis_filter_of(filter);
    unsigned count = redis_ask_each_bitmap(filter, range, out, name, number);

    for (uint32_t i = range.first; own->segmented && !filter->bare && i < range.first + range.count; i++)
        count += redis_ask_one(out, name, own->bitmaps[i].spec, number);
    return count;
}

unsigned redis_ask_copies(hibloom *filter, struct redis_range range, struct commands *out)
{
    const struct redis_filter *own = redis_filter_of(filter);
    unsigned count = 0;

    for (uint32_t i = range.first; own->segmented && i < range.first + range.count; i++)
        count += redis_ask_set(out, own->bitmaps[i].spec, filter->text);
    return count;
}

/* Writing its end makes a bitmap of that length, all 0 before it. */
unsigned redis_ask_bitmaps(hibloom *filter, struct redis_range range, struct commands *out)
{
    const struct redis_filter *own = redis_filter_of(filter);
    unsigned count = 0;

    for (uint32_t i = range.first; i < range.first + range.count; i++) {
        const struct redis_bitmap *bitmap = &own->bitmaps[i];
        const uint64_t length = filter->bare ? bitmap->length : bitmap->whole;
        if (length == 0)
            continue;
        command_start(out, 4, own->sealed ? "SETRANGE" : "SETBIT");
        command_argument(out, bitmap->key);
        command_number(out, own->sealed ? length - REDIS_SEAL_BYTES : length * 8 - 1);
        command_text(out, own->sealed ? REDIS_SEAL : "0");
        count++;
    }
    return count;
}
