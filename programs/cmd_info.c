/* info: a filter's kind, size and fill; once, or again and again. */
#include "describe.h"
#include "output.h"
#include "session.h"

#include <math.h>
#include <signal.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

/* ---- One look ------------------------------------------------------------------ */

/* The filter that has the name now, each time: one that took its place is followed. */
static int look(struct session *s, const struct request *r, hibloom_info *info)
{
    hibloom_status status = session_open_filter(s, r);

    if (status == HIBLOOM_OK)
        status = hibloom_get_info(s->filter, info, sizeof *info);
    return session_result(s, status);
}

static void close_filter(struct session *s)
{
    hibloom_close(s->filter);
    s->filter = NULL;
}

/* ---- Again and again ------------------------------------------------------------ */

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

/* The first one ends the watch between two looks, the second one ends the program. */
static void heed_signals(void)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Waits `seconds`; false: a signal stopped it. */
static bool wait_seconds(double seconds)
{
    const struct timespec time = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
    sigset_t these, before;

    sigemptyset(&these);
    sigaddset(&these, SIGINT);
    sigaddset(&these, SIGTERM);
    sigprocmask(SIG_BLOCK, &these, &before); /* so that none comes between the look at it and the wait */
    if (!stopped)
        pselect(0, NULL, NULL, NULL, &time, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return !stopped;
}

/* One line, for a file or a pipe. */
static void put_line(const hibloom *filter, const hibloom_info *info)
{
    const time_t now = time(NULL);
    struct tm utc;
    char when[32] = "", used[NUMBER_SIZE], life[NUMBER_SIZE];

    if (gmtime_r(&now, &utc) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    output_text("%s  items %.0f  used %s  fill %.2f %%  error %.2g  time to live %s\n", when, info->estimated_items,
                describe_used(used, filter, info), info->fill * 100, info->estimated_error_rate,
                describe_life(life, info));
}

static void put_look(const struct session *s, const struct request *r, const hibloom_info *info)
{
    const bool json = (r->given & OPTION_JSON) != 0, watch = (r->given & OPTION_WATCH) != 0;
    struct report report = {.json = json, .one_line = watch};

    if (watch && !json && !isatty(STDOUT_FILENO)) {
        put_line(s->filter, info);
        return;
    }
    if (watch && !json) {
        output_text("\033[H\033[2J");
        report.one_line = false;
    }
    describe(&report, s->name, s->filter, info);
}

/* EXIT_NO past --max-used. One that grows is never past it. */
static int judge_use(const struct session *s, const struct request *r, const hibloom_info *info)
{
    const char *spec = hibloom_spec_of(s->filter);

    if ((r->given & OPTION_MAX_USED) == 0 || spec_value(spec, "growth") != NULL)
        return EXIT_YES;
    if (info->capacity == 0) {
        complain("info: %s states no capacity, so --max-used has nothing to compare with", s->name);
        return EXIT_TROUBLE;
    }
    /* As printed. */
    return round(session_used(spec, info) * 100) > (double)r->max_used ? EXIT_NO : EXIT_YES;
}

int cmd_info(const struct request *r)
{
    struct session s;
    hibloom_info info = {0};
    uint64_t left = (r->given & OPTION_COUNT) != 0 ? r->count : (r->given & OPTION_WATCH) != 0 ? UINT64_MAX : 1;
    int result = EXIT_YES;

    if ((r->given & OPTION_COUNT) != 0 && (r->given & OPTION_WATCH) == 0) {
        complain("info: --count goes with --watch");
        return EXIT_TROUBLE;
    }
    if (!session_connect(&s, r))
        return EXIT_TROUBLE;
    if ((r->given & OPTION_WATCH) != 0)
        heed_signals();
    while (result == EXIT_YES && left-- > 0) {
        result = look(&s, r, &info);
        if (result == EXIT_YES) {
            put_look(&s, r, &info);
            result = judge_use(&s, r, &info);
        }
        close_filter(&s);
        if (!output_flush() || (left > 0 && !wait_seconds(r->watch_seconds)))
            break;
    }
    session_close(&s);
    return result;
}
