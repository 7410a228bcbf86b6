/* transfer.c: whole filters, from one place to another: joined, saved, loaded
 * and compared, piece by piece. What a piece is to a file, file.c knows. */
#include "base/alloc.h"
#include "bits/bits.h"
#include "filter/file.h"
#include "filter/whole.h"
#include "hash/load.h"
#include "spec/spec.h"

#include <math.h>
#include <string.h>

#define TOO_LARGE "a link would be too large"

/* ---- Pieces ---------------------------------------------------------------- */

/* The piece that follows, the first after one of all zeros: link after link, key
 * after key, and none in two keys. False behind the last, or where a link would be too large. */
static bool next_piece(struct whole *w)
{
    struct walk *walk = &w->walk;
    struct piece *piece = &walk->piece;
    hibloom_status status = HIBLOOM_OK;

    piece->from += piece->len;
    if (piece->from == spec_bitmap_bytes(&walk->size)) {
        piece->key++;
        piece->from = 0;
    }
    if (piece->key == spec_keys(&walk->size)) {
        piece->link++;
        piece->key = 0;
        if (piece->link < walk->links)
            status = spec_link_size(&walk->size, walk->of, piece->link);
    }
    const uint64_t left = spec_bitmap_bytes(&walk->size) - piece->from;
    piece->len = left < STORE_PIECE ? left : STORE_PIECE;
    if (status != HIBLOOM_OK)
        whole_fail(w, status, TOO_LARGE);
    return status == HIBLOOM_OK && piece->link < walk->links;
}

static void go_on(struct whole *w)
{
    w->step = next_piece(w) ? w->walk.each : w->walk.behind;
}

/* Of further links of the same text the sizes are their maker's, who may have another rule than ours (docs/format.md, 15):
 * those bits do not fit into a link of ours, nor does ours into them. */
static void check_sizes(struct whole *w, hibloom *filter)
{
    hibloom_spec size;

    if (filter == NULL || whole_is_in_memory(filter->store))
        return;
    for (uint32_t i = 1; i < redis_links(filter); i++) {
        const hibloom *link = redis_link(filter, i);
        if (spec_link_size(&size, &filter->spec, i) != HIBLOOM_OK || size.bits != link->spec.bits ||
            size.hashes != link->spec.hashes || spec_segments(&size) != spec_segments(&link->spec))
            whole_fail(w, HIBLOOM_ENOTSUP,
                       "'%s' has a size that its maker's rule gave it, another client's: filters with such links "
                       "are not merged, saved or loaded",
                       link->name);
    }
}

/* The steps: each begins with the piece where the walk is, and goes on. */
static void walk_over(struct whole *w, const hibloom_spec *spec, uint32_t links, void (*each)(struct whole *),
                      void (*behind)(struct whole *))
{
    w->walk = (struct walk){.of = spec, .links = links, .each = each, .behind = behind};
    (void)spec_link_size(&w->walk.size, spec, 0); /* which cannot fail */
    w->step = go_on;
    check_sizes(w, w->filter);
    check_sizes(w, w->other);
}

/* Room for any piece of it: no link is smaller than those before. */
static bool make_room(struct whole *w, unsigned char **out, const hibloom_spec *spec, uint32_t links)
{
    hibloom_spec last;
    const hibloom_status status = spec_link_size(&last, spec, links - 1);

    if (status != HIBLOOM_OK) {
        whole_fail(w, status, TOO_LARGE);
        return false;
    }
    const uint64_t bytes = spec_bitmap_bytes(&last);
    *out = alloc.malloc((size_t)(bytes < STORE_PIECE ? bytes : STORE_PIECE));
    if (*out == NULL)
        task_no_memory(&w->task);
    return *out != NULL;
}

/* Clears what is behind the last bit of a key, which fills its last byte up.
 * Whether something was set there. */
static bool clear_padding(const struct whole *w, unsigned char *bits)
{
    const struct walk *walk = &w->walk;
    const struct piece *piece = &walk->piece;
    const unsigned used = (unsigned)(spec_bitmap_bits(&walk->size) * spec_width(&walk->size) % 8);
    unsigned char *last = &bits[piece->len - 1];

    if (used == 0 || piece->from + piece->len < spec_bitmap_bytes(&walk->size) || (*last & 0xffu >> used) == 0)
        return false;
    *last = (unsigned char)(*last & ~(0xffu >> used));
    return true;
}

/* ---- Two filters ----------------------------------------------------------- */

static void check_same_spec(struct whole *w, const hibloom *a, const hibloom *b)
{
    if (strcmp(a->text, b->text) != 0)
        whole_fail(w, HIBLOOM_EMISMATCH, "'%s' and '%s' have different specs or seeds", a->name, b->name);
}

