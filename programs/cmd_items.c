/* add, check, uniq and remove: batches of items, each added, looked up or removed in one call.
 *
 * They share one loop. They differ in what they ask the filter about a batch and in what they
 * print of an item. The results of a batch are written out before the next one is read. So
 * output is as prompt as input. Nothing is written of a batch that fails. */
#include "input.h"
#include "output.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    hibloom_status (*ask)(hibloom *filter, const hibloom_item *items, size_t n, bool *answers);
    void (*print)(const hibloom_item *item, bool answer); /* NULL: nothing is printed of an item */
    bool adds;    /* creates the filter if it is missing, and warns if it is too full */
    bool remakes; /* makes the filter again if a server has forgotten it */
    bool follows; /* goes on with the filter that took this one's place */
    uint64_t items;
    uint64_t excluded; /* empty items that the spec excludes */
    uint64_t yes;      /* items that were found, or new */
    bool *answers;     /* [room] */
    size_t room;
};

static bool make_room(struct walk *w, size_t n)
{
    bool *answers;

    if (n <= w->room)
        return true;
    answers = realloc(w->answers, n * sizeof *answers);
    if (answers == NULL) {
        complain("%s", strerror(ENOMEM));
        return false;
    }
    w->answers = answers;
    w->room = n;
    return true;
}

static void count_and_print(struct walk *w, const struct input *in, const hibloom *filter)
{
    const bool empty_excluded = spec_has_empty_excluded(hibloom_spec_of(filter));

    for (size_t i = 0; i < in->n; i++) {
        w->excluded += in->items[i].len == 0 && empty_excluded;
        w->yes += w->answers[i];
        if (w->print != NULL)
            w->print(&in->items[i], w->answers[i]);
    }
    w->items += in->n;
}

#define FOLLOW_TRIES 5

/* If another process replaces the filter (load --replace, RENAME), a failed look-up goes to the filter that has
 * the name now. The old keys of several are gone: ENOTFOUND. */
static int ask_on(struct walk *w, struct session *s, const struct input *in, const struct request *r)
{
    hibloom_status status = w->ask(s->filter, in->items, in->n, w->answers);

    for (int tries = 0; tries < FOLLOW_TRIES && (status == HIBLOOM_EMISMATCH || status == HIBLOOM_ENOTFOUND); tries++) {
        if (!session_reopen_existing(s, r))
            return EXIT_TROUBLE;
        status = w->ask(s->filter, in->items, in->n, w->answers);
    }
    return session_result(s, status);
}

/* A filter that a server has forgotten is made again, and the batch is added to it. If another
 * process had made it before, the failed call may have set bits in it. Then nobody knows which
 * items of the batch are new. A line that is printed twice is better than one that is lost. */
static int ask(struct walk *w, struct session *s, const struct input *in, const struct request *r)
{
    hibloom_status status;

    if (w->follows && (r->given & OPTION_BARE) == 0)
        return ask_on(w, s, in, r);
    status = w->ask(s->filter, in->items, in->n, w->answers);
    if (!w->remakes || !session_make_again(s, r, status))
        return session_result(s, status);
    const bool doubtful = status != HIBLOOM_ENOTFOUND;
    status = w->ask(s->filter, in->items, in->n, w->answers);
    for (size_t i = 0; i < in->n && status == HIBLOOM_OK && doubtful; i++)
        w->answers[i] = in->items[i].len > 0 || !spec_has_empty_excluded(hibloom_spec_of(s->filter));
    return session_result(s, status);
}

static int walk_batches(struct walk *w, struct session *s, struct input *in, const struct request *r)
{
    enum input_status status;

    while ((status = input_next(in)) == INPUT_BATCH) {
        if (!make_room(w, in->n) || ask(w, s, in, r) == EXIT_TROUBLE)
            return EXIT_TROUBLE;
        count_and_print(w, in, s->filter);
        if (!output_flush())
            return EXIT_TROUBLE;
    }
    return status == INPUT_END ? EXIT_YES : EXIT_TROUBLE;
}

/* Counting takes the server 40 us (Redis 8) to 300 us (7.0) for each MB, and an item some 2 us. After few items it would take far longer
 * than to add them. */
#define BITS_AN_ITEM 400000u
#define FEW_BITS (UINT64_C(1) << 27) /* 16 MB */

static bool is_worth_counting(const char *spec, uint64_t items)
{
    const uint64_t bits = spec_number(spec, "bits") * spec_filters(spec);

    return bits <= FEW_BITS || items >= bits / BITS_AN_ITEM;
}

static int walk_items(struct walk *w, const struct request *r)
{
    struct session s;
    struct input in;
    int result = EXIT_TROUBLE;

    if (!(w->adds ? session_open : session_open_existing)(&s, r))
        return EXIT_TROUBLE;
    if (input_open(&in, r->operands + 1, r->n_operands - 1, (r->given & OPTION_CRLF) != 0)) {
        result = walk_batches(w, &s, &in, r);
        input_close(&in);
    }
    if (result == EXIT_YES && w->adds && is_worth_counting(hibloom_spec_of(s.filter), w->items))
        session_warn_if_full(&s);
    if (!w->follows)
        result = session_finish(&s, result);
    free(w->answers);
    session_close(&s);
    return result;
}

int cmd_add(const struct request *r)
{
    struct walk w = {.ask = hibloom_add_many, .adds = true};
    int result = walk_items(&w, r);

    if (result == EXIT_YES)
        output_text("added %llu, new %llu\n", (unsigned long long)(w.items - w.excluded), (unsigned long long)w.yes);
    return result;
}

static void print_answer(const hibloom_item *item, bool found)
{
    output_text("%s\t", found ? "maybe" : "no");
    output_bytes(item->data, item->len);
    output_bytes("\n", 1);
}

int cmd_check(const struct request *r)
{
    struct walk w = {.ask = hibloom_contains_many, .print = print_answer, .follows = true};
    int result = walk_items(&w, r);

    return result == EXIT_YES && w.yes < w.items ? EXIT_NO : result;
}

int cmd_remove(const struct request *r)
{
    struct walk w = {.ask = hibloom_remove_many};
    int result = walk_items(&w, r);

    if (result == EXIT_YES)
        output_text("removed %llu, not in %llu\n", (unsigned long long)w.yes, (unsigned long long)(w.items - w.yes));
    return result;
}

static void print_new(const hibloom_item *item, bool is_new)
{
    if (!is_new)
        return;
    output_bytes(item->data, item->len);
    output_bytes("\n", 1);
}

int cmd_uniq(const struct request *r)
{
    struct walk w = {.ask = hibloom_add_many, .print = print_new, .adds = true, .remakes = true};

    return walk_items(&w, r);
}
