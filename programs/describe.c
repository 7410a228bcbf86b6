/* A filter's kind, size and fill as named values. See describe.h. */
#include "describe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bits of all links or slices; the spec has the bits of the first. If a filter has grown, its bits follow from
 * the fill, unless this is 0. */
static void put_bits(struct report *r, const char *spec, const hibloom_info *info)
{
    if (spec_value(spec, "growth") == NULL || info->links == 1)
        report_whole(r, "bits", spec_number(spec, "bits") * spec_filters(spec));
    else if (info->fill > 0)
        report_whole(r, "bits", (uint64_t)round((double)info->bits_set / info->fill));
    else
        report_null(r, "bits", "-");
}

static void put_spec(struct report *r, const char *spec, const hibloom_info *info)
{
    const char *error_rate = spec_value(spec, "error");

    report_string(r, "spec", spec);
    if (info->capacity > 0)
        report_whole(r, "capacity", info->capacity);
    else
        report_null(r, "capacity", "not stated");
    if (error_rate != NULL)
        report_real(r, "error_rate", strtod(error_rate, NULL));
    else
        report_null(r, "error_rate", "not stated");
    put_bits(r, spec, info);
    report_whole(r, "hashes", spec_number(spec, "hashes"));
}

static void put_use(struct report *r, const char *spec, double used)
{
    if (used < 0 && spec_value(spec, "growth") != NULL) {
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

static void put_info(struct report *r, const char *spec, const hibloom_info *info)
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

void describe(struct report *r, const char *name, const hibloom *filter, const hibloom_info *info)
{
    const char *spec = hibloom_spec_of(filter);

    report_string(r, "name", name);
    report_string(r, "kind", spec_kind(spec));
    put_spec(r, spec, info);
    put_info(r, spec, info);
    report_end(r);
}
