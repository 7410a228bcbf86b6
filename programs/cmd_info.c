/* info: what a filter is and how full, for people or, as JSON, for programs.
 * Both come from one walk over the fields; a label is its key with blanks. */
#include "json.h"
#include "output.h"
#include "session.h"

#include <math.h>
#include <string.h>

struct report {
    bool json, begun;
};

static void put_key(struct report *r, const char *key)
{
    char label[32];
    size_t len = strlen(key);

    if (r->json) {
        output_text("%s  \"%s\": ", r->begun ? ",\n" : "{\n", key);
    } else {
        for (size_t i = 0; i <= len; i++)
            label[i] = key[i] == '_' ? ' ' : key[i];
        output_text("%s%-22s", r->begun ? "\n" : "", label);
    }
    r->begun = true;
}

static void put_string(struct report *r, const char *key, const char *value)
{
    put_key(r, key);
    if (r->json)
        json_put_string(value);
    else
        output_bytes(value, strlen(value));
}

static void put_whole(struct report *r, const char *key, uint64_t value)
{
    put_key(r, key);
    output_text("%llu", (unsigned long long)value);
}

static void put_real(struct report *r, const char *key, double value)
{
    put_key(r, key);
    output_text("%.*g", r->json ? 15 : 6, value);
}

/* For what is no number: JSON has neither infinity nor "not stated". */
static void put_null(struct report *r, const char *key, const char *words)
{
    put_key(r, key);
    output_text("%s", r->json ? "null" : words);
}

static void put_spec(struct report *r, const hibloom_spec *spec, const char *spec_text)
{
    put_string(r, "spec", spec_text);
    if (spec->capacity > 0)
        put_whole(r, "capacity", spec->capacity);
    else
        put_null(r, "capacity", "not stated");
    if (spec->error_rate > 0)
        put_real(r, "error_rate", spec->error_rate);
    else
        put_null(r, "error_rate", "not stated");
    put_whole(r, "bits", spec->bits);
    put_whole(r, "hashes", spec->hashes);
}

static void put_info(struct report *r, const hibloom_info *info)
{
    put_whole(r, "keys", info->keys);
    put_whole(r, "bits_set", info->bits_set);
    put_real(r, "fill", info->fill);
    if (isfinite(info->estimated_items))
        put_whole(r, "estimated_items", (uint64_t)round(info->estimated_items));
    else
        put_null(r, "estimated_items", "infinite");
    put_real(r, "estimated_error_rate", info->estimated_error_rate);
    put_whole(r, "bytes", info->bytes);
}

int cmd_info(const struct request *request)
{
    struct session s;
    struct report r = { .json = (request->given & OPTION_JSON) != 0 };
    hibloom_info info;
    char spec_text[HIBLOOM_SPEC_TEXT_SIZE];
    int result;

    if (!session_open(&s, request))
        return EXIT_TROUBLE;
    result = session_result(&s, hibloom_get_info(s.filter, &info));
    if (result == EXIT_YES)
        result = session_result(&s, hibloom_spec_format(hibloom_spec_of(s.filter), spec_text, sizeof spec_text));
    if (result == EXIT_YES) {
        put_string(&r, "name", s.name);
        put_spec(&r, hibloom_spec_of(s.filter), spec_text);
        put_info(&r, &info);
        output_text(r.json ? "\n}\n" : "\n");
    }
    session_close(&s);
    return result;
}
