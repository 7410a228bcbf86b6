/* load: millions of items. They are added to a filter in the memory of this
 * process, and that is merged into the one on the server. So the bits of the
 * filter are sent once, and no commands for each item. */
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

/* An empty filter in memory with the same spec. For a bare bitmap it is bare,
 * too: else a seed would be drawn for a spec without one. */
static bool open_in_memory(struct session *memory, const struct session *s, bool bare)
{
    hibloom_status status;

    *memory = (struct session){.name = s->name};
    status = hibloom_memory(&memory->store);
    if (status == HIBLOOM_OK)
        status = (bare ? hibloom_attach : hibloom_open)(&memory->filter, memory->store, memory->name,
                                                        hibloom_spec_of(s->filter));
    if (session_result(memory, status) == EXIT_YES)
        return true;
    session_close(memory);
    return false;
}

/* Adds the lines of standard input. *items: their number, without the excluded ones. */
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
    struct session memory;
    uint64_t items;
    int result;
    char rate[NUMBER_SIZE];

    if (!open_in_memory(&memory, s, bare))
        return EXIT_TROUBLE;
    result = add_lines(&memory, &items);
    if (result == EXIT_YES)
        result = session_result(s, hibloom_merge(s->filter, memory.filter));
    session_close(&memory);
    if (result == EXIT_YES) {
        const double seconds = now() - started;
        output_text("loaded %llu in %.2f s, %s/s\n", (unsigned long long)items, seconds,
                    number_scaled(rate, (double)items / seconds, ""));
        session_warn_if_full(s);
    }
    return result;
}

/* The filter is opened first, so that a failure is reported before a long input
 * is read. */
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
