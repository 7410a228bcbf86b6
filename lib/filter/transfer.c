/* transfer.c: whole filters, from one place to another: joined, saved, loaded and compared,
 * piece by piece. The format of a file is in file.c. */
#include "base/alloc.h"
#include "bits/bits.h"
#include "filter/whole.h"
#include "filter/handle.h"

#include <math.h>
#include <string.h>

/* ---- Pieces ---------------------------------------------------------------- */

/* The next piece; the first one after a piece of all zeros. They go link after link, key after
 * key, and none lies in two keys. False behind the last. */
static bool next_piece(struct whole *w)
{
    struct pieces *pieces = &w->pieces;
    struct piece *piece = &pieces->piece;

    piece->from += piece->len;
    if (piece->from == spec_bitmap_bytes(&pieces->size)) {
        piece->key++;
        piece->from = 0;
    }
    if (piece->key == spec_keys(&pieces->size)) {
        piece->link++;
        piece->key = 0;
        if (piece->link < pieces->links)
            (void)spec_link_size(&pieces->size, pieces->of, piece->link); /* it has been made, or room for it */
    }
    const uint64_t left = spec_bitmap_bytes(&pieces->size) - piece->from;
    piece->len = left < STORE_PIECE ? left : STORE_PIECE;
    return piece->link < pieces->links;
}

static void go_on(struct whole *w)
{
    const bool more = next_piece(w);

    if (more && w->pieces.from != NULL)
        whole_read(w, w->pieces.from, w->bits, w->pieces.each);
    else
        w->step = more ? w->pieces.each : w->pieces.behind;
}

/* The maker of further links chooses their sizes and layout, also for the same text. Its rule may differ from ours
 * (docs/format.md, 15). Then their bits do not fit into a link of ours, nor ours into theirs. */
static void check_sizes(struct whole *w, hibloom *filter)
{
    struct spec size;

    if (filter == NULL || store_is_in_memory(filter->store))
        return;
    for (uint32_t i = 1; i < whole_links(filter); i++) {
        const struct link *link = whole_link(filter, i);
        if (spec_link_size(&size, &filter->spec, i) != HIBLOOM_OK || size.bits != link->spec->bits ||
            size.hashes != link->spec->hashes || spec_segments(&size) != spec_segments(link->spec) ||
            size.layout != link->spec->layout)
            whole_fail(w, HIBLOOM_ENOTSUP,
                       "'%s' has a size that its maker's rule gave it, another client's: filters with such links "
                       "are not merged, saved or loaded",
                       link_name(link, LINK_NAME));
    }
}

/* `each` sets go_on as the step that follows. */
static void begin_pieces(struct whole *w, const struct spec *spec, uint32_t links, hibloom *from, whole_step *each,
                         whole_step *behind)
{
    w->pieces = (struct pieces){.of = spec, .links = links, .from = from, .each = each, .behind = behind};
    (void)spec_link_size(&w->pieces.size, spec, 0); /* which cannot fail */
    w->step = go_on;
    check_sizes(w, w->filter);
    check_sizes(w, w->other);
}

/* Room for any piece of it. A link may have smaller keys than one before: it has more of them, or another number of
 * hashes. */
static bool make_room(struct whole *w, unsigned char **out, const struct spec *spec, uint32_t links)
{
    struct spec link;
    uint64_t most = 0;

    for (uint32_t i = 0; i < links; i++) {
        const hibloom_status status = spec_link_size(&link, spec, i);
        if (status != HIBLOOM_OK) {
            whole_fail(w, status, "a link would be too large");
            return false;
        }
        most = spec_bitmap_bytes(&link) > most ? spec_bitmap_bytes(&link) : most;
    }
    *out = alloc.malloc((size_t)(most < STORE_PIECE ? most : STORE_PIECE));
    if (*out == NULL)
        task_no_memory(&w->task);
    return *out != NULL;
}

