/* Which URLs has nobody fetched yet? Reads URLs, one on a line, and prints those
 * that are new, which stands for fetching them. Any number of these programs share
 * one filter.
 *
 *     cc -o crawler crawler.c $(pkg-config --cflags --libs hibloom)
 *     ./crawler URI NAME < urls
 *     ./crawler URI NAME claim < urls
 *
 * It shows calls with many items, what to do when a filter is lost, and two recipes
 * for work that is shared:
 *
 *   at least once   ask, work, then add. Who dies before the add leaves the work to the
 *                   next one. Two who ask at the same time both do it, and so it is with
 *                   a URL that comes twice in a batch. For work that may be repeated and
 *                   must not be missed, as fetching is. It is what this program does.
 *   at most once    add, and work on what is new: the add is a claim, of which one
 *                   process is told. Who dies before the work is done leaves it undone
 *                   for ever. For work that must not be repeated, as sending a mail is.
 *                   It is what "claim" asks for.
 *
 * With retry_ms a call goes on after a dead connection, and a claim whose answer was
 * lost counts as new: so it may be worked on twice, and is never lost. Where twice is
 * worse than never, leave retry_ms 0, and let a claim that fails be. */
#include <hibloom/hibloom.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 1000
#define URL_MAX 8192 /* longer ones are cut */
#define ATTEMPTS 5

struct crawler {
    hibloom_store *store;
    hibloom *seen;
    const char *name;
    bool claims;
};

static int complain(const struct crawler *crawler, const char *doing, hibloom_status status)
{
    fprintf(stderr, "%s %s: %s: %s\n", doing, crawler->name, hibloom_strerror(status),
            hibloom_store_error(crawler->store));
    return EXIT_FAILURE;
}

/* Opens the filter, or creates it. If the server has lost a part of it, say by
 * eviction, that part is made again, empty: a crawler would rather fetch a URL
 * twice than not at all. Several crawlers may do this at the same time. */
static hibloom_status open_filter(struct crawler *crawler)
{
    hibloom_spec spec;
    hibloom_status status = hibloom_spec_for(&spec, 10000000, 0.001);

    if (status == HIBLOOM_OK)
        status = hibloom_open(&crawler->seen, crawler->store, crawler->name, &spec);
    if (status != HIBLOOM_ECORRUPT)
        return status;
    status = hibloom_repair(crawler->store, crawler->name);
    return status == HIBLOOM_OK ? hibloom_open(&crawler->seen, crawler->store, crawler->name, &spec) : status;
}

typedef hibloom_status question(hibloom *, const hibloom_item *, size_t, bool *);

/* The library tries again what may succeed later. What is left to do here is a filter
 * that is gone, or was made again by another crawler: it is opened again. */
static hibloom_status ask(struct crawler *crawler, question *call, const hibloom_item *urls, size_t n, bool *answers)
{
    hibloom_status status = HIBLOOM_OK;

    for (int i = 0; i < ATTEMPTS; i++) {
        status = crawler->seen == NULL ? open_filter(crawler) : HIBLOOM_OK;
        if (status == HIBLOOM_OK)
            status = call(crawler->seen, urls, n, answers);
        if (status < HIBLOOM_ENOTFOUND)
            break;
        hibloom_close(crawler->seen);
        crawler->seen = NULL;
    }
    return status;
}

static void work(const hibloom_item *url)
{
    printf("%.*s\n", (int)url->len, (const char *)url->data);
}

static hibloom_status work_at_least_once(struct crawler *crawler, const hibloom_item *urls, size_t n)
{
    bool found[BATCH];
    hibloom_status status = ask(crawler, hibloom_contains_many, urls, n, found);

    if (status != HIBLOOM_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        if (!found[i])
            work(&urls[i]);
    fflush(stdout); /* what is added here is done */
    return ask(crawler, hibloom_add_many, urls, n, NULL);
}

static hibloom_status work_at_most_once(struct crawler *crawler, const hibloom_item *urls, size_t n)
{
    bool is_new[BATCH];
    const hibloom_status status = ask(crawler, hibloom_add_many, urls, n, is_new);

    for (size_t i = 0; status == HIBLOOM_OK && i < n; i++)
        if (is_new[i])
            work(&urls[i]);
    return status;
}

static hibloom_status crawl(struct crawler *crawler)
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
        status = (crawler->claims ? work_at_most_once : work_at_least_once)(crawler, urls, n);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct crawler crawler = {.name = argc > 2 ? argv[2] : "seen", .claims = argc > 3 && strcmp(argv[3], "claim") == 0};
    /* accept_restarts: after a restart, URLs twice rather than not at all */
    const char *const options[] = {"retry", "10s", "accept_restarts", "yes", "client_name", "crawler", NULL};
    const hibloom_setup setup = {.size = sizeof setup, .options = options};
    hibloom_status status;
    int result = EXIT_SUCCESS;

    status = hibloom_connect(&crawler.store, argc > 1 ? argv[1] : "redis://127.0.0.1:6379", &setup);
    if (status == HIBLOOM_OK)
        status = open_filter(&crawler);
    if (status != HIBLOOM_OK)
        result = complain(&crawler, "opening", status);
    else if ((status = crawl(&crawler)) != HIBLOOM_OK)
        result = complain(&crawler, "crawling with", status);
    hibloom_close(crawler.seen);
    hibloom_store_free(crawler.store);
    if (fclose(stdout) != 0) {
        perror("standard output");
        result = EXIT_FAILURE;
    }
    return result;
}
