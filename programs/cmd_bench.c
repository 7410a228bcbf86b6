/* bench: ten seconds of adds and look-ups on the user's own server, beside what plan expects of
 * them.
 *
 * The filter must not stay there. Signals that would end the program are held back until it is
 * removed. The first call on it gives it a time to live. That is for kill -9, and for a server
 * that does not answer. */
#include "choice.h"
#include "number.h"
#include "output.h"
#include "progress.h"
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CAPACITY 10000000 /* 11 MB: in a much smaller filter, calls of 1,000 go by the whole bitmap */
#define ERROR_RATE 0.01
#define BATCH 1000
#define BY_BITMAPS 0.05    /* commands an item: of so small a filter a batch goes by whole bitmaps */
#define BATCH_SECONDS 0.85 /* of each of the nine rows */
#define ALONE_SECONDS 0.2
#define LIFE_SECONDS 300
#define BYTES_MAX (1 << 30) /* more could be a server's end */

enum call { ADD, ADD_NEW, LOOK_UP };

struct row {
    const char *layout;
    enum call call;
    const char *commands;
    double rate, planned;     /* items a second, in batches */
    double alone;             /* the same, an item a call */
    double commands_per_item; /* in batches, guards included */
};

struct bench {
    const struct request *request; /* one pass' own */
    struct session session;
    sigset_t signals;
    bool json;
    uint64_t next; /* the number of an item that is not in yet */
    double round_trip_us;
    struct row rows[9];
    size_t n;
};

/* ---- Printing ------------------------------------------------------------------------- */

static const char *call_name(enum call what)
{
    return what == ADD ? "add" : what == ADD_NEW ? "is_new" : "lookup";
}

static void put_heading(const struct bench *b)
{
    if (b->json)
        return;
    output_text("                                items a second            commands  one item\n"
                "layout   call    commands    measured     plan  of plan  per item    a call\n");
}

static void put_row(const struct row *row)
{
    char rate[NUMBER_SIZE], plan[NUMBER_SIZE], alone[NUMBER_SIZE];

    output_text("%-8s %-7s %-10s %9s%9s %6.0f %% %9.2f %9s\n", row->layout, call_name(row->call),
                row->commands_per_item < BY_BITMAPS ? "bitmaps" : row->commands, number_rough(rate, row->rate),
                number_rough(plan, row->planned), row->rate / row->planned * 100, row->commands_per_item,
                number_rough(alone, row->alone));
    output_flush();
}

static void put_json(const struct bench *b)
{
    output_text("{\n  \"capacity\": %llu,\n  \"error_rate\": %.15g,\n  \"batch\": %d,\n  \"round_trip_us\": %.1f,\n"
                "  \"rates\": [",
                (unsigned long long)b->request->capacity, b->request->error_rate, BATCH, b->round_trip_us);
    for (const struct row *row = b->rows; row < b->rows + b->n; row++)
        output_text("%s\n    {\"layout\": \"%s\", \"call\": \"%s\", \"commands\": \"%s\", \"items_per_s\": %.0f, "
                    "\"plan_items_per_s\": %.0f, \"commands_per_item\": %.4f, \"one_item_a_call_per_s\": %.0f}",
                    row > b->rows ? "," : "", row->layout, call_name(row->call), row->commands, row->rate, row->planned,
                    row->commands_per_item, row->alone);
    output_text("\n  ]\n}\n");
}

/* ---- Measuring ------------------------------------------------------------------------ */

static bool is_stopped(const struct bench *b)
{
    sigset_t pending, both;

    sigpending(&pending);
    sigandset(&both, &pending, &b->signals);
    return !sigisemptyset(&both);
}

static hibloom_status call(hibloom *filter, enum call what, const hibloom_item *items, size_t n)
{
    bool answers[BATCH];

    if (what == LOOK_UP)
        return hibloom_contains_many(filter, items, n, answers);
    return hibloom_add_many(filter, items, n, what == ADD_NEW ? answers : NULL);
}

