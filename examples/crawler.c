/* Which URLs has no crawler fetched yet? Reads URLs, one a line, and prints those that are new, which stands for
 * fetching them. Any number of these programs share one filter.
 *
 *     cc -o crawler crawler.c $(pkg-config --cflags --libs hibloom)
 *     ./crawler 'redis://127.0.0.1?retry=10s' NAME < urls
 *     ./crawler 'redis://127.0.0.1' NAME claim < urls
 *
 * It shows calls with many items, a filter that is lost, and two recipes for shared work:
 *
 *   at least once   Ask, work, then add. A process that dies before the add leaves the work to the next one. Two that
 *                   ask at the same time both do it; so does one for a URL that comes twice in a batch. This is for
 *                   work that may be repeated and must not be missed, as fetching is.
 *   at most once    Add, and work on what is new. The add is a claim: exactly one process gets it, as long as no server
 *                   forgets adds. A process that dies before its work is done leaves it undone for ever. This is for
 *                   work that must not be repeated, as sending a mail is. It is what "claim" does.
 *
 * If the server has forgotten adds, or the filter is gone, "at least once" goes on, and does some work again. A claim
 * fails then, and the program ends: what was claimed before could be new again. A program that starts later cannot
 * know. So first add again what was claimed.
 *
 * With retry= a call goes on after a lost connection, and a claim whose answer was lost counts as new. So an item may
 * be worked on twice, and is never lost. If twice is worse than never, leave retry= out. If neither may be, keep a list
 * beside the filter: docs/failures.md says how. */
#include <hibloom/hibloom.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 1000
#define URL_MAX 8192 /* longer ones are cut */
#define ATTEMPTS 5

typedef hibloom_status question(hibloom *, const hibloom_item *, size_t, bool *);

/* The library itself tries again what may pass. This is for a filter that is gone, or that another crawler has made
 * again. If the server has lost a part of it, by eviction, say, that part is made again, empty. A crawler would rather
 * fetch a URL twice than not at all. Several crawlers may do this at the same time. */
static hibloom_status ask(hibloom *seen, question *call, const hibloom_item *urls, size_t n, bool *answers)
{
    hibloom_status status = call(seen, urls, n, answers);

    for (int i = 1; i < ATTEMPTS && status >= HIBLOOM_ENOTFOUND; i++) {
        if (status == HIBLOOM_ECORRUPT)
            status = hibloom_repair(hibloom_store_of(seen), hibloom_name_of(seen));
        else
            status = HIBLOOM_OK;
        if (status == HIBLOOM_OK)
            status = hibloom_reopen(seen);
        if (status == HIBLOOM_OK)
            status = call(seen, urls, n, answers);
    }
    return status;
}

static void work(const hibloom_item *url)
{
    printf("%.*s\n", (int)url->len, (const char *)url->data);
}

static hibloom_status work_at_least_once(hibloom *seen, const hibloom_item *urls, size_t n)
{
    bool found[BATCH];
    const hibloom_status status = ask(seen, hibloom_contains_many, urls, n, found);

    if (status != HIBLOOM_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        if (!found[i])
            work(&urls[i]);
    fflush(stdout); /* the work is done before it is added */
    return ask(seen, hibloom_add_many, urls, n, NULL);
}

static hibloom_status work_at_most_once(hibloom *seen, const hibloom_item *urls, size_t n)
{
    bool is_new[BATCH];
    const hibloom_status status = hibloom_add_many(seen, urls, n, is_new);

    for (size_t i = 0; status == HIBLOOM_OK && i < n; i++)
        if (is_new[i])
            work(&urls[i]);
    return status;
}

static hibloom_status crawl(hibloom *seen, bool claim)
{
    static char lines[BATCH][URL_MAX];
    hibloom_item urls[BATCH];
    hibloom_status status = HIBLOOM_OK;
    bool more = true;

    while (more && status == HIBLOOM_OK) {
        size_t n = 0;
        while (n < BATCH && (more = fgets(lines[n], URL_MAX, stdin) != NULL)) {
            urls[n] = (hibloom_item){lines[n], strcspn(lines[n], "\n")};
            n++;
        }
        status = (claim ? work_at_most_once : work_at_least_once)(seen, urls, n);
    }
    return status;
}

static void tell(hibloom_log_level level, const char *line, void *data)
{
    (void)data;
    if (level == HIBLOOM_LOG_WARNING) /* main has the words of an error */
        fprintf(stderr, "crawler: %s\n", line);
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : "redis://127.0.0.1:6379?retry=10s";
    const char *name = argc > 2 ? argv[2] : "seen";
    const bool claim = argc > 3 && strcmp(argv[3], "claim") == 0;
    /* A server that forgot adds makes work be done again, which a claim must not. */
    const char *const options[] = {"client_name", "crawler", "accept_restarts", claim ? "no" : "yes", NULL};
    const hibloom_setup setup = {.size = sizeof setup, .options = options, .log = tell};
    hibloom_store *store;
    hibloom *seen = NULL;

    hibloom_status status = hibloom_connect(&store, uri, &setup);
    if (status == HIBLOOM_OK)
        status = hibloom_open(&seen, store, name, "capacity=10M error=0.001");
    if (!claim && status == HIBLOOM_ECORRUPT && (status = hibloom_repair(store, name)) == HIBLOOM_OK)
        status = hibloom_open(&seen, store, name, "capacity=10M error=0.001");
    if (status == HIBLOOM_OK)
        status = crawl(seen, claim);
    if (status != HIBLOOM_OK)
        fprintf(stderr, "crawler: %s: %s\n", hibloom_strerror(status), hibloom_store_error(store));
    hibloom_close(seen);
    hibloom_store_free(store);
    if (fclose(stdout) != 0) {
        perror("standard output");
        return EXIT_FAILURE;
    }
    return status == HIBLOOM_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
