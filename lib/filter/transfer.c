/* transfer.c: whole filters, from one place to another: joined, saved, loaded
 * and compared, piece by piece, so that a filter of any size takes no more
 * memory than a piece. What a piece is to a store, the store knows (store.h),
 * and what it is to a file, file.c. */
#include "base/error.h"
#include "base/alloc.h"
#include "bits/bits.h"
#include "filter/file.h"
#include "hash/load.h"
#include "spec/spec.h"
#include "base/store.h"

#include <math.h>
#include <string.h>

/* ---- Pieces ---------------------------------------------------------------- */

/* A walk over all bits of a filter, of which so many links are known. */
struct walk {
    const hibloom_spec *of;
    uint32_t links;
    hibloom_spec size; /* of the link where it is; no seed */
    struct piece piece;
};

static struct walk walk_over(const hibloom_spec *spec, uint32_t links)
{
    struct walk walk = {.of = spec, .links = links};

    (void)spec_link_size(&walk.size, spec, 0); /* which cannot fail */
    return walk;
}

/* The piece that follows, the first after one of all zeros: link after link, key
 * after key, and none in two keys. False behind the last, or where *status says why. */
static bool next_piece(struct walk *walk, hibloom_status *status)
{
    struct piece *piece = &walk->piece;

    piece->from += piece->len;
    if (piece->from == spec_bitmap_bytes(&walk->size)) {
        piece->key++;
        piece->from = 0;
    }
    if (piece->key == spec_keys(&walk->size)) {
        piece->link++;
        piece->key = 0;
        if (piece->link < walk->links)
            *status = spec_link_size(&walk->size, walk->of, piece->link);
    }
    const uint64_t left = spec_bitmap_bytes(&walk->size) - piece->from;
    piece->len = left < STORE_PIECE ? left : STORE_PIECE;
    return *status == HIBLOOM_OK && piece->link < walk->links;
}

/* Room for any piece of it: no link is smaller than those before. */
static hibloom_status new_buffer(unsigned char **out, const hibloom_spec *spec, uint32_t links, struct error *error)
{
    hibloom_spec last;
    const hibloom_status status = spec_link_size(&last, spec, links - 1);

    if (status != HIBLOOM_OK)
        return error_set(error, status, "a link would be too large");
    const uint64_t bytes = spec_bitmap_bytes(&last);
    *out = alloc.malloc((size_t)(bytes < STORE_PIECE ? bytes : STORE_PIECE));
    return *out != NULL ? HIBLOOM_OK : error_set(error, HIBLOOM_ENOMEM, "out of memory");
}

/* Clears what is behind the last bit of a key, which fills its last byte up.
 * Whether something was set there. */
static bool clear_padding(const struct walk *walk, unsigned char *bits)
{
    const struct piece *piece = &walk->piece;
    const unsigned used = (unsigned)(spec_bitmap_bits(&walk->size) * spec_width(&walk->size) % 8);
    unsigned char *last = &bits[piece->len - 1];

    if (used == 0 || piece->from + piece->len < spec_bitmap_bytes(&walk->size) || (*last & 0xffu >> used) == 0)
        return false;
    *last = (unsigned char)(*last & ~(0xffu >> used));
    return true;
}

/* What a filter fails of, in a call whose words are those of `store`. */
static hibloom_status told_by(hibloom_store *store, const hibloom *filter, hibloom_status status)
{
    if (status != HIBLOOM_OK && filter->store != store)
        store->error = filter->store->error;
    return status;
}

/* Reads from a filter for such a call. A bare bitmap may go on behind the filter's last bit. */
static hibloom_status read_piece(hibloom_store *store, hibloom *filter, const struct walk *walk, unsigned char *bits)
{
    hibloom_status status = filter->store->class->read(filter, &walk->piece, bits);

    if (status == HIBLOOM_OK)
        clear_padding(walk, bits);
    return told_by(store, filter, status);
}

/* ---- Two filters ----------------------------------------------------------- */

static hibloom_status check_same_spec(const hibloom *a, const hibloom *b)
{
    if (strcmp(a->text, b->text) == 0)
        return HIBLOOM_OK;
    return error_set(&a->store->error, HIBLOOM_EMISMATCH, "'%s' and '%s' have different specs or seeds", a->name,
                     b->name);
}

