#include "pieces.h"

#include "filter/whole.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

static const struct piece *piece;
static unsigned char *bytes;
static const unsigned char *more;
static uint32_t wanted;

static void read_one(struct whole *w, const struct whole_args *args)
{
    whole_note_filters(w, args->filter, NULL);
    w->pieces.piece = *piece;
    whole_read(w, args->filter, bytes, NULL);
}

static void merge_one(struct whole *w, const struct whole_args *args)
{
    whole_note_filters(w, args->filter, NULL);
    w->pieces.piece = *piece;
    w->bits = malloc((size_t)piece->len); /* which its end frees */
    assert_non_null(w->bits);
    memcpy(w->bits, more, (size_t)piece->len);
    whole_merge(w, args->filter, NULL);
}

static void reach(struct whole *w, const struct whole_args *args)
{
    whole_note_filters(w, args->filter, NULL);
    whole_reach(w, args->filter, wanted, NULL);
}

static void run(hibloom *filter, whole_begin_fn *begin)
{
    assert_ok(whole_call(begin, &(struct whole_args){.filter = filter}, WAITS(piece)), filter->store);
}

void piece_read(hibloom *filter, const struct piece *of, unsigned char *out)
{
    piece = of;
    bytes = out;
    run(filter, read_one);
}

void piece_merge(hibloom *filter, const struct piece *of, const unsigned char *bits)
{
    piece = of;
    more = bits;
    run(filter, merge_one);
}

uint32_t links_reach(hibloom *filter, uint32_t links)
{
    wanted = links;
    run(filter, reach);
    return whole_links(filter);
}

size_t all_bits_len(const hibloom *filter)
{
    return (size_t)(spec_keys(&filter->spec) * spec_bitmap_bytes(&filter->spec));
}

unsigned char *all_bits_read(hibloom *filter)
{
    const uint64_t len = spec_bitmap_bytes(&filter->spec);
    unsigned char *bits = malloc(all_bits_len(filter)), *at = bits;

    assert_non_null(bits);
    for (uint32_t key = 0; key < spec_keys(&filter->spec); key++, at += len)
        for (struct piece at_once = {.key = key}; at_once.from < len; at_once.from += at_once.len) {
            at_once.len = len - at_once.from < STORE_PIECE ? len - at_once.from : STORE_PIECE;
            piece_read(filter, &at_once, at + at_once.from);
        }
    return bits;
}
