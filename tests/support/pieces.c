#include "pieces.h"

#include "filter/whole.h"

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
