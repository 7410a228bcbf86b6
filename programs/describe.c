/* A filter's kind, size and fill as named values. See describe.h. */
#include "describe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *describe_kind(const hibloom_spec *spec)
{
    return spec->counters > 0 ? "counting" : spec->growth > 0 ? "growing" : spec->window > 0 ? "window" : "plain";
}

/* The bits of all links or slices; the spec has the bits of the first. If a filter has grown, its bits follow from
 * the fill, unless this is 0. */
static void put_bits(struct report *r, const hibloom_spec *spec, const hibloom_info *info)
{
    if (spec->window > 0)
        report_whole(r, "bits", spec->bits * (spec->slices + 1));
    else if (spec->growth == 0 || info->keys <= (spec->segments > 0 ? spec->segments : 1))
        report_whole(r, "bits", spec->bits);
    else if (info->fill > 0)
        report_whole(r, "bits", (uint64_t)round((double)info->bits_set / info->fill));
    else
        report_null(r, "bits", "-");
}

static void put_spec(struct report *r, const hibloom_spec *spec, const char *spec_text, const hibloom_info *info)
{
    report_string(r, "spec", spec_text);
    if (spec->capacity > 0)
        report_whole(r, "capacity", spec->capacity);
    else
        report_null(r, "capacity", "not stated");
    if (spec->error_rate > 0)
        report_real(r, "error_rate", spec->error_rate);
    else
        report_null(r, "error_rate", "not stated");
    put_bits(r, spec, info);
    report_whole(r, "hashes", spec->hashes);
}

static void put_use(struct report *r, const hibloom_spec *spec, double used)
{
    if (used < 0 && spec->growth > 0) {
        report_null(r, "used_percent", "-");
        report_null(r, "past_capacity", "-");
    } else if (used < 0) {
        report_null(r, "used_percent", "not known without a capacity");
        report_null(r, "past_capacity", "not known without a capacity");
    } else {
        report_items(r, "used_percent", used * 100, "infinite");
        report_bool(r, "past_capacity", session_is_past_capacity(used));
    }
}

/* In whole seconds, rounded up: 0 is for what has expired. */
static uint64_t life_seconds(const hibloom_info *info)
{
    return ((uint64_t)info->ttl_ms + 999) / 1000;
}

static void put_time_to_live(struct report *r, const hibloom_info *info)
{
    if (info->ttl_ms < 0)
        report_null(r, "time_to_live_seconds", "none");
    else
        report_whole(r, "time_to_live_seconds", life_seconds(info));
}

const char *describe_life(char out[NUMBER_SIZE], const hibloom_info *info)
{
    if (info->ttl_ms < 0)
        return strcpy(out, "none");
    snprintf(out, NUMBER_SIZE, "%llu s", (unsigned long long)life_seconds(info));
    return out;
}

const char *describe_used(char out[NUMBER_SIZE], const hibloom *filter, const hibloom_info *info)
{
    const double used = session_used(hibloom_spec_of(filter), info);

    if (used < 0)
        return strcpy(out, "-");
    snprintf(out, NUMBER_SIZE, "%.1f %%", used * 100);
    return out;
}

static void put_info(struct report *r, const hibloom_spec *spec, const hibloom_info *info)
{
    report_whole(r, "keys", info->keys);
    report_whole(r, "bits_set", info->bits_set);
    report_real(r, "fill", info->fill);
    report_items(r, "estimated_items", info->estimated_items, "infinite");
    put_use(r, spec, session_used(spec, info));
    report_real(r, "estimated_error_rate", info->estimated_error_rate);
    report_whole(r, "bytes", info->bytes);
    put_time_to_live(r, info);
}

hibloom_status describe(struct report *r, const char *name, const hibloom *filter, const hibloom_info *info)
{
    const hibloom_spec *spec = hibloom_spec_of(filter);
    char spec_text[HIBLOOM_SPEC_TEXT_SIZE];
    const hibloom_status status = hibloom_spec_format(spec, spec_text, sizeof spec_text);

    if (status != HIBLOOM_OK)
        return status;
    report_string(r, "name", name);
    report_string(r, "kind", describe_kind(spec));
    put_spec(r, spec, spec_text, info);
    put_info(r, spec, info);
    report_end(r);
    return HIBLOOM_OK;
}
