/* texts.c: what a spec text means, without any store: its canonical form, its size, its speed, where items lie. */
#include "base/number.h"
#include "filter/file.h"
#include "filter/handle.h"
#include "hash/hash.h"
#include "redis/cost.h"
#include "redis/prefer.h"
#include "redis/record.h"
#include "spec/positions.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *hibloom_sized(char *buf, size_t size, uint64_t capacity, double error_rate)
{
    char rate[NUMBER_DOUBLE_SIZE];

    if (!isfinite(error_rate) || number_format_double(rate, error_rate) != HIBLOOM_OK ||
        (size_t)snprintf(buf, size, "capacity=%" PRIu64 " error=%s", capacity, rate) >= size) {
        if (size == 0)
            return "";
        buf[0] = '\0'; /* which no call accepts */
    }
    return buf;
}

/* A text that fixes a whole filter, as it would be made. */
static hibloom_status read_whole(struct request *request, const char *text, struct error *error)
{
    hibloom_status status = request_read(request, text, error);

    if (status == HIBLOOM_OK)
        status = request_check(request, error);
    if (status == HIBLOOM_OK)
        status = prefer_pick(request, error);
    return status;
}

hibloom_status hibloom_spec_check(const char *spec, char *buf, size_t size)
{
    struct request request AT_END(request_wipe);
    struct error error;
    const hibloom_status status = read_whole(&request, spec, &error);

    if (status == HIBLOOM_OK)
        return spec_format_said(&request.spec, buf, size);
    snprintf(buf, size, "%s", error.words);
    return status;
}

hibloom_status hibloom_positions(const char *spec, const void *item, size_t len, hibloom_position *out, size_t room,
                                 size_t *n)
{
    struct request request AT_END(request_wipe);
    struct error error; /* functions on texts have no words */
    const struct spec *own = &request.spec;
    hibloom_status status = read_whole(&request, spec, &error);

    if (status != HIBLOOM_OK)
        return status;
    if (spec_lacks_seed(own))
        return HIBLOOM_EINVAL;
    if (room < own->hashes)
        return HIBLOOM_ERANGE;
    status = positions_of(own, item, len, out);
    if (status == HIBLOOM_OK)
        *n = own->hashes;
    return status;
}

hibloom_status hibloom_file_spec(const char *path, char *buf, size_t size)
{
    struct error error; /* functions on texts have no words */
    struct filter_file file AT_END(filter_file_close);
    const hibloom_status status = filter_file_open(&file, path, &error);

    return status == HIBLOOM_OK ? spec_format_said(&file.spec, buf, size) : status;
}

/* ---- A plan ---------------------------------------------------------------- */

/* The bytes of a link as it is stored; bare bitmaps have nothing behind their bits. */
static uint64_t link_bytes(const struct spec *spec)
{
    const uint32_t keys = spec_keys(spec);
    char text[SPEC_TEXT_SIZE] AT_END(spec_text_wipe) = "";
    struct spec stored AT_END(spec_wipe) = *spec;

    if (spec->keys != KEYS_OWN)
        return spec_is_spanning(spec) ? (spec->bits + 7) / 8 : spec_bitmap_bytes(spec) * keys;
    stored.seeded = hash_table[spec->hash].seeding == SEEDING_KEY;
    (void)spec_format(&stored, text, sizeof text);
    return (spec_bitmap_bytes(spec) + strlen(text) + RECORD_TRAILER) * keys + record_list_bytes(0, keys);
}

/* A growing filter ends at its last link, or at the last one that fits. */
static void plan_growth(hibloom_plan *plan, const struct spec *spec)
{
    struct spec link;

    plan->max_links = 1;
    plan->max_capacity = spec->capacity;
    while (spec->growth != 0 && plan->max_links < SPEC_LINKS_MAX &&
           spec_link_size(&link, spec, (uint32_t)plan->max_links) == HIBLOOM_OK &&
           spec_bitmap_bytes(&link) < SPEC_STRING_BITS / 8 - RECORD_END) {
        if (__builtin_add_overflow(plan->max_capacity, link.capacity, &plan->max_capacity))
            plan->max_capacity = UINT64_MAX;
        plan->max_links++;
    }
}

static void plan_window(hibloom_plan *plan, const struct spec *spec)
{
    struct spec slice AT_END(spec_wipe);

    for (uint32_t i = 1; i <= spec->slices; i++)                    /* without a window there are none */
        if (spec_link(&slice, spec, i, UINT64_MAX) == HIBLOOM_OK) { /* nearly all ids have all digits */
            plan->bits += spec_all_bits(&slice);
            plan->bytes += link_bytes(&slice);
            plan->keys += spec_keys(&slice);
        }
}

static hibloom_status plan_rates(hibloom_plan *plan, const struct spec *spec)
{
    struct rates setbit, bitfield;
    hibloom_status status = cost_rates(spec, false, &setbit);

    if (status == HIBLOOM_OK)
        status = cost_rates(spec, true, &bitfield);
    if (status != HIBLOOM_OK)
        return status;
    plan->adds_setbit = setbit.adds;
    plan->adds_bitfield = bitfield.adds;
    plan->adds_new = setbit.adds_new;
    plan->look_ups_setbit = setbit.look_ups;
    plan->look_ups_bitfield = bitfield.look_ups;
    return HIBLOOM_OK;
}

hibloom_status hibloom_get_plan(const char *spec, uint64_t items, hibloom_plan *out, size_t size)
{
    struct request request AT_END(request_wipe);
    struct error error; /* functions on texts have no words */
    const struct spec *own = &request.spec;
    hibloom_plan plan = {0};
    hibloom_status status = read_whole(&request, spec, &error);

    if (status == HIBLOOM_OK)
        status = plan_rates(&plan, own); /* EINVAL: it has no size yet */
    if (status != HIBLOOM_OK)
        return status;
    plan.bits = spec_all_bits(own);
    plan.hashes = own->hashes;
    plan.keys = spec_keys(own);
    plan.bytes = link_bytes(own);
    plan.capacity = own->capacity;
    plan.error_rate = own->error_rate;
    plan.error_at_items = spec_error_at(own, items);
    plan_growth(&plan, own);
    plan_window(&plan, own);
    filter_fill(out, size, &plan, sizeof plan);
    return HIBLOOM_OK;
}