/* Of a walk that begins with a filter of these. */
static void begin(struct whole *w, hibloom *filter, hibloom *other, void (*step)(struct whole *))
{
    whole_begin(w, filter->store, other != NULL ? other->store : NULL, step);
    whole_note_filters(w, filter, other);
    if (filter->spec.window != 0)
        whole_fail(w, HIBLOOM_ENOTSUP,
                   "'%s' is a sliding window: a file, or another window, does not share its clock, so items would be "
                   "found for a longer or a shorter time than its seconds: it is not merged, compared or saved",
                   filter->name);
}

/* The guard alone: there is no less to ask for than a byte. */
static void check_there(struct whole *w, hibloom *filter, void (*step)(struct whole *))
{
    w->walk.piece = (struct piece){.len = 1};
    whole_read(w, filter, w->dump.header, step);
}

static void check_other(struct whole *w)
{
    if (w->other != w->filter)
        check_there(w, w->other, NULL);
}

/* Behind a bare bitmap's last bit there may be others, to be left out. */
static bool can_merge_within(hibloom *into, hibloom *from)
{
    if (into->store != from->store || whole_is_in_memory(into->store) || into->bare || from->bare ||
        into->spec.counters != 0)
        return false;
    for (uint32_t i = 0; i < redis_links(into) && i < redis_links(from); i++)
        if (!redis_is_together(redis_link(into, i), redis_link(from, i)))
            return false;
    return true;
}

static void merge_within(struct whole *w)
{
    const struct piece *piece = &w->walk.piece;

    transfer_begin_merge_within(&w->transfer, redis_link(w->filter, piece->link), redis_link(w->other, piece->link),
                                piece);
    whole_await(w, w->store, NULL, go_on);
}

/* A bare bitmap may go on behind the filter's last bit. */
static void put_read(struct whole *w)
{
    clear_padding(w, w->bits);
    whole_merge(w, w->filter, go_on);
}

static void merge_piece(struct whole *w)
{
    whole_read(w, w->other, w->bits, put_read);
}

static void merge_links(struct whole *w)
{
    const hibloom_spec *spec = &w->filter->spec;
    const uint32_t links = w->walk.links;

    if (can_merge_within(w->filter, w->other))
        walk_over(w, spec, links, merge_within, NULL);
    else if (make_room(w, &w->bits, spec, links))
        walk_over(w, spec, links, merge_piece, NULL);
}

static void reach_as_many(struct whole *w)
{
    w->walk.links = whole_links(w->other);
    whole_reach(w, w->filter, w->walk.links, merge_links);
}

static void begin_merge(struct whole *w)
{
    if (w->filter->store == w->other->store && strcmp(w->filter->name, w->other->name) == 0)
        check_there(w, w->filter, check_other);
    else
        whole_reach(w, w->other, 1, reach_as_many);
}

struct whole *whole_begin_merge(struct whole *w, hibloom *into, hibloom *from)
{
    begin(w, into, from, begin_merge);
    check_same_spec(w, into, from);
    return w;
}

hibloom_status hibloom_merge(hibloom *into, hibloom *from)
{
    return whole_run(whole_begin_merge(&(struct whole){0}, into, from));
}

/* ---- Comparing ------------------------------------------------------------- */

static void count_words(struct counts *counts, uint64_t a, uint64_t b, uint32_t width)
{
    counts->a += bits_in_use_of(a, width);
    counts->b += bits_in_use_of(b, width);
    counts->either += bits_in_use_of(a | b, width);
}

static void count_bits(struct whole *w)
{
    struct counts *counts = &w->counts;
    const unsigned char *a = w->bits, *b = w->more_bits;
    const size_t len = (size_t)w->walk.piece.len;
    const uint32_t width = spec_width(w->walk.of);
    size_t i = 0;

    clear_padding(w, w->bits);
    clear_padding(w, w->more_bits);
    for (; len - i >= 8; i += 8)
        count_words(counts, hash_load64(a + i), hash_load64(b + i), width);
    count_words(counts, hash_load_rest(a, i, len), hash_load_rest(b, i, len), width);
    w->step = go_on;
}

static void read_second(struct whole *w)
{
    whole_read(w, w->other, w->more_bits, count_bits);
}

static void read_first(struct whole *w)
{
    whole_read(w, w->filter, w->bits, read_second);
}

static double items_of(const hibloom_spec *spec, uint64_t bits_set)
{
    return spec_items_at(spec, (double)bits_set / (double)spec_all_bits(spec));
}

/* An infinite union says nothing of the rest: not a number, which none of the
 * comparisons below changes. */
static hibloom_comparison comparison_of(double a, double b, double either)
{
    double both = isinf(either) ? (double)NAN : a + b - either;

    if (both < 0.0)
        both = 0.0;
    double similarity = either > 0.0 ? both / either : 1.0;
    if (similarity > 1.0)
        similarity = 1.0;
    return (hibloom_comparison){either, both, similarity};
}

static void answer(struct whole *w)
{
    const hibloom_spec *spec = &w->filter->spec;

    *w->comparison = comparison_of(items_of(spec, w->counts.a), items_of(spec, w->counts.b),
                                   items_of(spec, w->counts.either));
}

