/* import.c: RedisBloom's filter becomes one of ours.
 *
 *     header -> spec -> a filter under another name, which expires in an hour
 *     piece after piece of its bits -> merged into that; of a further link, into a link of its own
 *     the header once more: is it the same? -> the filter gets its name
 *
 * So nobody ever opens a filter that lacks a part of its items. The remains of an import that was killed are gone in an
 * hour. The module counts each new item in the header: while that is the same, no bit has changed. */
#include "base/alloc.h"
#include "base/number.h"
#include "bits/bits.h"
#include "filter/handle.h"
#include "filter/whole.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ASIDE_MS 3600000u
#define ASIDE_BYTES 32 /* that the other name is longer, at most */
#define HEADER_NEXT 1  /* the iterator that comes with a header */

/* ---- A dump in a file ---------------------------------------------------------------
 *
 * It is the output of redis-cli for BF.SCANDUMP, one answer behind the other. An answer is the iterator as a line, the
 * bytes as they are, a line feed. The number of bytes follows from their content, so any bytes will do. It is read once,
 * so a pipe will do. */

static void fail_system(struct whole *w)
{
    whole_fail(w, HIBLOOM_EIO, "%.768s: %s", w->args->text[1], strerror(errno));
}

static void corrupt(struct whole *w, const char *words)
{
    if (ferror(w->dump.file))
        fail_system(w);
    else
        whole_fail(w, HIBLOOM_ECORRUPT, "%.768s: %s", w->args->text[1], words);
}

/* Fewer bytes at the end of the file. A signal may end a read of a pipe, but no call. */
static size_t read_bytes(struct whole *w, void *out, size_t len)
{
    FILE *file = w->dump.file;
    size_t got = fread(out, 1, len, file);

    while (got < len && ferror(file) && errno == EINTR) {
        clearerr(file);
        got += fread((char *)out + got, 1, len - got, file);
    }
    return got;
}

/* A line that is a whole number; 0 at the end of the file. */
static uint64_t read_iterator(struct whole *w)
{
    char line[NUMBER_DIGITS + 1] = "";
    uint64_t iterator = 0;
    size_t len = 0;

    while (len < sizeof line && read_bytes(w, line + len, 1) == 1 && line[len] != '\n')
        len++;
    if (len == 0 && line[0] == '\0' && feof(w->dump.file))
        return 0;
    if (len == sizeof line || line[len] != '\n' || number_parse(line, len, INT64_MAX, &iterator) != HIBLOOM_OK)
        corrupt(w, "an iterator of BF.SCANDUMP should be here, and is not: this is no dump as redis-cli prints it, or "
                   "it was cut short");
    return iterator;
}

/* A header's length is in its own first bytes, of which it reads *had; that of data follows from the iterators. */
static uint64_t find_length(struct whole *w, size_t *had)
{
    const struct dumped *piece = &w->dump.piece;

    if (piece->at != 0)
        return piece->next > piece->at ? piece->next - piece->at : 0;
    *had = read_bytes(w, piece->bytes, REDISBLOOM_HEAD_BYTES);
    if (*had == REDISBLOOM_HEAD_BYTES)
        return redisbloom_header_length(piece->bytes);
    corrupt(w, "was cut short in its header");
    return 0;
}

/* The next piece, as from a server; at the end of the file `next` is 0. */
static void read_from_file(struct whole *w)
{
    struct dumped *piece = &w->dump.piece;
    size_t had = 0;
    char end;

    piece->next = read_iterator(w);
    if (piece->next == 0)
        return;
    const uint64_t len = find_length(w, &had);
    if (task_has_failed(&w->task))
        return;
    if (len > piece->room)
        corrupt(w, piece->at == 0 ? "is no dump of RedisBloom, or was altered; or it has grown to more filters, "
                                    "one behind the other, than can be taken over"
                                  : "was altered: it has a longer piece than its header allows");
    else if (read_bytes(w, piece->bytes + had, (size_t)len - had) != len - had || read_bytes(w, &end, 1) != 1 ||
             end != '\n')
        corrupt(w, "was cut short or altered: a piece has not the length that its iterator says");
    else
        piece->len = (size_t)len;
}

static void check_end_of_file(struct whole *w)
{
    char more;

    if (read_bytes(w, &more, 1) != 0 || ferror(w->dump.file))
        corrupt(w, "goes on behind the header with which a dump ends");
}

/* ---- The dump ---------------------------------------------------------------------- */

static void torn(struct whole *w, const char *words)
{
    whole_fail(w, HIBLOOM_ECORRUPT, "%s: %s: nothing is taken over", w->dump.whose, words);
}

static void read_dump(struct whole *w, uint64_t at, unsigned char *bytes, size_t room, whole_step *step)
{
    w->dump.piece = (struct dumped){.at = at, .bytes = bytes, .room = room};
    w->step = step;
    if (w->args->from == NULL) {
        read_from_file(w);
    } else {
        scandump_begin(&w->scandump, w->args->text[1], &w->dump.piece);
        whole_await(w, w->args->from, step);
    }
}

