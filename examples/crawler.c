/* A crawler's front door: reads URLs, prints those that nobody has fetched.
 *
 *     crawler URI NAME < urls
 *
 * Shows batches, and what to do when a call fails: a filter that is gone is
 * made anew, a dead connection is tried again, and anything else is for a
 * human. Run as many as you like at once. */
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

/* Opens the filter or creates it. If only its bitmap was lost, say by eviction,
 * a new one is made first: to a crawler, fetching twice is better than not at
 * all. Of several crawlers that notice, one does it and the others find it done. */
static hibloom_status open_filter(struct crawler *crawler)
{
    hibloom_spec spec;
    hibloom_status status = hibloom_repair(crawler->store, crawler->name);

    hibloom_close(crawler->seen);
    crawler->seen = NULL;
    if (status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND) /* not found: it is about to be created */
        status = hibloom_spec_for(&spec, 10000000, 0.001);
    return status == HIBLOOM_OK ? hibloom_open(&crawler->seen, crawler->store, crawler->name, &spec) : status;
}

/* Is it worth another attempt? Whatever an attempt has added before it failed
 * is not new in the next: those URLs are left to the next crawl. */
static bool may_try_again(struct crawler *crawler, hibloom_status status)
{
    switch (status) {
    case HIBLOOM_EIO:
    case HIBLOOM_ETIMEDOUT:
        sleep(1); /* the next call makes a new connection */
        return true;
    case HIBLOOM_ENOTFOUND:
    case HIBLOOM_EMISMATCH:
    case HIBLOOM_ECORRUPT: /* lost, and perhaps made anew by another crawler */
        return open_filter(crawler) == HIBLOOM_OK;
    default:
        return false;
    }
}

static hibloom_status print_new(struct crawler *crawler, const hibloom_item *urls, size_t n)
{
    bool is_new[BATCH];
    hibloom_status status = HIBLOOM_OK;

    for (int i = 0; i < ATTEMPTS; i++) {
        status = hibloom_add_many(crawler->seen, urls, n, is_new);
        if (status == HIBLOOM_OK || !may_try_again(crawler, status))
            break;
    }
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
