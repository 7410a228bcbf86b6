/* import.c: RedisBloom's filter becomes one of ours.
 *
 *     header -> spec -> a filter under another name, which expires in an hour
 *     piece after piece of its bits -> merged into that; of a further link, into a link of its own
 *     the header once more: is it the same? -> the filter gets its name
 *
 * So nobody ever opens a filter that lacks a part of its items, and what an import that
 * was killed leaves is gone in an hour. The module counts each new item in the header: while that
 * is the same, no bit has changed. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/store.h"
#include "bits/bits.h"
#include "filter/dump_file.h"
#include "spec/redisbloom.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define ASIDE_SECONDS 3600
#define ASIDE_BYTES 32 /* that the other name is longer, at most */
#define HEADER_NEXT 1  /* the iterator that comes with a header */

/* A dump that is being read. */
struct dump {
    hibloom_store *from; /* NULL: from a file */
    const char *key;
    struct dump_file *file;
    struct error *error; /* of the store that it is for */
    char whose[300];     /* for words */
    struct dumped piece;
    unsigned char header[REDISBLOOM_HEADER_ROOM];
    size_t header_len;
    struct redisbloom filter; /* what the header says */
    uint64_t bits_set[HIBLOOM_LINKS_MAX];
};

/* ---- The dump ---------------------------------------------------------------------- */

static hibloom_status read_piece(struct dump *dump, uint64_t at, unsigned char *bytes, size_t room)
{
    dump->piece = (struct dumped){.at = at, .bytes = bytes, .room = room};
    if (dump->from == NULL)
        return dump_file_read(dump->file, &dump->piece);
    const hibloom_status status = dump->from->class->scandump(dump->from, dump->key, &dump->piece);
    if (status != HIBLOOM_OK && &dump->from->error != dump->error)
        *dump->error = dump->from->error;
    return status;
}

static hibloom_status read_header(struct dump *dump)
{
    const hibloom_status status = read_piece(dump, 0, dump->header, sizeof dump->header);

    if (status != HIBLOOM_OK)
        return status;
    dump->header_len = dump->piece.len;
    if (dump->piece.next != HEADER_NEXT)
        dump->header_len = 0;
    return redisbloom_parse(&dump->filter, dump->header, dump->header_len, dump->whose, dump->error);
}

static hibloom_status torn(struct dump *dump, const char *words)
{
    return error_set(dump->error, HIBLOOM_ECORRUPT, "%s: %s: nothing is taken over", dump->whose, words);
}

/* It changes with each item that is new. */
static hibloom_status check_header_again(struct dump *dump)
{
    unsigned char again[REDISBLOOM_HEADER_ROOM];
    const hibloom_status status = read_piece(dump, 0, again, sizeof again);

    if (status != HIBLOOM_OK)
        return status;
    if (dump->from == NULL && dump->piece.next == 0)
        return torn(dump, "does not end in the header once more, which shows that nobody wrote meanwhile");
    if (dump->piece.next == HEADER_NEXT && dump->piece.len == dump->header_len &&
        memcmp(again, dump->header, dump->header_len) == 0)
        return dump->from == NULL ? dump_file_end(dump->file) : HIBLOOM_OK;
    if (dump->from == NULL)
        return torn(dump, "its two headers differ: the filter was being written to while it was dumped");
    return error_set(dump->error, HIBLOOM_EBUSY,
                     "%s: is being written to: nothing is taken over; stop those who add to it, and try again",
                     dump->whose);
}

/* ---- The bits ---------------------------------------------------------------------- */

/* Pieces follow each other without a gap, none is empty, and none goes on in the next link: so this comes to an end. */
static hibloom_status check_piece(struct dump *dump, uint64_t left)
{
    const struct dumped *piece = &dump->piece;

    if (piece->next == 0)
        return torn(dump, "its dump ends before all of its bits have come");
    if (piece->next <= piece->at || piece->next - piece->at != piece->len)
        return torn(dump, "a piece of its dump has not the length that its iterator says");
    if (piece->len > piece->room || piece->len > left)
        return torn(dump, "a piece of its dump goes on behind the last bit that its header says");
    return HIBLOOM_OK;
}

