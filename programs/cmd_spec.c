/* plan and positions: facts of a filter that need no server. */
#include "choice.h"
#include "input.h"
#include "number.h"
#include "output.h"

#include <string.h>

/* ---- plan --------------------------------------------------------------------- */

/* The rates of a spec that was given whole. */
static void put_rates(const struct request *r, const hibloom_plan *plan)
{
    char add[NUMBER_SIZE], add_new[NUMBER_SIZE], look_up[NUMBER_SIZE];

    output_text("items a second   add %s, is_new %s, lookup %s; computed, for one server and calls of 1,000 items\n",
                number_rough(add, choice_adds(r, plan)), number_rough(add_new, plan->adds_new),
                number_rough(look_up, choice_look_ups(r, plan)));
}

static void put_keys(const char *spec, const hibloom_plan *plan)
{
    const uint64_t filters = spec_filters(spec);
    char memory[NUMBER_SIZE];

    if (filters > 1)
        output_text("filters          %llu, one for each part of the window\n", (unsigned long long)filters);
    if (plan->keys > filters && spec_value(spec, "keys") == NULL)
        output_text("keys             %llu of %s%s\n", (unsigned long long)(plan->keys / filters),
                    number_bytes(memory, (double)plan->bytes / (double)plan->keys),
                    filters > 1 ? ", for each of these" : "");
    else if (plan->keys > filters) /* another library's are not of one size */
        output_text("keys             %llu\n", (unsigned long long)plan->keys);
}

static void put_notes(const char *spec, const hibloom_plan *plan)
{
    const char *layout = spec_value(spec, "layout");

    if (plan->max_links > 1)
        output_text(
            "note             this is the first link, at half of the error rate; at most %llu links hold %llu items\n",
            (unsigned long long)plan->max_links, (unsigned long long)plan->max_capacity);
    if (!choice_can_be_made(plan))
        output_text("note             one Redis key holds at most 2^32 bits: this cannot be created\n");
    if (layout != NULL && strncmp(layout, "blocked", 7) == 0)
        output_text("note             an add is k commands; a look-up is one command, whatever k is\n");
}

int cmd_plan(const struct request *r)
{
    char spec[SPEC_SIZE], memory[NUMBER_SIZE];
    hibloom_plan plan;
    hibloom_status status = hibloom_spec_check(r->spec, spec, sizeof spec);

    if (status == HIBLOOM_OK && spec_value(spec, "bits") == NULL) {
        complain("plan: how large it is, its config in Redis says; give capacity= and error=");
        return EXIT_TROUBLE;
    }
    if (status == HIBLOOM_OK)
        status = hibloom_get_plan(r->spec, spec_number(spec, "capacity"), &plan, sizeof plan);
    if (status != HIBLOOM_OK) {
        complain("plan: %s", hibloom_strerror(status));
        return EXIT_TROUBLE;
    }
    output_text("spec             %s\n", spec);
    output_text("memory           %s (%llu bytes)\n", number_bytes(memory, (double)plan.bytes),
                (unsigned long long)plan.bytes);
    if (plan.capacity > 0)
        output_text("predicted error  %.6g at %llu items\n", plan.error_at_items, (unsigned long long)plan.capacity);
    put_keys(spec, &plan);
    put_notes(spec, &plan);
    if ((r->given & OPTION_S) != 0)
        put_rates(r, &plan);
    else
        choice_put_table(r);
    return EXIT_YES;
}

/* ---- positions ---------------------------------------------------------------- */

struct positions {
    char spec[SPEC_SIZE];
    bool several_keys, empty_excluded;
};

static void put_positions(const struct positions *p, const hibloom_position *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            output_bytes(",", 1);
        if (p->several_keys)
            output_text("%llu:", (unsigned long long)at[i].key);
        output_text("%llu", (unsigned long long)at[i].bit);
    }
}

/* The library has no words for it: there is no store. */
static void refuse_item(const struct positions *p, hibloom_status status)
{
    if (spec_value(p->spec, "bits") == NULL)
        complain("positions: how large it is, its config in Redis says; give capacity= and error=");
    else if (spec_wants_seed(p->spec))
        complain("positions: the spec has no seed=, and each filter draws its own: give that of the filter");
    else if (status == HIBLOOM_EINVAL && spec_value(p->spec, "codec") != NULL)
        complain("positions: an item is no valid UTF-8, and the program that fills this filter has texts only "
                 "(codec=, chars=)");
    else
        complain("positions: %s", hibloom_strerror(status));
}

/* One line for each item, also for one without positions: line i belongs to item i. */
static bool put_batch(const struct positions *p, const struct input *in)
{
    hibloom_position at[HIBLOOM_HASHES_MAX];
    hibloom_status status;
    size_t n;

    for (size_t i = 0; i < in->n; i++) {
        if (in->items[i].len > 0 || !p->empty_excluded) {
            status = hibloom_positions(p->spec, in->items[i].data, in->items[i].len, at, HIBLOOM_HASHES_MAX, &n);
            if (status != HIBLOOM_OK) {
                refuse_item(p, status);
                return false;
            }
            put_positions(p, at, n);
        }
        output_bytes("\n", 1);
    }
    return output_flush();
}

int cmd_positions(const struct request *r)
{
    struct positions p;
    struct input in;
    enum input_status status;
    hibloom_plan plan;

    if (hibloom_spec_check(r->operands[0], p.spec, sizeof p.spec) != HIBLOOM_OK) {
        request_refuse_spec("positions", r->operands[0], p.spec);
        return EXIT_TROUBLE;
    }
    p.several_keys = hibloom_get_plan(p.spec, 0, &plan, sizeof plan) == HIBLOOM_OK && plan.keys > spec_filters(p.spec);
    p.empty_excluded = spec_has_empty_excluded(p.spec);
    if (!input_open(&in, r->operands + 1, r->n_operands - 1, (r->given & OPTION_CRLF) != 0))
        return EXIT_TROUBLE;
    while ((status = input_next(&in)) == INPUT_BATCH)
        if (!put_batch(&p, &in))
            break;
    input_close(&in);
    return status == INPUT_END ? EXIT_YES : EXIT_TROUBLE;
}
