/* A progress bar on standard error, if that is a terminal, for work that takes
 * longer than a second.
 *
 * Its state is static because there is one standard error. The bar must be erased
 * before anything else is written to the terminal: output.c does that. */
#include "progress.h"
#include "number.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHOW_AFTER 1.0 /* seconds */
#define SHOW_EVERY 0.1

static struct {
    bool wanted, drawn;
    uint64_t total_bytes;
    double started, next;
} bar;

double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void progress_start(uint64_t total_bytes)
{
    bar.wanted = isatty(STDERR_FILENO);
    bar.total_bytes = total_bytes;
    bar.started = seconds_now();
    bar.next = bar.started + SHOW_AFTER;
}

static void draw_share(double share)
{
    static const char cells[] = "==============================";
    const int width = sizeof cells - 1;

    /* A file that has grown since then has more bytes than were expected. */
    share = share < 1 ? share : 1;
    fprintf(stderr, "[%-*.*s] %3.0f %%  ", width, (int)(share * width), cells, share * 100);
}

void progress_show(uint64_t items, uint64_t bytes)
{
    char count[NUMBER_SIZE], rate[NUMBER_SIZE];
    const double t = bar.wanted ? seconds_now() : 0;

    if (!bar.wanted || t < bar.next)
        return;
    fputc('\r', stderr);
    if (bar.total_bytes > 0)
        draw_share((double)bytes / (double)bar.total_bytes);
    fprintf(stderr, "%s items  %s/s\033[K", number_scaled(count, (double)items),
            number_scaled(rate, (double)items / (t - bar.started)));
    bar.next = t + SHOW_EVERY;
    bar.drawn = true;
}

void progress_erase(void)
{
    if (bar.drawn)
        fputs("\r\033[K", stderr);
    bar.drawn = false;
}