/* What the module counts is an item of which a bit was new, and it has no more bits than hashes. */
static hibloom_status check_set(struct dump *dump)
{
    for (uint32_t i = 0; i < dump->filter.links; i++) {
        const struct redisbloom_link *link = &dump->filter.link[i];
        const uint64_t set = dump->bits_set[i];
        if (set < link->items || (set > 0 && (set - 1) / link->hashes >= link->items))
            return torn(dump, "so many bits as are set in its dump do not come from as many items as its header says");
    }
    return HIBLOOM_OK;
}

/* A further link is made when its first piece is wanted: a dump that ends before it leaves none. */
static hibloom_status take_link(struct dump *dump, hibloom *into, uint32_t number, unsigned char *bytes, size_t room)
{
    const struct store_class *class = into->store->class;
    const uint64_t all = dump->filter.link[number].bytes;
    hibloom_status status = number > 0 ? class->reach(into, number + 1) : HIBLOOM_OK;

    for (uint64_t done = 0; status == HIBLOOM_OK && done < all; done += dump->piece.len) {
        status = read_piece(dump, dump->piece.next, bytes, room);
        if (status == HIBLOOM_OK)
            status = check_piece(dump, all - done);
        if (status != HIBLOOM_OK)
            break;
        dump->bits_set[number] += bits_in_use(bytes, dump->piece.len, 1);
        status = class->merge(into, &(struct piece){.link = number, .from = done, .len = dump->piece.len}, bytes);
    }
    return status;
}

static hibloom_status take_links(struct dump *dump, hibloom *into, unsigned char *bytes, size_t room)
{
    hibloom_status status = HIBLOOM_OK;

    for (uint32_t i = 0; i < dump->filter.links && status == HIBLOOM_OK; i++)
        status = take_link(dump, into, i, bytes, room);
    if (status == HIBLOOM_OK)
        status = check_header_again(dump);
    return status == HIBLOOM_OK ? check_set(dump) : status;
}

/* Of the longest piece that there can be. */
static size_t piece_room(const struct redisbloom *filter)
{
    uint64_t room = 0;

    for (uint32_t i = 0; i < filter->links; i++)
        if (filter->link[i].bytes > room)
            room = filter->link[i].bytes;
    return (size_t)(room < STORE_PIECE ? room : STORE_PIECE);
}

static hibloom_status fill(struct dump *dump, hibloom *into)
{
    const size_t room = piece_room(&dump->filter);
    unsigned char *bytes = alloc.calloc(1, room);
    hibloom_status status = bytes != NULL ? hibloom_expire(into, ASIDE_SECONDS)
                                          : error_set(dump->error, HIBLOOM_ENOMEM, "out of memory");

    if (status == HIBLOOM_OK)
        status = take_links(dump, into, bytes, room);
    alloc.free(bytes);
    return status;
}

/* ---- The name ---------------------------------------------------------------------- */

static hibloom_status check_free(hibloom_store *store, const char *name)
{
    hibloom *there = NULL;
    const hibloom_status status = hibloom_open(&there, store, name, NULL);

    hibloom_close(there);
    if (status == HIBLOOM_OK)
        return error_set(&store->error, HIBLOOM_EMISMATCH,
                         "'%s' is there already: drop it, or import under another name", name);
    return status == HIBLOOM_ENOTFOUND ? HIBLOOM_OK : status;
}

/* Said before anything is moved: all links get their names in one step, which in a cluster knows one slot. */
static hibloom_status check_slot(hibloom_store *store, const char *name, const struct dump *dump)
{
    const struct store_class *class = store->class;

    if (dump->filter.links == 1 || class->servers == NULL || class->servers(store) <= 1 || strchr(name, '{') != NULL)
        return HIBLOOM_OK;
    return error_set(&store->error, HIBLOOM_ENOTSUP,
                     "%s: has grown to %" PRIu32 " filters, which on a cluster get their names in one step only if the "
                     "name, '%s', has a {tag}",
                     dump->whose, dump->filter.links, name);
}