/* Clears what is behind the last bit of a key, which fills its last byte up. Was a bit set there? */
static bool clear_padding(const struct whole *w, unsigned char *bits)
{
    const struct pieces *pieces = &w->pieces;
    const struct piece *piece = &pieces->piece;
    const unsigned used = (unsigned)(spec_bitmap_bits(&pieces->size) * spec_width(&pieces->size) % 8);
    unsigned char *last = &bits[piece->len - 1];

    if (used == 0 || piece->from + piece->len < spec_bitmap_bytes(&pieces->size) || (*last & 0xffu >> used) == 0)
        return false;
    *last = (unsigned char)(*last & ~(0xffu >> used));
    return true;
}

/* ---- Two filters ----------------------------------------------------------- */

/* False: it has failed already. */
static bool begin(struct whole *w, const struct whole_args *args)
{
    const hibloom *filter = args->filter; /* another one has the same spec, or does not do */

    whole_note_filters(w, args->filter, args->other);
    if (filter->spec.window != 0)
        whole_fail(w, HIBLOOM_ENOTSUP,
                   "'%s' is a sliding window: a file, or another window, does not share its clock, so items would be "
                   "found for a longer or a shorter time than its seconds: it is not merged, copied, compared or saved",
                   filter->name);
    return !task_has_failed(&w->task);
}

static bool have_same_spec(struct whole *w)
{
    char text[SPEC_TEXT_SIZE] AT_END(spec_text_wipe) = "", apart[REQUEST_APART];
    const hibloom_status status = spec_format(&w->other->spec, text, sizeof text);

    if (status != HIBLOOM_OK || !spec_says(&w->filter->spec, text))
        whole_fail(w, HIBLOOM_EMISMATCH,
                   "'%s' and '%s' have different specs or seeds: %s; make one like the other with hibloom_open_like",
                   w->filter->name, w->other->name, request_tell_apart(apart, &w->filter->spec, &w->other->spec));
    return !task_has_failed(&w->task);
}

/* Behind a bare bitmap's last bit there may be others, to be left out. */
static bool can_merge_within(hibloom *into, hibloom *from)
{
    if (into->store != from->store || store_is_in_memory(into->store) || into->bare || from->bare ||
        into->spec.counters != 0)
        return false;
    for (uint32_t i = 0; i < whole_links(into) && i < whole_links(from); i++)
        if (!link_is_together(whole_link(into, i), whole_link(from, i)))
            return false;
    return true;
}

static void merge_apart(struct whole *);

/* A server takes all keys of a script for written ones. So a user who may only read the other filter's reads them here. */
static void judge_within(struct whole *w)
{
    if (w->task.status == HIBLOOM_EDENIED) {
        whole_forgive(w);
        merge_apart(w);
    } else if (!task_has_failed(&w->task)) {
        go_on(w);
    }
}

static void merge_within(struct whole *w)
{
    const struct piece *piece = &w->pieces.piece;
    struct link *into = whole_link(w->filter, piece->link), *from = whole_link(w->other, piece->link);

    into->room = 0; /* it has less than was counted */
    transfer_begin_merge_within(&w->transfer, into, from, piece);
    whole_await(w, w->store, judge_within);
    w->judges = true;
}

/* A bare bitmap may go on behind the filter's last bit. */
static void merge_piece(struct whole *w)
{
    clear_padding(w, w->bits);
    whole_merge(w, w->filter, go_on);
}

static void merge_apart(struct whole *w)
{
    const struct spec *spec = &w->filter->spec;
    const uint32_t links = w->pieces.links;

    if (make_room(w, &w->bits, spec, links))
        begin_pieces(w, spec, links, w->other, merge_piece, NULL);
}

static void merge_links(struct whole *w)
{
    if (can_merge_within(w->filter, w->other))
        begin_pieces(w, &w->filter->spec, w->pieces.links, NULL, merge_within, NULL);
    else
        merge_apart(w);
}

