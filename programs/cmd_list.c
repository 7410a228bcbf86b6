/* list: the filters on a server. */
#include "describe.h"
#include "gauges.h"
#include "output.h"
#include "session.h"

#include <stdio.h>

struct list {
    struct session s;
    bool json, prometheus;
    bool stopped; /* before the last filter */
    struct gauges gauges;
    int result;
};

static void put_name(const char *name)
{
    char plain[HIBLOOM_NAME_MAX + 1];

    snprintf(plain, sizeof plain, "%s", name);
    output_make_plain(plain);
    output_text("%s\n", plain);
}

static void put_row(const char *name, const hibloom *filter, const hibloom_info *info)
{
    char size[NUMBER_SIZE], used[NUMBER_SIZE], life[NUMBER_SIZE];

    output_text("%14s  %7.2f %%  %9s  %12s  %-8s  ", number_bytes(size, (double)info->bytes), info->fill * 100,
                describe_used(used, filter, info), describe_life(life, info), spec_kind(hibloom_spec_of(filter)));
    put_name(name);
}

static void forget(struct list *list)
{
    hibloom_close(list->s.filter);
    list->s.filter = NULL; /* a hibloom_open that fails leaves it as it is */
}

static hibloom_status count(struct list *list, const char *name, hibloom_info *info)
{
    forget(list);
    const hibloom_status status = hibloom_open(&list->s.filter, list->s.store, name, NULL);

    return status == HIBLOOM_OK ? hibloom_get_info(list->s.filter, info, sizeof *info) : status;
}

/* One that went meanwhile is left out, and one that was replaced is counted once more. One that is damaged is complained
 * of. Where the server is the trouble there is no use in going on. */
static bool put_filter(const char *name, void *data)
{
    struct list *list = data;
    hibloom_info info = {0};

    list->s.name = name;
    hibloom_status status = count(list, name, &info);
    if (status == HIBLOOM_EMISMATCH)
        status = count(list, name, &info);
    if (status == HIBLOOM_OK && list->prometheus && !gauges_note(&list->gauges, name, list->s.filter, &info)) {
        status = HIBLOOM_ENOMEM;
        list->result = EXIT_TROUBLE;
    } else if (status == HIBLOOM_OK && list->prometheus) {
        /* it is printed behind the last one */
    } else if (status == HIBLOOM_OK && list->json) {
        describe(&(struct report){.json = true, .one_line = true}, name, list->s.filter, &info);
    } else if (status == HIBLOOM_OK) {
        put_row(name, list->s.filter, &info);
    } else if (status != HIBLOOM_ENOTFOUND) {
        list->result = session_result(&list->s, status);
        list->gauges.unreadable++;
    }
    forget(list);
    list->s.name = NULL;
    list->stopped = !output_flush() || (status != HIBLOOM_OK && status < HIBLOOM_ENOTFOUND);
    return !list->stopped;
}

int cmd_list(const struct request *r)
{
    struct list list = {
        .json = (r->given & OPTION_JSON) != 0, .prometheus = (r->given & OPTION_PROMETHEUS) != 0, .result = EXIT_YES};

    if (list.json && list.prometheus) {
        complain("list: give --json or --prometheus, not both");
        return EXIT_TROUBLE;
    }
    if (!session_connect(&list.s, r))
        return EXIT_TROUBLE;
    list.s.name = NULL;
    if (!list.json && !list.prometheus)
        output_text("%14s  %9s  %9s  %12s  %-8s  %s\n", "size (KB=2^10)", "fill", "used", "time to live", "kind",
                    "name");
    const hibloom_status status = hibloom_list(list.s.store, r->n_operands > 0 ? r->operands[0] : NULL, put_filter,
                                               &list);
    if (session_result(&list.s, status) == EXIT_TROUBLE)
        list.result = EXIT_TROUBLE;
    else if (list.prometheus && !list.stopped)
        gauges_put(&list.gauges);
    gauges_free(&list.gauges);
    session_close(&list.s);
    return list.result;
}