/* In the slot of the name, and no other import's. */
static hibloom_status name_aside(char out[HIBLOOM_NAME_MAX + 1], const char *name, struct error *error)
{
    uint64_t number;

    if (strlen(name) > HIBLOOM_NAME_MAX - ASIDE_BYTES)
        return error_set(error, HIBLOOM_ERANGE, "the name of a filter that is imported has %u bytes at most",
                         HIBLOOM_NAME_MAX - ASIDE_BYTES);
    if (getentropy(&number, sizeof number) != 0)
        return error_set(error, HIBLOOM_EIO, "the system has no random numbers");
    snprintf(out, HIBLOOM_NAME_MAX + 1, strchr(name, '{') != NULL ? "%s.import-%016" PRIx64 : "{%s}.import-%016" PRIx64,
             name, number);
    return HIBLOOM_OK;
}

/* Nothing is replaced. EBUSY: there was something, or it has just been cleared out of the way. */
static hibloom_status give_name(hibloom *filter, const char *name)
{
    hibloom_store *store = filter->store;

    for (int i = 0; i < STORE_REPLACE_ATTEMPTS; i++) {
        hibloom_status status = store->class->replace(filter, name, NULL);
        if (status != HIBLOOM_EBUSY)
            return status;
        status = check_free(store, name);
        if (status != HIBLOOM_OK)
            return status;
    }
    return error_set(&store->error, HIBLOOM_EBUSY, "others make or remove '%s' just now", name);
}

/* Words of what failed, and not of the clearing up. What could not be opened may have been made
 * half, and would stay: nobody goes on with it. */
static void drop(hibloom_store *store, hibloom *filter, const char *aside)
{
    const struct error error = store->error;

    if (filter != NULL)
        (void)(hibloom_drop(filter) == HIBLOOM_OK); /* if it cannot be, it expires */
    else
        (void)(hibloom_delete(store, aside) == HIBLOOM_OK);
    hibloom_close(filter);
    store->error = error;
}

static hibloom_status take_over(hibloom **out, hibloom_store *store, const char *name, struct dump *dump)
{
    char aside[HIBLOOM_NAME_MAX + 1];
    hibloom *filter = NULL;
    hibloom_status status = check_free(store, name);

    if (status == HIBLOOM_OK)
        status = name_aside(aside, name, &store->error);
    if (status == HIBLOOM_OK)
        status = read_header(dump);
    if (status == HIBLOOM_OK)
        status = check_slot(store, name, dump);
    if (status != HIBLOOM_OK)
        return status;
    status = hibloom_open(&filter, store, aside, &dump->filter.spec);
    if (status == HIBLOOM_OK)
        status = fill(dump, filter);
    if (status == HIBLOOM_OK)
        status = give_name(filter, name);
    if (status == HIBLOOM_OK)
        *out = filter;
    else
        drop(store, filter, aside);
    return status;
}

hibloom_status hibloom_import(hibloom **out, hibloom_store *store, const char *name, hibloom_store *from,
                              const char *key)
{
    struct dump dump = {.from = from, .key = key, .error = &store->error};

    if (store->class == NULL || from->class == NULL)
        return HIBLOOM_EINVAL; /* its error already says why there is no store */
    if (from->class->scandump == NULL)
        return error_set(&store->error, HIBLOOM_ENOTSUP, "a store in memory has no filters of RedisBloom");
    snprintf(dump.whose, sizeof dump.whose, "'%.256s'", key);
    return take_over(out, store, name, &dump);
}

hibloom_status hibloom_import_file(hibloom **out, hibloom_store *store, const char *name, const char *path)
{
    struct dump dump = {.error = &store->error};

    if (store->class == NULL)
        return HIBLOOM_EINVAL;
    snprintf(dump.whose, sizeof dump.whose, "%.256s", path);
    hibloom_status status = dump_file_open(&dump.file, path, &store->error);
    if (status == HIBLOOM_OK)
        status = take_over(out, store, name, &dump);
    dump_file_close(dump.file);
    return status;
}
