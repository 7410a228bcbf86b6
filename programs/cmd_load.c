/* load: millions of items. They are added to a filter in this process' memory. That is merged
 * into the one on the server. So the bits of the filter are sent once, and no commands for each
 * item. A growing one that has items already gets them as add would send them. With --replace
 * the one on the server is new, and then takes the place of the old one. */
#include "aside.h"
#include "input.h"
#include "number.h"
#include "output.h"
#include "progress.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

/* An empty filter in memory. A bare bitmap's is bare, too: else a seed would be drawn for a spec without one. */
static bool open_in_memory(struct session *memory, const char *name, const char *spec, bool bare)
{
    hibloom_status status;

    *memory = (struct session){.name = name};
    status = hibloom_connect(&memory->store, "memory:", NULL);
    if (status == HIBLOOM_OK)
        status = (bare ? hibloom_attach : hibloom_open)(&memory->filter, memory->store, memory->name, spec);
    if (session_result(memory, status) == EXIT_YES)
        return true;
    session_close(memory);
    return false;
}

/* Adds the lines of standard input. *items: their number, without the excluded ones. */
static int add_lines(const struct session *s, const struct request *r, uint64_t *items)
{
    const bool empty_excluded = spec_has_empty_excluded(hibloom_spec_of(s->filter));
    enum input_status status;
    struct input in;

    *items = 0;
    if (!input_open(&in, NULL, 0, (r->given & OPTION_CRLF) != 0))
        return EXIT_TROUBLE;
    while ((status = input_next(&in)) == INPUT_BATCH) {
        if (session_result(s, hibloom_add_many(s->filter, in.items, in.n, NULL)) == EXIT_TROUBLE)
            break;
        for (size_t i = 0; i < in.n; i++)
            *items += in.items[i].len > 0 || !empty_excluded;
    }
    input_close(&in);
    return status == INPUT_END ? EXIT_YES : EXIT_TROUBLE;
}

static void say_loaded(uint64_t items, double started)
{
    const double seconds = seconds_now() - started;
    char rate[NUMBER_SIZE];

    output_text("loaded %llu in %.2f s, %s/s\n", (unsigned long long)items, seconds,
                number_scaled(rate, (double)items / seconds));
}

/* Does it grow, and have items already? Links that are merged into its own would make these overfull. */
static bool grows_on(const struct session *s)
{
    hibloom_info info;

    return spec_value(hibloom_spec_of(s->filter), "growth") != NULL &&
           hibloom_get_info(s->filter, &info, sizeof info) == HIBLOOM_OK && info.bits_set > 0;
}

static bool refuse_window(const char *name, const char *spec)
{
    const bool is_window = spec_value(spec, "window") != NULL;

    if (is_window)
        complain("%s: load merges, and a sliding window takes no merge: use hibloom add", name);
    return is_window;
}

/* Beside rueidis' bitmap lies a counter of its items. */
static bool refuse_counted(const char *name, const char *spec)
{
    const char *keys = spec_value(spec, "keys");
    const bool is_counted = keys != NULL && strncmp(keys, "rueidis", 7) == 0;

    if (is_counted)
        complain("%s: a counter of its items lies beside it, so they must be added one by one: hibloom add", name);
    return is_counted;
}

static int load(const struct session *s, const struct request *r)
{
    const bool bare = (r->given & OPTION_BARE) != 0;
    const char *spec = hibloom_spec_of(s->filter);
    const double started = seconds_now();
    struct session memory;
    uint64_t items;
    int result;

    if (refuse_window(s->name, spec) || refuse_counted(s->name, spec))
        return EXIT_TROUBLE;
    if (grows_on(s)) {
        result = add_lines(s, r, &items);
    } else {
        if (!open_in_memory(&memory, s->name, hibloom_secret_spec_of(s->filter), bare))
            return EXIT_TROUBLE;
        result = add_lines(&memory, r, &items);
        if (result == EXIT_YES)
            result = session_result(s, hibloom_merge(s->filter, memory.filter));
        session_close(&memory);
    }
    result = session_finish(s, result);
    if (result == EXIT_YES) {
        say_loaded(items, started);
        session_warn_if_full(s);
    }
    return result;
}

/* ---- Replacing ---------------------------------------------------------------- */

/* The spec of the request, else that of the present filter, without its seed: another one is drawn. */
static hibloom_status choose_spec(struct session *s, const struct request *r, char spec[SPEC_SIZE])
{
    if (r->has_spec) {
        spec_with(spec, r->spec, "create", NULL);
        return HIBLOOM_OK;
    }
    const hibloom_status status = hibloom_open(&s->filter, s->store, s->name, NULL);
    if (status != HIBLOOM_OK)
        return status;
    snprintf(spec, SPEC_SIZE, "%s", hibloom_spec_of(s->filter));
    hibloom_close(s->filter);
    s->filter = NULL;
    return HIBLOOM_OK;
}

/* The filter in memory takes the place of the present one. */
static int put_in_place(struct session *s, const struct session *memory, const char *aside)
{
    hibloom_status status = aside_open(s, aside, hibloom_secret_spec_of(memory->filter));

    if (status == HIBLOOM_OK)
        status = hibloom_merge(s->filter, memory->filter);
    return aside_end(s, aside, status);
}

static int load_aside(struct session *s, const struct request *r, const struct session *memory)
{
    const double started = seconds_now();
    uint64_t items;
    char aside[ASIDE_SIZE];
    int result;

    if (aside_refuses(r, hibloom_spec_of(memory->filter)) || !aside_name(s->name, aside))
        return EXIT_TROUBLE;
    result = add_lines(memory, r, &items);
    if (result == EXIT_YES && items == 0) {
        complain("load: there were no lines, and %s is not replaced by nothing; to empty it: hibloom clear", s->name);
        result = EXIT_TROUBLE;
    } else if (result == EXIT_YES) {
        result = session_finish(s, put_in_place(s, memory, aside));
    }
    if (result != EXIT_YES)
        return result;
    say_loaded(items, started);
    session_warn_if_full(s);
    return result;
}

static int replace(struct session *s, const struct request *r)
{
    struct session memory;
    char spec[SPEC_SIZE];
    int result;

    if (spec_value(r->spec, "new.ttl") != NULL) {
        complain("load: --replace keeps the old one's time to live, so new.ttl= has no effect: hibloom expire sets it");
        return EXIT_TROUBLE;
    }
    if (session_result(s, choose_spec(s, r, spec)) != EXIT_YES || refuse_window(s->name, spec) ||
        !open_in_memory(&memory, s->name, spec, false))
        return EXIT_TROUBLE;
    result = load_aside(s, r, &memory);
    session_close(&memory);
    return result;
}

/* The filter is opened first, so that a failure is reported before a long input
 * is read. */
int cmd_load(const struct request *r)
{
    const bool replaces = (r->given & OPTION_REPLACE) != 0;
    struct session s;
    int result;

    if (r->has_spec && refuse_window(r->operands[0], r->spec))
        return EXIT_TROUBLE;
    if (!(replaces ? session_connect : session_open)(&s, r))
        return EXIT_TROUBLE;
    result = replaces ? replace(&s, r) : load(&s, r);
    session_close(&s);
    return result;
}
