/* linked.c: bits of filters that are several. See linked.h.
 *
 * By the rules of redis/growing.h and redis/window.h, which are short where nobody else adds meanwhile. */
#include "memory/linked.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "spec/period.h"

#include <string.h>

#define BLOCK 512u /* items at a time */

/* ---- How they come and go --------------------------------------------------- */

static hibloom_status add_link(struct linked *linked, const struct spec *spec)
{
    if (!bits_make(&linked->link[linked->links], spec, spec_keys(spec), true))
        return HIBLOOM_ENOMEM;
    linked->links++;
    linked->newest = 0;
    linked->counted = true;
    return HIBLOOM_OK;
}

hibloom_status linked_grow(struct linked *linked)
{
    struct spec spec AT_END(spec_wipe) = {.hashes = 0};
    const hibloom_status status = spec_link(&spec, &linked->link[0].spec, linked->links, 1);

    return status == HIBLOOM_OK ? add_link(linked, &spec) : status;
}

hibloom_status linked_make(struct linked *linked, const struct spec *spec)
{
    *linked = (struct linked){.links = 0};
    linked->link = alloc.calloc(spec_has_links(spec) ? SPEC_LINKS_MAX : 1, sizeof *linked->link);
    hibloom_status status = linked->link != NULL ? add_link(linked, spec) : HIBLOOM_ENOMEM;
    while (status == HIBLOOM_OK && linked->links <= spec->slices)
        status = linked_grow(linked);
    return status;
}

void linked_free(struct linked *linked)
{
    for (uint32_t i = 0; i < linked->links; i++)
        bits_free(&linked->link[i]);
    alloc.free(linked->link);
}

void linked_clear(struct linked *linked)
{
    for (uint32_t i = 0; i < linked->links; i++)
        bits_clear(&linked->link[i]);
    linked->newest = 0;
    linked->counted = true;
}

/* ---- Looking ---------------------------------------------------------------- */

/* The period that it is now, for a window; the clock begins with one that has others before it. */
static uint64_t period_now(const struct linked *linked)
{
    const struct spec *spec = &linked->link[0].spec;

    return spec->window != 0 ? period_at(spec, (clock_now_ms() + spec->window * UINT64_C(3000)) * 1000) : 0;
}

static bool link_counts(const struct linked *linked, uint32_t i, uint64_t now)
{
    const struct spec *spec = &linked->link[0].spec;

    return spec->window == 0 || period_counts(spec, linked->period[i], now);
}

/* Is it in any of the first `links`? */
static void look(struct linked *linked, uint32_t links, const hibloom_item *items, size_t n, bool *found)
{
    const uint64_t now = period_now(linked);
    bool one[BLOCK];

    memset(found, 0, n * sizeof *found);
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t count = n - at < BLOCK ? n - at : BLOCK;
        for (uint32_t i = links; i-- > 0;) {
            if (!link_counts(linked, i, now))
                continue;
            bits_contains(&linked->link[i], items + at, count, one);
            for (size_t k = 0; k < count; k++)
                found[at + k] = found[at + k] || one[k];
        }
    }
}

void linked_contains(struct linked *linked, const hibloom_item *items, size_t n, bool *found)
{
    if (linked->links > 1)
        look(linked, linked->links, items, n, found);
    else
        bits_contains(&linked->link[0], items, n, found);
}

/* ---- Adding ----------------------------------------------------------------- */

static void count_newest(struct linked *linked)
{
    const struct bits *bits = &linked->link[linked->links - 1];
    const double items = spec_items_at(&bits->spec, (double)bits_count(bits) / (double)spec_all_bits(&bits->spec));

    linked->newest = items < (double)bits->spec.capacity ? (uint64_t)items : bits->spec.capacity;
    linked->counted = true;
}

/* Items that are in no older link go to the newest, up to its capacity. Then a further link is made. */
static hibloom_status add_to_chain(struct linked *linked, const hibloom_item *items, size_t n, bool *is_new)
{
    bool found[BLOCK], one;

    if (!linked->counted)
        count_newest(linked);
    for (size_t at = 0, count; at < n; at += count) {
        const uint64_t capacity = linked->link[linked->links - 1].spec.capacity;
        const hibloom_status status = linked->newest >= capacity ? linked_grow(linked) : HIBLOOM_OK;
        if (status != HIBLOOM_OK)
            return status;
        struct bits *newest = &linked->link[linked->links - 1];
        const uint64_t room = newest->spec.capacity - linked->newest;
        count = n - at < BLOCK ? n - at : BLOCK;
        if (count > room)
            count = (size_t)room;
        look(linked, linked->links - 1, items + at, count, found);
        for (size_t k = 0; k < count; k++) {
            one = false;
            if (!found[k])
                bits_add(newest, &items[at + k], 1, &one);
            linked->newest += one;
            is_new[at + k] = one;
        }
    }
    return HIBLOOM_OK;
}

/* All go to the slice of the period, as it may be asked for longer than what has them now. */
static void add_to_window(struct linked *linked, const hibloom_item *items, size_t n, bool *is_new)
{
    const uint64_t now = period_now(linked);
    const uint32_t number = period_slice(&linked->link[0].spec, now);
    struct bits *slice = &linked->link[number];

    if (linked->period[number] != now)
        bits_clear(slice);
    linked->period[number] = now;
    look(linked, linked->links, items, n, is_new);
    for (size_t i = 0; i < n; i++) {
        bool one;
        bits_add(slice, &items[i], 1, &one);
        is_new[i] = one && !is_new[i];
    }
}

hibloom_status linked_add(struct linked *linked, const hibloom_item *items, size_t n, bool *is_new)
{
    hibloom_status status = HIBLOOM_OK;

    if (!spec_has_links(&linked->link[0].spec)) {
        bits_add(&linked->link[0], items, n, is_new);
        return HIBLOOM_OK;
    }
    bool *answers = alloc.malloc(n + 1);
    if (answers == NULL)
        return HIBLOOM_ENOMEM;
    if (linked->link[0].spec.window != 0)
        add_to_window(linked, items, n, answers);
    else
        status = add_to_chain(linked, items, n, answers);
    if (status == HIBLOOM_OK && is_new != NULL)
        memcpy(is_new, answers, n);
    alloc.free(answers);
    return status;
}

void linked_merge(struct linked *linked, const struct piece *piece, const unsigned char *bits)
{
    bits_merge(&linked->link[piece->link], piece, bits);
    if (piece->link + 1 == linked->links)
        linked->counted = false;
}