static void reach_as_many(struct whole *w)
{
    w->pieces.links = whole_links(w->other);
    whole_reach(w, w->filter, w->pieces.links, merge_links);
}

static void begin_merge(struct whole *w, const struct whole_args *args)
{
    if (begin(w, args) && have_same_spec(w))
        whole_reach(w, args->other, 1, reach_as_many);
}

hibloom_status hibloom_merge(hibloom *into, hibloom *from)
{
    return whole_call(begin_merge, &(struct whole_args){.filter = into, .other = from}, WAITS(merge));
}

hibloom_status hibloom_async_merge(hibloom *into, hibloom *from, hibloom_done_fn *done, void *data)
{
    return whole_call(begin_merge, &(struct whole_args){.filter = into, .other = from}, LATER(merge));
}

/* ---- Comparing ------------------------------------------------------------- */

static void count_piece(struct whole *w)
{
    struct whole_compared *counts = &w->compared;
    const size_t len = (size_t)w->pieces.piece.len;
    const uint32_t width = spec_width(w->pieces.of);

    clear_padding(w, w->bits);
    clear_padding(w, w->more_bits);
    counts->a += bits_in_use(w->bits, len, width);
    counts->b += bits_in_use(w->more_bits, len, width);
    for (size_t i = 0; i < len; i++)
        w->bits[i] |= w->more_bits[i];
    counts->either += bits_in_use(w->bits, len, width);
    w->step = go_on;
}

static void compare_piece(struct whole *w)
{
    whole_read(w, w->other, w->more_bits, count_piece);
}

static double items_of(const struct spec *spec, uint64_t bits_set)
{
    return spec_items_at(spec, (double)bits_set / (double)spec_all_bits(spec));
}

/* An infinite union says nothing of the rest: not a number. */
static void end_comparing(struct whole *w, bool wanted)
{
    if (!wanted)
        return;
    const struct spec *spec = &w->filter->spec;
    const double either = items_of(spec, w->compared.either);
    const double both = fmax(items_of(spec, w->compared.a) + items_of(spec, w->compared.b) - either, 0.0);
    hibloom_comparison result = {either, both, either > 0.0 ? fmin(both / either, 1.0) : 1.0};

    if (isinf(either))
        result.intersection_items = result.similarity = (double)NAN;
    filter_fill(w->args->comparison, w->args->size, &result, sizeof result);
}

static void begin_comparing(struct whole *w, const struct whole_args *args)
{
    hibloom *a = args->filter;
    const struct spec *spec = &a->spec;

    w->end = end_comparing;
    if (!begin(w, args))
        return;
    if (spec->growth != 0)
        whole_fail(w, HIBLOOM_ENOTSUP,
                   "'%s' grows: an item may lie in its first link, and in the third of the other filter, so "
                   "what they have in common cannot be counted",
                   a->name);
    else if (have_same_spec(w) && make_room(w, &w->bits, spec, 1) && make_room(w, &w->more_bits, spec, 1))
        begin_pieces(w, spec, 1, a, compare_piece, NULL);
}

static hibloom_status compare(hibloom *a, hibloom *b, hibloom_comparison *out, size_t size, const struct how *how)
{
    return whole_call(begin_comparing, &(struct whole_args){.filter = a, .other = b, .comparison = out, .size = size},
                      how);
}

hibloom_status hibloom_compare(hibloom *a, hibloom *b, hibloom_comparison *out, size_t size)
{
    return compare(a, b, out, size, WAITS(compare));
}

hibloom_status hibloom_async_compare(hibloom *a, hibloom *b, hibloom_comparison *out, size_t size,
                                     hibloom_done_fn *done, void *data)
{
    return compare(a, b, out, size, LATER(compare));
}

/* ---- Files ----------------------------------------------------------------- */

static void commit(struct whole *w)
{
    whole_take(w, filter_file_commit(&w->file), w->asked);
}