static hibloom_status check_no_window(const hibloom *filter)
{
    if (filter->spec.window == 0)
        return HIBLOOM_OK;
    return error_set(&filter->store->error, HIBLOOM_ENOTSUP,
                     "'%s' is a sliding window: a file, or another window, does not share its clock, so items would be "
                     "found for a longer or a shorter time than its seconds: it is not merged, compared or saved",
                     filter->name);
}

/* The guard alone: there is no less to ask for than a byte. */
static hibloom_status check_there(hibloom *filter)
{
    unsigned char byte;

    return filter->store->class->read(filter, &(struct piece){.len = 1}, &byte);
}

/* Behind a bare bitmap's last bit there may be others, to be left out. */
static bool can_merge_within(const hibloom *into, const hibloom *from)
{
    const struct store_class *class = into->store->class;

    return into->store == from->store && class->merge_within != NULL && !into->bare && !from->bare &&
           into->spec.counters == 0 && class->together(into, from);
}

static hibloom_status merge_links(hibloom *into, hibloom *from, uint32_t links)
{
    const struct store_class *class = into->store->class;
    const bool within = can_merge_within(into, from);
    struct walk walk = walk_over(&into->spec, links);
    unsigned char *bits = NULL;
    hibloom_status status = within ? HIBLOOM_OK : new_buffer(&bits, &into->spec, links, &into->store->error);

    while (status == HIBLOOM_OK && next_piece(&walk, &status)) {
        status = within ? class->merge_within(into, from, &walk.piece) : read_piece(into->store, from, &walk, bits);
        if (status == HIBLOOM_OK && !within)
            status = class->merge(into, &walk.piece, bits);
    }
    alloc.free(bits);
    return status;
}

hibloom_status hibloom_merge(hibloom *into, hibloom *from)
{
    hibloom_status status = check_no_window(into);

    if (status == HIBLOOM_OK)
        status = check_same_spec(into, from);
    if (status == HIBLOOM_OK && into->store == from->store && strcmp(into->name, from->name) == 0) {
        status = check_there(into);
        return status == HIBLOOM_OK && from != into ? check_there(from) : status;
    }
    if (status == HIBLOOM_OK)
        status = told_by(into->store, from, from->store->class->reach(from, 1));
    if (status != HIBLOOM_OK)
        return status;
    const uint32_t links = from->store->class->links(from);
    status = into->store->class->reach(into, links);
    return status == HIBLOOM_OK ? merge_links(into, from, links) : status;
}

/* ---- Comparing ------------------------------------------------------------- */

struct counts {
    uint64_t a, b, either;
};

static void count_words(struct counts *counts, uint64_t a, uint64_t b, uint32_t width)
{
    counts->a += bits_in_use_of(a, width);
    counts->b += bits_in_use_of(b, width);
    counts->either += bits_in_use_of(a | b, width);
}

static void count_bits(struct counts *counts, const unsigned char *a, const unsigned char *b, size_t len,
                       uint32_t width)
{
    size_t i = 0;

    for (; len - i >= 8; i += 8)
        count_words(counts, hash_load64(a + i), hash_load64(b + i), width);
    count_words(counts, hash_load_rest(a, i, len), hash_load_rest(b, i, len), width);
}