static void begin_compare(struct whole *w)
{
    const hibloom_spec *spec = &w->filter->spec;

    if (make_room(w, &w->bits, spec, 1) && make_room(w, &w->more_bits, spec, 1))
        walk_over(w, spec, 1, read_first, answer);
}

struct whole *whole_begin_compare(struct whole *w, hibloom *a, hibloom *b, hibloom_comparison *out)
{
    begin(w, a, b, begin_compare);
    w->comparison = out;
    if (a->spec.growth != 0)
        whole_fail(w, HIBLOOM_ENOTSUP,
                   "'%s' grows: an item may lie in its first link, and in the third of the other filter, so "
                   "what they have in common cannot be counted",
                   a->name);
    check_same_spec(w, a, b);
    return w;
}

hibloom_status hibloom_compare(hibloom *a, hibloom *b, hibloom_comparison *out)
{
    return whole_run(whole_begin_compare(&(struct whole){0}, a, b, out));
}

/* ---- Files ----------------------------------------------------------------- */

static void take(struct whole *w, hibloom_status status)
{
    whole_take(w, status, &w->told->error);
}

static void commit(struct whole *w)
{
    take(w, filter_file_commit(w->file));
}

static void write_piece(struct whole *w)
{
    clear_padding(w, w->bits);
    take(w, filter_file_write(w->file, w->bits, (size_t)w->walk.piece.len));
    w->step = go_on;
}

static void save_piece(struct whole *w)
{
    whole_read(w, w->filter, w->bits, write_piece);
}

static void save_links(struct whole *w)
{
    const hibloom *filter = w->filter;
    const uint32_t links = whole_links(filter);

    if (!make_room(w, &w->bits, &filter->spec, links))
        return;
    take(w, filter_file_create(&w->file, w->path, &filter->spec, filter->text, links, &w->told->error));
    walk_over(w, &filter->spec, links, save_piece, commit);
}

static void begin_save(struct whole *w)
{
    whole_reach(w, w->filter, 1, save_links);
}

struct whole *whole_begin_save(struct whole *w, hibloom *filter, const char *path)
{
    begin(w, filter, NULL, begin_save);
    w->path = path;
    return w;
}

hibloom_status hibloom_save(hibloom *filter, const char *path)
{
    return whole_run(whole_begin_save(&(struct whole){0}, filter, path));
}

static void read_piece(struct whole *w)
{
    take(w, filter_file_read(w->file, w->bits, (size_t)w->walk.piece.len));
    if (w->task.status == HIBLOOM_OK && clear_padding(w, w->bits))
        take(w, filter_file_corrupt(w->file, "was altered: bits are set behind its last one"));
    w->step = go_on;
}

static void load_piece(struct whole *w)
{
    read_piece(w);
    if (w->task.status == HIBLOOM_OK)
        whole_merge(w, w->filter, go_on);
}

/* One walk over the file, which ends in its checksum. */
static void check_sum(struct whole *w)
{
    take(w, filter_file_check(w->file));
}

static void load_links(struct whole *w)
{
    take(w, filter_file_rewind(w->file));
    walk_over(w, filter_file_spec(w->file), filter_file_links(w->file), load_piece, check_sum);
}

static void begin_loading(struct whole *w)
{
    check_sum(w);
    if (strcmp(filter_file_text(w->file), w->filter->text) != 0)
        whole_fail(w, HIBLOOM_EMISMATCH,
                   "'%s' and the filter in %.256s have different specs or seeds; "
                   "open one with the spec of hibloom_spec_load",
                   w->filter->name, w->path);
    if (w->task.status == HIBLOOM_OK)
        whole_reach(w, w->filter, filter_file_links(w->file), load_links);
}

/* First it is only seen that the file is whole. */
static void begin_load(struct whole *w)
{
    take(w, filter_file_open(&w->file, w->path, &w->told->error));
    if (w->task.status == HIBLOOM_OK && make_room(w, &w->bits, filter_file_spec(w->file), filter_file_links(w->file)))
        walk_over(w, filter_file_spec(w->file), filter_file_links(w->file), read_piece, begin_loading);
}

struct whole *whole_begin_load(struct whole *w, hibloom *into, const char *path)
{
    begin(w, into, NULL, begin_load);
    w->path = path;
    return w;
}

hibloom_status hibloom_load(hibloom *into, const char *path)
{
    return whole_run(whole_begin_load(&(struct whole){0}, into, path));
}

hibloom_status hibloom_spec_load(hibloom_spec *out, const char *path)
{
    struct error error; /* functions on specs have no words */
    struct filter_file *file = NULL;
    hibloom_status status = filter_file_open(&file, path, &error);

    if (status == HIBLOOM_OK)
        *out = *filter_file_spec(file);
    filter_file_close(file);
    return status;
}
