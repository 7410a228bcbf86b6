/* plan and positions: what is known of a filter without a server. */
#include "command.h"
#include "input.h"
#include "number.h"
#include "output.h"

#include <string.h>

#define BEYOND_BEST 3u
#define REDIS_KEY_BITS ((uint64_t)1 << 32)

/* ---- plan --------------------------------------------------------------------- */

/* In Redis each key has the spec's text and a trailer behind its bits, and key 0
 * of several has a list of the keys. */
#define TRAILER_BYTES 92
#define LIST_ENTRY_BYTES 16

static uint32_t keys_of(const hibloom_spec *spec)
{
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? spec->hashes : spec->segments;
}

/* Of one key, without the list. All segments have the same number of bits. */
static uint64_t key_bytes(const hibloom_spec *spec)
{
    hibloom_spec seeded = *spec;
    char text[HIBLOOM_SPEC_TEXT_SIZE] = "";

    seeded.seeded = true; /* as the stored one is */
    if (hibloom_spec_format(&seeded, text, sizeof text) != HIBLOOM_OK)
        text[0] = '\0';
    return ((spec->bits + spec->segments - 1) / spec->segments + 7) / 8 + strlen(text) + TRAILER_BYTES;
}

static double bytes_of(const hibloom_spec *spec)
{
    const uint32_t keys = keys_of(spec);

    return (double)key_bytes(spec) * keys + (keys > 1 ? (double)LIST_ENTRY_BYTES * keys : 0);
}

static double percent_over(double value, double base)
{
    return (value / base - 1) * 100;
}

static void put_choice(const hibloom_spec *choice, const hibloom_spec *best, const hibloom_spec *chosen)
{
    char memory[NUMBER_SIZE];

    output_text("%6u %20llu %11s %+9.1f %% %12u %+9.0f %%   %.6g%s%s\n", choice->hashes,
                (unsigned long long)choice->bits, number_scaled(memory, bytes_of(choice), "B"),
                percent_over(bytes_of(choice), bytes_of(best)), choice->hashes,
                percent_over(choice->hashes, best->hashes), hibloom_spec_error_at(choice, choice->capacity),
                choice->hashes == best->hashes ? "  best" : "", choice->hashes == chosen->hashes ? "  chosen" : "");
}

/* The choices of k: those below the best one need more bits and fewer commands;
 * a few above it show that they gain nothing. */
static void put_choices(const struct request *r, const hibloom_spec *best)
{
    const hibloom_spec *chosen = &r->spec;
    hibloom_spec choice;

    output_text("\nhashes                 bits      memory     vs best commands/item     vs best   predicted error\n");
    for (uint32_t k = 1; k <= HIBLOOM_HASHES_MAX; k++)
        if ((k <= best->hashes + BEYOND_BEST || k == chosen->hashes) && request_size(r, k, &choice) == HIBLOOM_OK)
            put_choice(&choice, best, chosen);
}

int cmd_plan(const struct request *r)
{
    hibloom_spec best;
    char text[HIBLOOM_SPEC_TEXT_SIZE], memory[NUMBER_SIZE];
    hibloom_status status;

    if (request_size(r, 0, &best) != HIBLOOM_OK) { /* only where -k is given: else r->spec is that one */
        complain("plan: for so low an error rate, no number of hashes up to %u is the best", HIBLOOM_HASHES_MAX);
        return EXIT_TROUBLE;
    }
    status = hibloom_spec_format(&r->spec, text, sizeof text);
    if (status != HIBLOOM_OK) {
        complain("plan: %s", hibloom_strerror(status));
        return EXIT_TROUBLE;
    }
    output_text("spec             %s\n", text);
    output_text("memory           %s (%.0f bytes)\n", number_scaled(memory, bytes_of(&r->spec), "B"),
                bytes_of(&r->spec));
    output_text("predicted error  %.6g at %llu items\n", hibloom_spec_error_at(&r->spec, r->capacity),
                (unsigned long long)r->capacity);
    if (keys_of(&r->spec) > 1)
        output_text("keys             %u of %s\n", keys_of(&r->spec),
                    number_scaled(memory, (double)key_bytes(&r->spec), "B"));
    if (r->spec.bits / r->spec.segments > REDIS_KEY_BITS)
        output_text("note             one Redis key holds at most 2^32 bits: this cannot be created\n");
    if (r->spec.layout == HIBLOOM_LAYOUT_BLOCKED)
        output_text("note             an add is k commands; a look-up is one command, whatever k is\n");
    put_choices(r, &best);
    return EXIT_YES;
}

/* ---- positions ---------------------------------------------------------------- */

static void put_positions(const hibloom_spec *spec, const hibloom_position *at)
{
    const bool several_keys = keys_of(spec) > 1;

    for (uint32_t i = 0; i < spec->hashes; i++) {
        if (i > 0)
            output_bytes(",", 1);
        if (several_keys)
            output_text("%u:", at[i].key);
        output_text("%llu", (unsigned long long)at[i].bit);
    }
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
                complain("positions: %s", hibloom_strerror(status));
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
    if (!input_open(&in, r->operands + 1, r->n_operands - 1))
        return EXIT_TROUBLE;
    while ((status = input_next(&in)) == INPUT_BATCH)
        if (!put_batch(&spec, &in))
            break;
    input_close(&in);
    return status == INPUT_END ? EXIT_YES : EXIT_TROUBLE;
}
