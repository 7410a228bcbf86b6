/* info: what a filter is, and how full. */
#include "output.h"
#include "report.h"
#include "session.h"

static void put_spec(struct report *r, const hibloom_spec *spec, const char *spec_text)
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
    report_whole(r, "bits", spec->bits);
    report_whole(r, "hashes", spec->hashes);
}

static void put_use(struct report *r, double used)
{
    if (used < 0) {
        report_null(r, "used_percent", "not known without a capacity");
        report_null(r, "past_capacity", "not known without a capacity");
    } else {
        report_items(r, "used_percent", used * 100, "infinite");
        report_bool(r, "past_capacity", session_is_past_capacity(used));
    }
}

/* In whole seconds, rounded up: 0 is for what has expired. */
static void put_time_to_live(struct report *r, int64_t ttl_ms)
{
    if (ttl_ms < 0)
        report_null(r, "time_to_live_seconds", "none");
    else
        report_whole(r, "time_to_live_seconds", ((uint64_t)ttl_ms + 999) / 1000);
}

static void put_info(struct report *r, const hibloom_info *info, double used)
{
    report_whole(r, "keys", info->keys);
    report_whole(r, "bits_set", info->bits_set);
    report_real(r, "fill", info->fill);
    report_items(r, "estimated_items", info->estimated_items, "infinite");
    put_use(r, used);
    report_real(r, "estimated_error_rate", info->estimated_error_rate);
    report_whole(r, "bytes", info->bytes);
    put_time_to_live(r, info->ttl_ms);
}

int cmd_info(const struct request *request)
{
    struct session s;
    struct report r = {.json = (request->given & OPTION_JSON) != 0};
    hibloom_info info;
    char spec_text[HIBLOOM_SPEC_TEXT_SIZE];
    int result;

    if (!session_open(&s, request))
        return EXIT_TROUBLE;
    result = session_result(&s, hibloom_get_info(s.filter, &info));
    if (result == EXIT_YES)
        result = session_result(&s, hibloom_spec_format(hibloom_spec_of(s.filter), spec_text, sizeof spec_text));
    if (result == EXIT_YES) {
        report_string(&r, "name", s.name);
        put_spec(&r, hibloom_spec_of(s.filter), spec_text);
        put_info(&r, &info, session_used(hibloom_spec_of(s.filter), &info));
        report_end(&r);
    }
    session_close(&s);
    return result;
}
