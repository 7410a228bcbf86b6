/* The filters of a server in the text format of Prometheus, for `list --prometheus`.
 *
 * The format wants all samples of a metric in one place, and each series once. So the filters are kept until the last
 * one is known. They are sorted then, since a server may list a filter twice. */
#include "gauges.h"
#include "session.h"
#include "json.h"
#include "output.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES, FILL, USED, ERROR_RATE, TIME_TO_LIVE, LINKS, METRICS };

static const struct {
    const char *name, *help;
} metrics[METRICS] = {
    [BYTES] = {"hibloom_filter_bytes", "Bytes that the filter takes, as stored."},
    [FILL] = {"hibloom_filter_fill_ratio", "Bits that are set, divided by all bits."},
    [USED] = {"hibloom_filter_used_ratio",
              "Items divided by the capacity, of the fullest slice of a window. 1 is full. "
              "Filters that grow or state no capacity have none."},
    [ERROR_RATE] = {"hibloom_filter_error_ratio", "Estimated chance of a false positive now."},
    [TIME_TO_LIVE] = {"hibloom_filter_time_to_live_seconds",
                      "Time until Redis removes the filter. Filters that stay have none."},
    [LINKS] = {"hibloom_filter_links", "Links of a growing filter, slices of a window; else 1."},
};

struct gauges_row {
    char *labels;
    double values[METRICS]; /* not a number: left out */
};

/* name="seen",kind="plain". A label is UTF-8, and the name of a key is any bytes. A byte that is part of no character
 * becomes U+FFFD and its value, so no escaped name is the same. NULL: no memory. */
static char *make_labels(const char *name, const char *kind)
{
    char *labels = malloc(5 * strlen(name) + strlen(kind) + sizeof "name=\"\",kind=\"\""), *out = labels;
    size_t len;

    if (labels == NULL)
        return NULL;
    out += sprintf(out, "name=\"");
    for (const char *p = name; *p != '\0'; p += len > 0 ? len : 1) {
        len = json_character_length((const unsigned char *)p);
        if (len == 0)
            out += sprintf(out, "\xef\xbf\xbd%02x", (unsigned char)*p);
        else if (*p == '\n')
            out += sprintf(out, "\\n");
        else
            out += sprintf(out, "%s%.*s", *p == '"' || *p == '\\' ? "\\" : "", (int)len, p);
    }
    sprintf(out, "\",kind=\"%s\"", kind);
    return labels;
}

bool gauges_note(struct gauges *g, const char *name, const hibloom *filter, const hibloom_info *info)
{
    const char *spec = hibloom_spec_of(filter);
    struct gauges_row *rows = realloc(g->rows, (g->n + 1) * sizeof *rows);
    char *labels = rows != NULL ? make_labels(name, spec_kind(spec)) : NULL;

    if (rows != NULL)
        g->rows = rows;
    if (labels == NULL) {
        complain("list: %s", strerror(ENOMEM));
        return false;
    }
    const double used = session_used(spec, info);
    g->rows[g->n++] = (struct gauges_row){
        .labels = labels,
        .values = {[BYTES] = (double)info->bytes,
                   [FILL] = info->fill,
                   [USED] = used < 0 ? (double)NAN : used,
                   [ERROR_RATE] = info->estimated_error_rate,
                   [TIME_TO_LIVE] = info->ttl_ms < 0 ? (double)NAN : (double)info->ttl_ms / 1000,
                   [LINKS] = (double)info->links}};
    return true;
}

static int compare_rows(const void *a, const void *b)
{
    return strcmp(((const struct gauges_row *)a)->labels, ((const struct gauges_row *)b)->labels);
}

/* Sorts them, and leaves each once. */
static void sort_rows(struct gauges *g)
{
    size_t kept = 0;

    if (g->n > 0)
        qsort(g->rows, g->n, sizeof *g->rows, compare_rows);
    for (size_t i = 0; i < g->n; i++)
        if (kept > 0 && compare_rows(&g->rows[kept - 1], &g->rows[i]) == 0)
            free(g->rows[i].labels);
        else
            g->rows[kept++] = g->rows[i];
    g->n = kept;
}

static void put_metric(const char *name, const char *help)
{
    output_text("# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void put_total(const char *name, const char *help, double value)
{
    put_metric(name, help);
    output_text("%s %.15g\n", name, value);
}

void gauges_put(struct gauges *g)
{
    double sums[METRICS] = {0};

    sort_rows(g);
    for (size_t m = 0; m < METRICS; m++) {
        put_metric(metrics[m].name, metrics[m].help);
        for (size_t i = 0; i < g->n; i++) {
            const double value = g->rows[i].values[m];
            sums[m] += value;
            if (isinf(value))
                output_text("%s{%s} +Inf\n", metrics[m].name, g->rows[i].labels);
            else if (!isnan(value))
                output_text("%s{%s} %.15g\n", metrics[m].name, g->rows[i].labels, value);
        }
    }
    put_total("hibloom_filters", "Filters.", (double)g->n);
    put_total("hibloom_filters_bytes", "Bytes that all filters take together.", sums[BYTES]);
    put_total("hibloom_filters_links", "Links of all filters together.", sums[LINKS]);
    put_total("hibloom_filters_unreadable", "Filters that are damaged.", (double)g->unreadable);
}

void gauges_free(struct gauges *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->rows[i].labels);
    free(g->rows);
    *g = (struct gauges){0};
}
