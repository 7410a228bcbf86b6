/* load: items in bulk. They are added to a filter in this process' memory, and
 * that is then merged into the one on the server, which costs a transfer of its
 * bits where add would cost commands for each item. */
#include "input.h"
#include "number.h"
#include "output.h"
#include "session.h"

#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Its twin in memory, empty. Bare as it is: another would draw a seed where
 * the spec has none. */
static bool open_twin(struct session *twin, const struct session *s, bool bare)
{
    hibloom_status status;

    *twin = (struct session){ .name = s->name };
    status = hibloom_memory(&twin->store);
    if (status == HIBLOOM_OK)
        status = (bare ? hibloom_attach : hibloom_open)(&twin->filter, twin->store, twin->name,
                                                        hibloom_spec_of(s->filter));
    if (session_result(twin, status) == EXIT_YES)
        return true;
    session_close(twin);
    return false;
}

/* Adds the lines of standard input; *items: how many of them can be in it. */
static int add_lines(const struct session *s, uint64_t *items)
{
    const bool empty_excluded = hibloom_spec_of(s->filter)->empty_excluded;
    enum input_status status;
    struct input in;

    *items = 0;
    if (!input_open(&in, NULL, 0))
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

static int load(const struct session *s, bool bare)
{
    const double started = now();
    struct session twin;
    uint64_t items;
    int result;
    char rate[NUMBER_SIZE];

    if (!open_twin(&twin, s, bare))
        return EXIT_TROUBLE;
    result = add_lines(&twin, &items);
    if (result == EXIT_YES)
        result = session_result(s, hibloom_merge(s->filter, twin.filter));
    session_close(&twin);
    if (result == EXIT_YES) {
        const double seconds = now() - started;
        output_text("loaded %llu in %.2f s, %s/s\n", (unsigned long long)items, seconds,
                    number_scaled(rate, (double)items / seconds, ""));
    }
    return result;
}

/* The filter is opened first: what is wrong with it is said before a long
 * input is read. */
int cmd_load(const struct request *r)
{
    struct session s;
    int result;

    if (!session_open(&s, r))
        return EXIT_TROUBLE;
    result = load(&s, (r->given & OPTION_BARE) != 0);
    session_close(&s);
    return result;
}
