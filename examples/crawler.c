/* Which URLs has nobody fetched yet? Reads URLs, one on a line, and prints those
 * that are new. Any number of these programs share one filter.
 *
 *     cc -o crawler crawler.c $(pkg-config --cflags --libs hibloom)
 *     ./crawler URI NAME < urls
 *
 * It shows calls with many items, and what to do when a call fails: one that may
 * succeed later is made again, a filter that is gone is created again, and
 * anything else is for a human to look at. */
#include <hibloom/hibloom.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 1000
#define URL_MAX 8192 /* longer ones are cut */
#define ATTEMPTS 5

struct crawler {
    hibloom_store *store;
    hibloom *seen;
    const char *name;
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

/* URLs that a failed attempt has added are not new in the next one: they are left
 * to the next crawl. */
static hibloom_status add(struct crawler *crawler, const hibloom_item *urls, size_t n, bool *is_new)
{
    hibloom_status status = HIBLOOM_OK;

    for (int i = 0; i < ATTEMPTS; i++) {
        status = crawler->seen == NULL ? open_filter(crawler) : HIBLOOM_OK;
        if (status == HIBLOOM_OK)
            status = hibloom_add_many(crawler->seen, urls, n, is_new);
        if (hibloom_is_retryable(status)) {
            sleep(1); /* if the connection is dead, the next call makes a new one */
        } else if (status >= HIBLOOM_ENOTFOUND) {
            hibloom_close(crawler->seen); /* lost, and perhaps created again by another crawler */
            crawler->seen = NULL;
        } else {
            break;
        }
    }
    return status;
}

static hibloom_status print_new(struct crawler *crawler, const hibloom_item *urls, size_t n)
{
    bool is_new[BATCH];
    const hibloom_status status = add(crawler, urls, n, is_new);

    for (size_t i = 0; status == HIBLOOM_OK && i < n; i++)
        if (is_new[i])
            printf("%.*s\n", (int)urls[i].len, (const char *)urls[i].data);
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
        status = print_new(crawler, urls, n);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct crawler crawler = {.name = argc > 2 ? argv[2] : "seen"};
    hibloom_status status;
    int result = EXIT_SUCCESS;

    status = hibloom_connect(&crawler.store, argc > 1 ? argv[1] : "redis://127.0.0.1:6379", NULL);
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