static hibloom_status count_both(struct counts *counts, hibloom *a, hibloom *b)
{
    struct walk walk = walk_over(&a->spec, 1);
    unsigned char *bits_a = NULL, *bits_b = NULL;
    hibloom_status status = new_buffer(&bits_a, &a->spec, 1, &a->store->error);

    if (status == HIBLOOM_OK)
        status = new_buffer(&bits_b, &a->spec, 1, &a->store->error);
    while (status == HIBLOOM_OK && next_piece(&walk, &status)) {
        status = read_piece(a->store, a, &walk, bits_a);
        if (status == HIBLOOM_OK)
            status = read_piece(a->store, b, &walk, bits_b);
        if (status == HIBLOOM_OK)
            count_bits(counts, bits_a, bits_b, (size_t)walk.piece.len, spec_width(&a->spec));
    }
    alloc.free(bits_a);
    alloc.free(bits_b);
    return status;
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

hibloom_status hibloom_compare(hibloom *a, hibloom *b, hibloom_comparison *out)
{
    struct counts counts = {0};
    hibloom_status status = check_no_window(a);

    if (status == HIBLOOM_OK && a->spec.growth != 0)
        status = error_set(&a->store->error, HIBLOOM_ENOTSUP,
                           "'%s' grows: an item may lie in its first link, and in the third of the other filter, so "
                           "what they have in common cannot be counted",
                           a->name);
    if (status == HIBLOOM_OK)
        status = check_same_spec(a, b);
    if (status == HIBLOOM_OK)
        status = count_both(&counts, a, b);
    if (status == HIBLOOM_OK)
        *out = comparison_of(items_of(&a->spec, counts.a), items_of(&a->spec, counts.b),
                             items_of(&a->spec, counts.either));
    return status;
}

/* ---- Files ----------------------------------------------------------------- */

static hibloom_status save_bits(hibloom *filter, uint32_t links, struct filter_file *file, unsigned char *bits)
{
    struct walk walk = walk_over(&filter->spec, links);
    hibloom_status status = HIBLOOM_OK;

    while (status == HIBLOOM_OK && next_piece(&walk, &status)) {
        status = read_piece(filter->store, filter, &walk, bits);
        if (status == HIBLOOM_OK)
            status = filter_file_write(file, bits, (size_t)walk.piece.len);
    }
    return status;
}

hibloom_status hibloom_save(hibloom *filter, const char *path)
{
    struct error *error = &filter->store->error;
    struct filter_file *file = NULL;
    unsigned char *bits = NULL;
    uint32_t links = 0;
    hibloom_status status = check_no_window(filter);

    if (status == HIBLOOM_OK)
        status = filter->store->class->reach(filter, 1);
    if (status == HIBLOOM_OK)
        links = filter->store->class->links(filter);
    if (status == HIBLOOM_OK)
        status = new_buffer(&bits, &filter->spec, links, error);
    if (status == HIBLOOM_OK)
        status = filter_file_create(&file, path, &filter->spec, filter->text, links, error);
    if (status == HIBLOOM_OK)
        status = save_bits(filter, links, file, bits);
    if (status == HIBLOOM_OK)
        status = filter_file_commit(file);
    filter_file_close(file);
    alloc.free(bits);
    return status;
}

/* One walk over the file, which ends in its checksum; into NULL: only to see
 * that it is whole. */
static hibloom_status load_bits(struct filter_file *file, hibloom *into, unsigned char *bits)
{
    struct walk walk = walk_over(filter_file_spec(file), filter_file_links(file));
    hibloom_status status = HIBLOOM_OK;

    while (status == HIBLOOM_OK && next_piece(&walk, &status)) {
        status = filter_file_read(file, bits, (size_t)walk.piece.len);
        if (status == HIBLOOM_OK && clear_padding(&walk, bits))
            status = filter_file_corrupt(file, "was altered: bits are set behind its last one");
        if (status == HIBLOOM_OK && into != NULL)
            status = into->store->class->merge(into, &walk.piece, bits);
    }
    return status == HIBLOOM_OK ? filter_file_check(file) : status;
}

hibloom_status hibloom_load(hibloom *into, const char *path)
{
    struct error *error = &into->store->error;
    struct filter_file *file = NULL;
    unsigned char *bits = NULL;
    hibloom_status status = check_no_window(into);

    if (status == HIBLOOM_OK)
        status = filter_file_open(&file, path, error);
    if (status == HIBLOOM_OK)
        status = new_buffer(&bits, filter_file_spec(file), filter_file_links(file), error);
    if (status == HIBLOOM_OK)
        status = load_bits(file, NULL, bits);
    if (status == HIBLOOM_OK && strcmp(filter_file_text(file), into->text) != 0)
        status = error_set(error, HIBLOOM_EMISMATCH,
                           "'%s' and the filter in %.256s have different specs or seeds; "
                           "open one with the spec of hibloom_spec_load",
                           into->name, path);
    if (status == HIBLOOM_OK)
        status = into->store->class->reach(into, filter_file_links(file));
    if (status == HIBLOOM_OK)
        status = filter_file_rewind(file);
    if (status == HIBLOOM_OK)
        status = load_bits(file, into, bits);
    filter_file_close(file);
    alloc.free(bits);
    return status;
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