static void fill(hibloom_item *items, char (*texts)[24], size_t n, uint64_t *number)
{
    for (size_t i = 0; i < n; i++) {
        const int len = snprintf(texts[i], sizeof texts[i], "%010llu", (unsigned long long)(*number)++);
        items[i] = (hibloom_item){texts[i], (size_t)len};
    }
}

/* For `seconds`, but once at least; only the calls are timed. Adds take items that are not in: a
 * full filter is emptied. Look-ups begin with items that are in. */
static hibloom_status measure(struct bench *b, enum call what, size_t n, double seconds, double *rate)
{
    const double end = seconds_now() + seconds;
    char texts[BATCH][24];
    hibloom_item items[BATCH];
    uint64_t asked = 0, done = 0;
    double taken = 0;
    hibloom_status status = HIBLOOM_OK;

    do {
        if (what != LOOK_UP && b->next + n > b->request->capacity) {
            status = hibloom_clear(b->session.filter);
            b->next = 0;
        }
        fill(items, texts, n, what == LOOK_UP ? &asked : &b->next);
        const double began = seconds_now();
        if (status == HIBLOOM_OK)
            status = call(b->session.filter, what, items, n);
        taken += seconds_now() - began;
        done += n;
    } while (status == HIBLOOM_OK && seconds_now() < end && !is_stopped(b));
    *rate = (double)done / taken;
    return status;
}

static double planned(const struct bench *b, enum call what)
{
    hibloom_plan plan;

    if (hibloom_get_plan(hibloom_spec_of(b->session.filter), 0, &plan, sizeof plan) != HIBLOOM_OK)
        return 0;
    return what == ADD       ? choice_adds(b->request, &plan)
           : what == ADD_NEW ? plan.adds_new
                             : choice_look_ups(b->request, &plan);
}

static hibloom_status measure_row(struct bench *b, enum call what, const char *commands)
{
    struct row row = {.layout = b->request->layout, .call = what, .commands = commands};
    hibloom_stats before, after;

    hibloom_get_stats(b->session.store, &before, sizeof before);
    hibloom_status status = measure(b, what, BATCH, BATCH_SECONDS, &row.rate);
    hibloom_get_stats(b->session.store, &after, sizeof after);
    if (status == HIBLOOM_OK)
        status = measure(b, what, 1, ALONE_SECONDS, &row.alone);
    if (status != HIBLOOM_OK || is_stopped(b)) /* cut short, it says nothing */
        return status;
    row.commands_per_item = (double)(after.commands - before.commands) / (double)(after.items - before.items);
    row.planned = planned(b, what);
    b->rows[b->n++] = row;
    if (what == LOOK_UP)
        b->round_trip_us = 1e6 / row.alone; /* the last row: two short commands a look-up */
    if (!b->json)
        put_row(&row);
    return HIBLOOM_OK;
}

/* ---- The filter ------------------------------------------------------------------------ */

static bool make_name(char *name, size_t size)
{
    uint64_t random;

    if (getentropy(&random, sizeof random) != 0) {
        complain("bench: no random name: %s", strerror(errno));
        return false;
    }
    snprintf(name, size, "hibloom-bench-%016llx", (unsigned long long)random);
    return true;
}

/* By its name: if making it failed half-way, there is no handle. */
static bool remove_filter(struct session *s, bool ends_by_itself)
{
    const hibloom_status status = hibloom_drop_by_name(s->store, s->name);

    if (status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND)
        return true;
    session_result(s, status);
    if (ends_by_itself)
        complain("bench: filter %s may be left on the server, for %d minutes at most", s->name, LIFE_SECONDS / 60);
    else
        complain("bench: filter %s may be left on the server: hibloom drop %s", s->name, s->name);
    return false;
}

/* Only the rows that differ between the commands. An add with is_new always goes by BITFIELD, a look-up in the blocked
 * layout by GETRANGE. Each is measured once. */
