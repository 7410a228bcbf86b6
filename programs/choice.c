/* The options of a command line as a text of the library, and the table of those that would do for -n and -p.
 *
 * The library chooses and computes. The command passes on what the user said, and prints what the library plans. */
#include "choice.h"
#include "number.h"
#include "output.h"

#include <stdio.h>
#include <string.h>

#define BEYOND_BEST 1u                      /* one hash more than the best number shows that it gains nothing */
#define REDIS_KEY_BYTES ((uint64_t)1 << 29) /* 2^32 bits */

static const char *const layouts[] = {"classic", "partitioned", "blocked"};

/* ---- Options -> text ---------------------------------------------------------------- */

static void append(char out[SPEC_SIZE], const char *name, const char *value)
{
    const size_t len = strlen(out);

    snprintf(out + len, SPEC_SIZE - len, " %s=%s", name, value);
}

void choice_spec_of(const struct request *r, const char *layout, uint32_t hashes, char out[SPEC_SIZE])
{
    char number[24];

    hibloom_sized(out, SPEC_SIZE, r->capacity, r->error_rate);
    if (hashes != 0) {
        snprintf(number, sizeof number, "%u", hashes);
        append(out, "hashes", number);
    }
    if (layout != NULL)
        append(out, "layout", layout);
    if ((r->given & OPTION_COUNTING) != 0)
        append(out, "counters", "4");
    if ((r->given & OPTION_GROW) != 0)
        append(out, "growth", "2");
    if ((r->given & OPTION_WINDOW) != 0) {
        snprintf(number, sizeof number, "%us", r->window);
        append(out, "window", number);
    }
}

void choice_spec(const struct request *r, char out[SPEC_SIZE])
{
    choice_spec_of(r, r->layout, r->hashes, out);
    if ((r->given & OPTION_PREFER) != 0)
        append(out, "new.prefer", r->prefer);
}

/* ---- The table ------------------------------------------------------------------------ */

double choice_adds(const struct request *r, const hibloom_plan *plan)
{
    return r->bitfield ? plan->adds_bitfield : plan->adds_setbit;
}

double choice_look_ups(const struct request *r, const hibloom_plan *plan)
{
    return r->bitfield ? plan->look_ups_bitfield : plan->look_ups_setbit;
}

bool choice_can_be_made(const hibloom_plan *plan)
{
    return plan->bytes / plan->keys <= REDIS_KEY_BYTES;
}

static bool is_layout(const char *spec, const char *layout)
{
    const char *value = spec_value(spec, "layout");

    return strncmp(value, layout, strlen(layout)) == 0;
}

struct table {
    const struct request *request;
    char chosen[SPEC_SIZE];              /* by the request, canonical */
    char picked[PREFERENCES][SPEC_SIZE]; /* by each preference, of all */
    double least;                        /* bytes */
};

static bool is_in(const char *spec, const char *layout, uint32_t hashes)
{
    return spec_number(spec, "hashes") == hashes && is_layout(spec, layout);
}

static void put_row(const struct table *t, const char *layout, uint32_t hashes)
{
    char spec[SPEC_SIZE], memory[NUMBER_SIZE], add[NUMBER_SIZE], add_new[NUMBER_SIZE], look_up[NUMBER_SIZE];
    hibloom_plan plan;

    choice_spec_of(t->request, layout, hashes, spec);
    /* Filters that cannot be made are shown only in the layout of the request. */
    if (hibloom_get_plan(spec, 0, &plan, sizeof plan) != HIBLOOM_OK ||
        (!choice_can_be_made(&plan) && !is_layout(t->chosen, layout)))
        return;
    output_text("%-11s %3u %10s %+6.0f %%%7s%7s%7s", layout, hashes, number_bytes(memory, (double)plan.bytes),
                ((double)plan.bytes / t->least - 1) * 100, number_rough(add, choice_adds(t->request, &plan)),
                number_rough(add_new, plan.adds_new), number_rough(look_up, choice_look_ups(t->request, &plan)));
    for (int i = 0; i < PREFERENCES; i++)
        if (is_in(t->picked[i], layout, hashes))
            output_text(" %s", request_preference(i));
    output_text("%s\n", is_in(t->chosen, layout, hashes) ? " chosen" : "");
}

/* Those up to the k that needs the fewest bits, and the k of the request. */
static void put_layout(const struct table *t, const char *layout)
{
    char spec[SPEC_SIZE];
    hibloom_plan best;

    choice_spec_of(t->request, layout, 0, spec);
    if (hibloom_get_plan(spec, 0, &best, sizeof best) != HIBLOOM_OK)
        best.hashes = 0;
    for (uint32_t k = 1; k <= HIBLOOM_HASHES_MAX; k++)
        if (k == t->request->hashes || (best.hashes > 0 && k <= best.hashes + BEYOND_BEST))
            put_row(t, layout, k);
}

/* False: no filter of this size can be made. */
static bool find_picks(struct table *t)
{
    const struct request *r = t->request;
    char spec[SPEC_SIZE];
    hibloom_plan plan;

    for (int i = 0; i < PREFERENCES; i++) {
        choice_spec_of(r, NULL, 0, spec);
        append(spec, "new.prefer", request_preference(i));
        if (hibloom_spec_check(spec, t->picked[i], SPEC_SIZE) != HIBLOOM_OK ||
            hibloom_get_plan(spec, 0, &plan, sizeof plan) != HIBLOOM_OK)
            return false;
        if (i == 0) /* memory */
            t->least = (double)plan.bytes;
    }
    choice_spec(r, spec);
    return hibloom_spec_check(spec, t->chosen, SPEC_SIZE) == HIBLOOM_OK;
}

static void put_streams(const struct table *t)
{
    const char *add = spec_value(t->picked[PREFER_ADD], "layout");
    const bool near = spec_number(t->chosen, "counters") == 0 && spec_value(t->chosen, "window") == NULL;

    output_text("\nFor which stream:\n"
                "  large calls of look-ups, or of adds that ask nothing      classic, the default\n"
                "  adds of fresh items that ask what is new (add, uniq)      %.*s k=%u: --prefer add\n%s",
                (int)strcspn(add, " "), add, (unsigned)spec_number(t->picked[PREFER_ADD], "hashes"),
                near ? "  half of the items or more are repeats                     the near cache: --near\n" : "");
}

/* Fewer hashes need more bits, and do more items a second. */
void choice_put_table(const struct request *r)
{
    struct table t = {.request = r};

    if (!find_picks(&t))
        return;
    output_text("\n                                      items a second\n"
                "layout        k     memory vs least    add is_new lookup\n");
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        put_layout(&t, layouts[i]);
    output_text("\nItems a second are computed, for one server and calls of 1,000 items; hibloom bench\n"
                "measures. At the end of a row: what --prefer picks (add: for smaller calls); chosen:\n"
                "what these options make. 1 MB is 2^20 bytes.\n");
    put_streams(&t);
}