/* Pieces follow each other without a gap. None is empty, and none goes on in the next link: so this comes to an end. */
static void check_piece(struct whole *w, uint64_t left)
{
    const struct dumped *piece = &w->dump.piece;

    if (piece->next == 0)
        torn(w, "its dump ends before all of its bits have come");
    else if (piece->next <= piece->at || piece->next - piece->at != piece->len)
        torn(w, "a piece of its dump has not the length that its iterator says");
    else if (piece->len > piece->room || piece->len > left)
        torn(w, "a piece of its dump goes on behind the last bit that its header says");
}

/* The module counts an item if one of its bits was new. An item sets 1 bit at least and `hashes` bits at most. */
static void check_set(struct whole *w)
{
    for (uint32_t i = 0; i < w->dump.filter.links; i++) {
        const struct redisbloom_link *link = &w->dump.filter.link[i];
        const uint64_t set = w->dump.bits_set[i];
        if (set < link->items || (set > 0 && (set - 1) / link->hashes >= link->items))
            torn(w, "so many bits as are set in its dump do not come from as many items as its header says");
    }
}

/* The bytes of the longest piece that there can be. */
static size_t piece_room(const struct redisbloom *filter)
{
    uint64_t room = 0;

    for (uint32_t i = 0; i < filter->links; i++)
        if (filter->link[i].bytes > room)
            room = filter->link[i].bytes;
    return (size_t)(room < STORE_PIECE ? room : STORE_PIECE);
}

/* ---- The name ---------------------------------------------------------------------- */

/* In the slot of the name, and no other import's. */
static bool name_aside(struct whole *w, char out[HIBLOOM_NAME_MAX + 1])
{
    uint64_t number;

    if (getentropy(&number, sizeof number) != 0) {
        whole_fail(w, HIBLOOM_EIO, "the system has no random numbers");
        return false;
    }
    snprintf(out, HIBLOOM_NAME_MAX + 1,
             keys_has_tag(w->naming.name) ? "%s.import-%016" PRIx64 : "{%s}.import-%016" PRIx64, w->naming.name,
             number);
    return true;
}

/* Said before anything is moved: all links get their names in one step, which in a cluster knows one slot. */
static void check_slot(struct whole *w)
{
    if (w->dump.filter.links > 1 && !store_is_in_memory(w->asked) &&
        ((struct redis_store *)w->asked)->server.clustered && !keys_has_tag(w->naming.name))
        whole_fail(w, HIBLOOM_ENOTSUP,
                   "%s: has grown to %" PRIu32 " filters, which on a cluster get their names in one step only if the "
                   "name, '%s', has a {tag}",
                   w->dump.whose, w->dump.filter.links, w->naming.name);
}

/* ---- The end ----------------------------------------------------------------------- */

/* If it cannot be dropped, it expires. A filter that could not be opened may be half made, and would stay: nobody
 * goes on with it. */
static void drop(struct whole *w)
{
    whole_keep_failure(w);
    w->task.cleans = true;
    hibloom *const filter = w->dump.opened ? w->filter : whole_new_place(w, w->filter->name);
    if (filter == NULL)
        w->step = whole_fail_after_all;
    else
        whole_do(w, w->dump.opened ? LINKS_DROP : LINKS_DELETE, filter, NULL, 0, whole_fail_after_all);
    w->judges = true;
}

/* The count of items changes with each that is new. */
static void check_header_again(struct whole *w)
{
    const struct dumped *piece = &w->dump.piece;
    const bool from_file = w->args->from == NULL;

    if (from_file && piece->next == 0)
        torn(w, "does not end in the header once more, which shows that nobody wrote meanwhile");
    else if (piece->next == HEADER_NEXT && piece->len == w->dump.header_len &&
             memcmp(piece->bytes, w->dump.header, piece->len) == 0)
        w->step = whole_replace;
    else if (from_file)
        torn(w, "its two headers differ: the filter was being written to while it was dumped");
    else
        whole_fail(w, HIBLOOM_EBUSY,
                   "%s: is being written to: nothing is taken over; stop those who add to it, and try again",
                   w->dump.whose);
    if (!task_has_failed(&w->task) && from_file)
        check_end_of_file(w);
    if (!task_has_failed(&w->task))
        check_set(w);
}

/* ---- The bits ---------------------------------------------------------------------- */

static void want_piece(struct whole *);

static void piece_merged(struct whole *w)
{
    w->pieces.piece.from += w->pieces.piece.len;
    want_piece(w);
}

static void take_piece(struct whole *w)
{
    struct piece *piece = &w->pieces.piece;

    check_piece(w, w->dump.filter.link[piece->link].bytes - piece->from);
    if (task_has_failed(&w->task))
        return;
    piece->len = w->dump.piece.len;
    w->dump.bits_set[piece->link] += bits_in_use(w->bits, (size_t)piece->len, 1);
    whole_merge(w, w->filter, piece_merged);
}

static void read_piece(struct whole *w)
{
    read_dump(w, w->dump.piece.next, w->bits, piece_room(&w->dump.filter), take_piece);
}