static hibloom_status measure_rows(struct bench *b)
{
    const bool setbit = !b->request->bitfield;
    const bool blocked = strcmp(b->request->layout, "blocked") == 0;
    hibloom_status status = measure_row(b, ADD, setbit ? "setbit" : "bitfield");

    if (status == HIBLOOM_OK && !is_stopped(b) && !setbit)
        status = measure_row(b, ADD_NEW, "bitfield");
    if (status == HIBLOOM_OK && !is_stopped(b) && (setbit || !blocked))
        status = measure_row(b, LOOK_UP, blocked ? "getrange" : setbit ? "setbit" : "bitfield");
    return status;
}

/* A filter, its rows, and its end. */
static bool pass(struct bench *b, const struct request *r)
{
    bool lives_on = true;
    hibloom_status status;

    b->request = r;
    b->next = 0;
    if (!session_connect(&b->session, r))
        return false;
    status = session_open_filter(&b->session, r);
    if (status == HIBLOOM_OK) {
        status = hibloom_expire(b->session.filter, LIFE_SECONDS * 1000);
        lives_on = status != HIBLOOM_OK;
    }
    if (status == HIBLOOM_OK)
        status = measure_rows(b);
    const bool measured = session_result(&b->session, status) == EXIT_YES;
    const bool removed = remove_filter(&b->session, !lives_on);
    session_close(&b->session);
    return measured && removed;
}

/* Sizes it for a pass; false after a complaint. */
static bool size(struct request *r, const char *layout)
{
    hibloom_plan plan;

    r->layout = layout;
    choice_spec(r, r->spec);
    if (hibloom_get_plan(r->spec, 0, &plan, sizeof plan) == HIBLOOM_OK && plan.bytes <= BYTES_MAX)
        return true;
    complain("bench: in the %s layout that would take more than 1 GB: take a smaller -n, or a larger -p", r->layout);
    return false;
}

static bool run(struct bench *b, struct request *r)
{
    static const struct {
        const char *layout;
        bool bitfield;
    } passes[] = {{"classic", false}, {"classic", true}, {"blocked", true}, {"blocked", false}};

    if (!size(r, "blocked") || !size(r, "classic"))
        return false;
    r->planned_link = true; /* so calls go the way that is planned */
    put_heading(b);
    for (size_t i = 0; i < sizeof passes / sizeof *passes && !is_stopped(b); i++) {
        r->bitfield = passes[i].bitfield;
        if (!size(r, passes[i].layout) || !pass(b, r))
            return false;
    }
    return true;
}

/* ---- Signals --------------------------------------------------------------------------- */

/* Holds back the signals that would end the program; they end it in the end. A signal that is
 * switched off, as by nohup, stays so. SIGPIPE is one, too: `hibloom bench | head -1`. */
static void hold_signals(sigset_t *held)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction now_set;

    sigemptyset(held);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &now_set) == 0 && now_set.sa_handler == SIG_DFL)
            sigaddset(held, signals[i]);
    sigprocmask(SIG_BLOCK, held, NULL);
}

int cmd_bench(const struct request *request)
{
    struct request r = *request;
    struct bench b = {.json = (request->given & OPTION_JSON) != 0};
    char name[64], *operands[] = {name};

    if (strncmp(r.uri, "memory:", 7) == 0) {
        complain("bench: needs a server; memory: is none");
        return EXIT_TROUBLE;
    }
    if (!make_name(name, sizeof name))
        return EXIT_TROUBLE;
    r.operands = operands;
    r.n_operands = 1;
    if (!r.has_spec) {
        r.capacity = CAPACITY;
        r.error_rate = ERROR_RATE;
        r.given |= OPTION_N | OPTION_P;
        r.has_spec = true;
    }
    if ((r.given & OPTION_RETRY) == 0)
        r.retry_ms = 0; /* a pause would count as the server's time */
    r.given |= OPTION_RETRY | OPTION_COMMANDS;
    hold_signals(&b.signals);
    const bool done = run(&b, &r);
    if (done && !is_stopped(&b)) {
        if (b.json)
            put_json(&b);
        else
            output_text("\nround trip %.0f us\n", b.round_trip_us);
    }
    output_flush();
    sigprocmask(SIG_UNBLOCK, &b.signals, NULL); /* one that came ends the program here */
    return done ? EXIT_YES : EXIT_TROUBLE;
}
