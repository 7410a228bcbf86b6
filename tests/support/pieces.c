#include "pieces.h"

#include "filter/whole.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

static unsigned char *bytes;
static uint32_t wanted;

static void read_one(struct whole *w)
{
    whole_read(w, w->filter, bytes, NULL);
}

static void merge_one(struct whole *w)
{
    whole_merge(w, w->filter, NULL);
}

static void reach(struct whole *w)
{
    whole_reach(w, w->filter, wanted, NULL);
}

static void run(hibloom *filter, const struct piece *piece, const unsigned char *bits, void (*step)(struct whole *))
{
    struct whole w;

    whole_begin(&w, filter->store, NULL);
    whole_note_filters(&w, filter, NULL);
    w.step = step;
    w.pieces.piece = *piece;
    if (bits != NULL) {
        w.bits = malloc((size_t)piece->len); /* which its end frees */
        assert_non_null(w.bits);
        memcpy(w.bits, bits, (size_t)piece->len);
    }
    assert_ok(whole_go(&w, WAITS(piece)), filter->store);
}

void piece_read(hibloom *filter, const struct piece *piece, unsigned char *out)
{
    bytes = out;
    run(filter, piece, NULL, read_one);
}

void piece_merge(hibloom *filter, const struct piece *piece, const unsigned char *bits)
{
    run(filter, piece, bits, merge_one);
}

uint32_t links_reach(hibloom *filter, uint32_t links)
{
    wanted = links;
    run(filter, &(struct piece){0}, NULL, reach);
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
        for (struct piece piece = {.key = key}; piece.from < len; piece.from += piece.len) {
            piece.len = len - piece.from < STORE_PIECE ? len - piece.from : STORE_PIECE;
            piece_read(filter, &piece, at + piece.from);
        }
    return bits;
}