/* A further link is made when its first piece is wanted: a dump that ends before it leaves none. */
static void want_piece(struct whole *w)
{
    struct piece *piece = &w->pieces.piece;

    if (piece->from == w->dump.filter.link[piece->link].bytes)
        *piece = (struct piece){.link = piece->link + 1};
    if (piece->link == w->dump.filter.links)
        read_dump(w, 0, w->bits, REDISBLOOM_HEADER_ROOM, check_header_again);
    else if (piece->link > 0 && piece->from == 0)
        whole_reach(w, w->filter, piece->link + 1, read_piece);
    else
        read_piece(w);
}

/* ---- The filter -------------------------------------------------------------------- */

static void aside_opened(struct whole *w)
{
    const size_t room = piece_room(&w->dump.filter);

    w->dump.opened = true;
    whole_note_filters(w, w->filter, NULL);
    w->bits = alloc.calloc(1, room > REDISBLOOM_HEADER_ROOM ? room : REDISBLOOM_HEADER_ROOM);
    if (w->bits == NULL)
        task_no_memory(&w->task);
    else
        want_piece(w);
}

static void take_header(struct whole *w)
{
    const struct dumped *piece = &w->dump.piece;
    char aside[HIBLOOM_NAME_MAX + 1];
    hibloom_status status;
    struct error error = {.words = ""};

    w->dump.header_len = piece->next == HEADER_NEXT ? piece->len : 0;
    status = redisbloom_parse(&w->dump.filter, w->dump.header, w->dump.header_len, &error);
    if (status == HIBLOOM_OK)
        check_slot(w);
    else
        whole_fail(w, status, "%s: %s", w->dump.whose, error.words);
    if (task_has_failed(&w->task) || !name_aside(w, aside))
        return;
    request_exactly(&w->dump.wanted, &w->dump.filter.spec);
    w->dump.wanted.ttl_ms = ASIDE_MS;
    w->filter = filter_new(w->asked, aside, &status);
    whole_take(w, status, w->asked);
    if (status != HIBLOOM_OK)
        return;
    w->cleanup = drop;
    whole_do(w, LINKS_OPEN, w->filter, &w->dump.wanted, 0, aside_opened);
}

static void read_header(struct whole *w)
{
    if (strlen(w->naming.name) > HIBLOOM_NAME_MAX - ASIDE_BYTES)
        whole_fail(w, HIBLOOM_ERANGE, "the name of a filter that is imported has %u bytes at most",
                   HIBLOOM_NAME_MAX - ASIDE_BYTES);
    else
        read_dump(w, 0, w->dump.header, sizeof w->dump.header, take_header);
}

static void end(struct whole *w, bool wanted)
{
    if (wanted)
        *w->args->out = filter_opened(w->filter);
    else if (w->dump.opened)
        filter_close(w->filter);
    else
        filter_free(w->filter);
    if (w->dump.file != NULL)
        fclose(w->dump.file);
    explicit_bzero(&w->dump.filter.spec, sizeof w->dump.filter.spec); /* the seeds */
    explicit_bzero(&w->dump.wanted, sizeof w->dump.wanted);
    whole_end_naming(w);
}

static void begin(struct whole *w, const struct whole_args *args)
{
    const char *from = args->text[1];

    snprintf(w->dump.whose, sizeof w->dump.whose, args->from != NULL ? "'%.256s'" : "%.256s", from);
    while (args->from == NULL && (w->dump.file = fopen(from, "rbe")) == NULL && errno == EINTR)
        ;
    if (args->from == NULL && w->dump.file == NULL)
        fail_system(w);
    if (args->from != NULL && store_is_in_memory(args->from))
        whole_fail(w, HIBLOOM_ENOTSUP, "a store in memory has no filters of RedisBloom");
    w->end = end;
    whole_begin_naming(w, args->text[0]);
    w->naming.must_be_free = true;
    w->naming.named = read_header;
    w->step = whole_open_name;
}

static hibloom_status import(hibloom **out, hibloom_store *store, const char *name, hibloom_store *from,
                             const char *key_or_path, const struct how *how)
{
    return whole_call(begin,
                      &(struct whole_args){.store = store, .from = from, .text = {name, key_or_path}, .out = out}, how);
}

hibloom_status hibloom_import(hibloom **out, hibloom_store *store, const char *name, hibloom_store *from,
                              const char *key)
{
    return import(out, store, name, from, key, WAITS(import));
}

hibloom_status hibloom_async_import(hibloom **out, hibloom_store *store, const char *name, hibloom_store *from,
                                    const char *key, hibloom_done_fn *done, void *data)
{
    return import(out, store, name, from, key, LATER(import));
}

hibloom_status hibloom_import_file(hibloom **out, hibloom_store *store, const char *name, const char *path)
{
    return import(out, store, name, NULL, path, WAITS(import_file));
}

hibloom_status hibloom_async_import_file(hibloom **out, hibloom_store *store, const char *name, const char *path,
                                         hibloom_done_fn *done, void *data)
{
    return import(out, store, name, NULL, path, LATER(import_file));
}
