/* plan and positions: facts of a filter that need no server. */
#include "choice.h"
#include "input.h"
#include "number.h"
#include "output.h"

#include <string.h>

/* ---- plan --------------------------------------------------------------------- */

static void put_choice(const struct choices *all, const struct choice *c, const hibloom_spec *chosen)
{
    const double least = choices_pick(all, PREFER_MEMORY, NULL)->bytes;
    char memory[NUMBER_SIZE], add[NUMBER_SIZE], add_new[NUMBER_SIZE], look_up[NUMBER_SIZE];

    output_text("%-11s %3u %10s %+6.0f %%%7s%7s%7s", choice_layout(c->layout), c->hashes,
                number_bytes(memory, c->bytes), (c->bytes / least - 1) * 100, number_rough(add, c->rates.adds),
                number_rough(add_new, c->rates.adds_new), number_rough(look_up, c->rates.look_ups));
    for (int i = 0; i < PREFERENCES; i++)
        if (choices_pick(all, (enum preference)i, NULL) == c)
            output_text(" %s", request_preference((enum preference)i));
    output_text("%s\n", c->hashes == chosen->hashes && c->layout == chosen->layout ? " chosen" : "");
}

/* Fewer hashes need more bits, and do more items a second. Filters that cannot be made are shown
 * only in the layout of the request. */
static void put_choices(const struct request *r)
{
    struct choices all;

    choices_find(&all, r);
    if (choices_pick(&all, PREFER_MEMORY, NULL) == NULL)
        return;
    output_text("\n                                      items a second\n"
                "layout        k     memory vs least    add is_new lookup\n");
    for (size_t i = 0; i < all.n; i++)
        if (all.all[i].can_be_made || all.all[i].layout == r->spec.layout)
            put_choice(&all, &all.all[i], &r->spec);
    output_text("\nItems a second are computed, for one server and calls of 1,000 items; hibloom bench\n"
                "measures. At the end of a row: what --prefer picks; chosen: what these options make.\n"
                "1 MB is 2^20 bytes.\n");
}

/* The rates of a spec that was given whole. */
static void put_rates(const struct request *r)
{
    char add[NUMBER_SIZE], add_new[NUMBER_SIZE], look_up[NUMBER_SIZE];
    hibloom_rates rates;

    if (hibloom_spec_rates(&r->spec, r->bitfield, &rates) == HIBLOOM_OK)
        output_text(
            "items a second   add %s, is_new %s, lookup %s; computed, for one server and calls of 1,000 items\n",
            number_rough(add, rates.adds), number_rough(add_new, rates.adds_new),
            number_rough(look_up, rates.look_ups));
}

int cmd_plan(const struct request *r)
{
    const bool whole = (r->given & OPTION_S) != 0;
    hibloom_spec best;
    char text[HIBLOOM_SPEC_TEXT_SIZE], memory[NUMBER_SIZE];
    hibloom_status status;

    if (whole && r->spec.bits == 0) {
        complain("plan: how large it is, its config in Redis says; give capacity= and error=");
        return EXIT_TROUBLE;
    }
    if (!whole && request_size(r, 0, &best) != HIBLOOM_OK) { /* only where -k is given: else r->spec is that one */
        complain("plan: for so low an error rate, no number of hashes up to %u is the best", HIBLOOM_HASHES_MAX);
        return EXIT_TROUBLE;
    }
    status = hibloom_spec_format(&r->spec, text, sizeof text);
    if (status != HIBLOOM_OK) {
        complain("plan: %s", hibloom_strerror(status));
        return EXIT_TROUBLE;
    }
    output_text("spec             %s\n", text);
    output_text("memory           %s (%.0f bytes)\n", number_bytes(memory, choice_bytes(&r->spec)),
                choice_bytes(&r->spec));
    if (r->spec.capacity > 0)
        output_text("predicted error  %.6g at %llu items\n", hibloom_spec_error_at(&r->spec, r->spec.capacity),
                    (unsigned long long)r->spec.capacity);
    if (r->spec.window > 0)
        output_text("filters          %u, one for each part of the window\n", r->spec.slices + 1);
    if (choice_keys(&r->spec) > 1)
        output_text("keys             %u of %s%s\n", choice_keys(&r->spec),
                    number_bytes(memory, (double)choice_key_bytes(&r->spec)),
                    r->spec.window > 0 ? ", for each of these" : "");
    if (r->spec.growth > 0)
        output_text("note             this is the first link; those that follow when it is full take further memory\n");
    if (!choice_can_be_made(&r->spec))
        output_text("note             one Redis key holds at most 2^32 bits: this cannot be created\n");
    if (r->spec.layout == HIBLOOM_LAYOUT_BLOCKED)
        output_text("note             an add is k commands; a look-up is one command, whatever k is\n");
    if (whole)
        put_rates(r);
    else
        put_choices(r);
    return EXIT_YES;
}

/* ---- positions ---------------------------------------------------------------- */

static void put_positions(const hibloom_spec *spec, const hibloom_position *at)
{
    const bool several_keys = choice_keys(spec) > 1;

    for (uint32_t i = 0; i < spec->hashes; i++) {
        if (i > 0)
            output_bytes(",", 1);
        if (several_keys)
            output_text("%u:", at[i].key);
        output_text("%llu", (unsigned long long)at[i].bit);
    }
}

/* The library has no words for it: there is no store. */
static void refuse_item(const hibloom_spec *spec, hibloom_status status)
{
    if (spec->bits == 0)
        complain("positions: how large it is, its config in Redis says; give capacity= and error=");
    else if (status == HIBLOOM_EINVAL && spec->codec != HIBLOOM_CODEC_BYTES)
        complain("positions: an item is no valid UTF-8, and the program that fills this filter has texts only "
                 "(codec=, chars=)");
    else
        complain("positions: %s", hibloom_strerror(status));
}

/* One line for each item, also for one without positions: line i belongs to item i. */
static bool put_batch(const hibloom_spec *spec, const struct input *in)
{
    hibloom_position at[HIBLOOM_HASHES_MAX];
    hibloom_status status;

    for (size_t i = 0; i < in->n; i++) {
        if (in->items[i].len > 0 || !spec->empty_excluded) {
            status = hibloom_positions(spec, in->items[i].data, in->items[i].len, at);
            if (status != HIBLOOM_OK) {
                refuse_item(spec, status);
                return false;
            }
            put_positions(spec, at);
        }
        output_bytes("\n", 1);
    }
    return output_flush();
}

int cmd_positions(const struct request *r)
{
    hibloom_spec spec;
    struct input in;
    enum input_status status;

    if (hibloom_spec_parse(&spec, r->operands[0]) != HIBLOOM_OK) {
        request_refuse_spec("positions", r->operands[0]);
        return EXIT_TROUBLE;
    }
    if (!input_open(&in, r->operands + 1, r->n_operands - 1, (r->given & OPTION_CRLF) != 0))
        return EXIT_TROUBLE;
    while ((status = input_next(&in)) == INPUT_BATCH)
        if (!put_batch(&spec, &in))
            break;
    input_close(&in);
    return status == INPUT_END ? EXIT_YES : EXIT_TROUBLE;
}
