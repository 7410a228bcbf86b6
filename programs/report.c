/* Named values on standard output, for people or, as JSON, for programs. The
 * same calls print both; for people, a key's underscores are blanks. */
#include "report.h"
#include "json.h"
#include "output.h"

#include <math.h>
#include <string.h>

static void put_key(struct report *r, const char *key)
{
    char label[32];
    size_t len = strlen(key);

    if (r->json) {
        output_text(r->one_line ? "%s\"%s\": " : "%s\n  \"%s\": ", r->begun ? (r->one_line ? ", " : ",") : "{", key);
    } else {
        for (size_t i = 0; i <= len; i++)
            label[i] = key[i] == '_' ? ' ' : key[i];
        output_text("%s%-22s", r->begun ? "\n" : "", label);
    }
    r->begun = true;
}

void report_string(struct report *r, const char *key, const char *value)
{
    put_key(r, key);
    if (r->json)
        json_put_string(value);
    else
        output_bytes(value, strlen(value));
}

void report_whole(struct report *r, const char *key, uint64_t value)
{
    put_key(r, key);
    output_text("%llu", (unsigned long long)value);
}

void report_real(struct report *r, const char *key, double value)
{
    put_key(r, key);
    output_text("%.*g", r->json ? 15 : 6, value);
}

void report_bool(struct report *r, const char *key, bool value)
{
    put_key(r, key);
    output_text("%s", r->json ? (value ? "true" : "false") : (value ? "yes" : "no"));
}

void report_null(struct report *r, const char *key, const char *words)
{
    put_key(r, key);
    output_text("%s", r->json ? "null" : words);
}

void report_items(struct report *r, const char *key, double items, const char *words)
{
    if (isfinite(items))
        report_whole(r, key, (uint64_t)round(items));
    else
        report_null(r, key, words);
}

void report_end(struct report *r)
{
    output_text(r->json && !r->one_line ? "\n}\n" : r->json ? "}\n" : "\n");
}