static void save_piece(struct whole *w)
{
    clear_padding(w, w->bits);
    whole_take(w, filter_file_write(&w->file, w->bits, (size_t)w->pieces.piece.len), w->asked);
    w->step = go_on;
}

static void save_links(struct whole *w)
{
    hibloom *filter = w->filter;
    const uint32_t links = whole_links(filter);

    if (!make_room(w, &w->bits, &filter->spec, links))
        return;
    whole_take(w, filter_file_create(&w->file, w->args->text[0], w->args->fd, &filter->spec, links, &w->asked->error),
               w->asked);
    begin_pieces(w, &filter->spec, links, filter, save_piece, commit);
}

static void end_file(struct whole *w, bool wanted)
{
    filter_file_close(&w->file);
}

static void begin_saving(struct whole *w, const struct whole_args *args)
{
    w->end = end_file;
    if (begin(w, args))
        whole_reach(w, args->filter, 1, save_links);
}

hibloom_status hibloom_save(hibloom *filter, const char *path)
{
    return whole_call(begin_saving, &(struct whole_args){.filter = filter, .text = {path}}, WAITS(save));
}

hibloom_status hibloom_async_save(hibloom *filter, const char *path, hibloom_done_fn *done, void *data)
{
    return whole_call(begin_saving, &(struct whole_args){.filter = filter, .text = {path}}, LATER(save));
}

/* A loop has no such call: it names the one to a path. */
hibloom_status hibloom_save_fd(hibloom *filter, int fd)
{
    return whole_call(begin_saving, &(struct whole_args){.filter = filter, .fd = fd}, WAITS(save));
}

static void read_piece(struct whole *w)
{
    whole_take(w, filter_file_read(&w->file, w->bits, (size_t)w->pieces.piece.len), w->asked);
    if (!task_has_failed(&w->task) && clear_padding(w, w->bits))
        whole_take(w, filter_file_corrupt(&w->file, "was altered: bits are set behind its last one"), w->asked);
    w->step = go_on;
}

static void load_piece(struct whole *w)
{
    read_piece(w);
    if (!task_has_failed(&w->task))
        whole_merge(w, w->filter, go_on);
}

/* The file has been read up to its checksum. */
static void check_sum(struct whole *w)
{
    whole_take(w, filter_file_check(&w->file), w->asked);
}

static void load_links(struct whole *w)
{
    whole_take(w, filter_file_rewind(&w->file), w->asked);
    begin_pieces(w, &w->file.spec, w->file.links, NULL, load_piece, check_sum);
}

static void file_checked(struct whole *w)
{
    char apart[REQUEST_APART];

    check_sum(w);
    if (!spec_says(&w->filter->spec, w->file.text))
        whole_fail(w, HIBLOOM_EMISMATCH,
                   "'%s' and the filter in %.256s have different specs or seeds: %s; "
                   "open one with the text of hibloom_file_spec",
                   w->filter->name, w->args->text[0], request_tell_apart(apart, &w->filter->spec, &w->file.spec));
    if (!task_has_failed(&w->task))
        whole_reach(w, w->filter, w->file.links, load_links);
}

/* First it is only seen that the file is whole. */
static void begin_loading(struct whole *w, const struct whole_args *args)
{
    if (!begin(w, args))
        return;
    w->end = end_file;
    whole_take(w, filter_file_open(&w->file, args->text[0], &w->asked->error), w->asked);
    if (!task_has_failed(&w->task) && make_room(w, &w->bits, &w->file.spec, w->file.links))
        begin_pieces(w, &w->file.spec, w->file.links, NULL, read_piece, file_checked);
}

hibloom_status hibloom_restore(hibloom *into, const char *path)
{
    return whole_call(begin_loading, &(struct whole_args){.filter = into, .text = {path}}, WAITS(restore));
}

hibloom_status hibloom_async_restore(hibloom *into, const char *path, hibloom_done_fn *done, void *data)
{
    return whole_call(begin_loading, &(struct whole_args){.filter = into, .text = {path}}, LATER(restore));
}
