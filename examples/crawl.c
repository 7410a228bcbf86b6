/* A crawler. It fetches all pages of a site, breadth-first from a start page, and prints their URLs. Any number of
 * processes share one filter.
 *
 *     cc -o crawl crawl.c $(pkg-config --cflags --libs hibloom libcurl libxml-2.0)
 *     ./crawl URI NAME http://localhost/ [PROCESSES [DEPTH]]
 *
 * Each page is fetched once, except for those that the filter takes for seen: at most its error rate. This holds even if
 * the Redis server dies and comes back, if it keeps what it has acknowledged: appendonly yes, appendfsync always. Two
 * rules do it:
 *
 *   one owner        A hash of the URL says which process fetches it. So no two ever ask for the same URL at once, and
 *                    nothing depends on which was first (is_new).
 *   ask, fetch, add  A "no" is certain, so a page that is fetched was never fetched before. If the answer of an add is
 *                    lost, the add is sent again: that changes nothing.
 *
 * It goes level by level. Links that are found on the pages of one level are written to files, one for each owner. They
 * are read when all processes have ended the level. So memory is bounded, however many pages there are. A page without
 * end is cut at BODY_MAX, and links without end stop at DEPTH. A redirect is a link. If the start page is in the filter
 * already, nothing is fetched. To crawl again, clear the filter; also after a crawl that was stopped half-way. (Be
 * polite: this one neither reads robots.txt nor waits between two pages.) */
#include <hibloom/hibloom.h>

#include <curl/curl.h>
#include <libxml/HTMLparser.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH 500    /* URLs that are asked for in one call */
#define URL_MAX 2000 /* longer ones are ignored */
#define BODY_MAX (1u << 20)
#define PROCESSES_MAX 64u

struct crawl {
    const char *uri, *name, *start;
    char dir[64]; /* of the files */
    unsigned processes, depth;
};

/* One process at one level. */
struct worker {
    const struct crawl *crawl;
    unsigned me, level;
    hibloom_store *store;
    hibloom *seen;
    CURL *curl;
    CURLU *parsed;              /* URLs */
    char *site;                 /* scheme, host and port of the start page: others are ignored */
    FILE *links[PROCESSES_MAX]; /* to the owners, for the next level */
    char body[BODY_MAX];
    size_t body_len;
    char urls[BATCH][URL_MAX + 2];
};

static bool complain(const char *what, const char *why)
{
    fprintf(stderr, "crawl: %s: %s\n", what, why);
    return false;
}

static bool check(const struct worker *w, hibloom_status status)
{
    return status == HIBLOOM_OK || complain(hibloom_strerror(status), hibloom_store_error(w->store));
}

/* ---- Links ------------------------------------------------------------------------ */

static unsigned owner_of(const char *url, unsigned processes)
{
    uint32_t hash = 2166136261; /* FNV-1a */

    for (; *url != '\0'; url++)
        hash = (hash ^ (unsigned char)*url) * 16777619;
    return hash % processes;
}

static void links_path(const struct crawl *c, unsigned level, unsigned from, unsigned to, char path[128])
{
    snprintf(path, 128, "%s/%u.%u.%u", c->dir, level, from, to);
}

/* Scheme, host and port; to be freed with curl_free. */
static char *site_of(CURLU *parsed)
{
    char *site = NULL;

    curl_url_set(parsed, CURLUPART_PATH, NULL, 0);
    curl_url_set(parsed, CURLUPART_QUERY, NULL, 0);
    return curl_url_get(parsed, CURLUPART_URL, &site, CURLU_NO_DEFAULT_PORT) == CURLUE_OK ? site : NULL;
}

/* The one way to write a URL, if it is one of this site, else NULL; to be freed with curl_free. */
static char *normal_url(struct worker *w, const char *base, const char *link)
{
    char *url = NULL, *site = NULL;

    if (curl_url_set(w->parsed, CURLUPART_URL, base, 0) != CURLUE_OK ||
        (link[0] != '\0' && curl_url_set(w->parsed, CURLUPART_URL, link, CURLU_URLENCODE) != CURLUE_OK) ||
        curl_url_set(w->parsed, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK ||
        curl_url_get(w->parsed, CURLUPART_URL, &url, CURLU_NO_DEFAULT_PORT) != CURLUE_OK)
        return NULL;
    site = site_of(w->parsed);
    if (site == NULL || (w->site != NULL && strcasecmp(site, w->site) != 0) || strlen(url) > URL_MAX ||
        strpbrk(url, "\r\n") != NULL) {
        curl_free(url);
        url = NULL;
    }
    if (url != NULL && w->site != NULL)
        memcpy(url, w->site, strlen(w->site) - 1); /* hosts in capitals, too; the site ends in a '/' */
    curl_free(site);
    return url;
}

/* Blanks around a link do not count. */
static void follow(struct worker *w, const char *base, const char *link)
{
    static const char blanks[] = " \t\r\n\f";
    char bare[URL_MAX + 1];

    link += strspn(link, blanks);
    size_t len = strlen(link);
    while (len > 0 && strchr(blanks, link[len - 1]) != NULL)
        len--;
    if (len > URL_MAX)
        return;
    memcpy(bare, link, len);
    bare[len] = '\0';
    char *url = normal_url(w, base, bare);
    if (url != NULL)
        fprintf(w->links[owner_of(url, w->crawl->processes)], "%s\n", url);
    curl_free(url);
}

/* Over all elements, without a call for each depth: a page may be nested as its author likes. */
static void follow_links(struct worker *w, const char *base)
{
    const int options = HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING | HTML_PARSE_NONET;
    htmlDocPtr page = htmlReadMemory(w->body, (int)w->body_len, base, NULL, options);
    const xmlNode *node = page != NULL ? xmlDocGetRootElement(page) : NULL;

    while (node != NULL) {
        xmlChar *link = NULL;
        if (node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, "a") == 0)
            link = xmlGetProp(node, (const xmlChar *)"href");
        if (link != NULL)
            follow(w, base, (const char *)link);
        xmlFree(link);
        const xmlNode *next = node->children;
        while (next == NULL && node != NULL) {
            next = node->next;
            node = node->parent;
        }
        node = next != NULL && next->type != XML_DOCUMENT_NODE ? next : NULL;
    }
    xmlFreeDoc(page);
}

/* ---- Pages ------------------------------------------------------------------------- */

static size_t take_body(char *bytes, size_t size, size_t n, void *data)
{
    struct worker *w = data;
    const size_t room = sizeof w->body - w->body_len, taken = n < room ? n : room;

    (void)size; /* 1 */
    memcpy(w->body + w->body_len, bytes, taken);
    w->body_len += taken;
    return taken; /* less than n ends it */
}

/* A page that cannot be fetched is reported, and not tried again. */
static void fetch(struct worker *w, const char *url)
{
    const char *type = NULL, *redirect = NULL;

    w->body_len = 0;
    curl_easy_setopt(w->curl, CURLOPT_URL, url);
    const CURLcode result = curl_easy_perform(w->curl);
    if (result != CURLE_OK && w->body_len < sizeof w->body) {
        (void)complain(url, curl_easy_strerror(result));
        return;
    }
    puts(url);
    curl_easy_getinfo(w->curl, CURLINFO_CONTENT_TYPE, &type);
    curl_easy_getinfo(w->curl, CURLINFO_REDIRECT_URL, &redirect);
    if (redirect != NULL)
        follow(w, url, redirect);
    else if (type != NULL && strncasecmp(type, "text/html", 9) == 0)
        follow_links(w, url);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Fetches those of n URLs that no process has fetched. */
static bool work(struct worker *w, size_t n)
{
    hibloom_item items[BATCH];
    bool seen[BATCH];
    size_t different = 0;

    qsort(w->urls, n, sizeof w->urls[0], by_text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(w->urls[i], w->urls[i - 1]) != 0)
            items[different++] = (hibloom_item){w->urls[i], strlen(w->urls[i])};
    if (!check(w, hibloom_contains_many(w->seen, items, different, seen)))
        return false;
    for (size_t i = 0; i < different; i++)
        if (!seen[i])
            fetch(w, items[i].data);
    fflush(stdout);
    return check(w, hibloom_add_many(w->seen, items, different, NULL));
}

/* ---- A level ------------------------------------------------------------------------ */

static bool work_off(struct worker *w, FILE *links)
{
    size_t n = 0;
    bool good = true;

    while (good && fgets(w->urls[n], sizeof w->urls[n], links) != NULL) {
        w->urls[n][strcspn(w->urls[n], "\n")] = '\0';
        if (++n == BATCH) {
            good = work(w, n);
            n = 0;
        }
    }
    return good && (n == 0 || work(w, n)) && !ferror(links);
}

static bool open_all(struct worker *w)
{
    const struct crawl *c = w->crawl;
    /* the server keeps what it has acknowledged, see above */
    const char *const options[] = {"retry", "30s", "accept_restarts", "yes", "client_name", "crawl", NULL};
    const hibloom_setup setup = {.size = sizeof setup, .options = options};
    char path[128];

    if (!check(w, hibloom_connect(&w->store, c->uri, &setup)) ||
        !check(w, hibloom_open(&w->seen, w->store, c->name, NULL)))
        return false;
    for (unsigned to = 0; to < c->processes; to++) {
        links_path(c, w->level + 1, w->me, to, path);
        if ((w->links[to] = fopen(path, "w")) == NULL)
            return complain(path, strerror(errno));
    }
    w->curl = curl_easy_init();
    w->parsed = curl_url();
    char *start = w->curl != NULL && w->parsed != NULL ? normal_url(w, c->start, "") : NULL;
    w->site = start != NULL ? site_of(w->parsed) : NULL;
    curl_free(start);
    if (w->site == NULL)
        return complain(c->start, "no URL, or no memory");
    curl_easy_setopt(w->curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(w->curl, CURLOPT_WRITEDATA, w);
    curl_easy_setopt(w->curl, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(w->curl, CURLOPT_USERAGENT, "hibloom-crawl");
    return true;
}

static bool close_all(struct worker *w)
{
    bool good = true;

    for (unsigned to = 0; to < w->crawl->processes; to++)
        if (w->links[to] != NULL && fclose(w->links[to]) != 0)
            good = complain(w->crawl->dir, strerror(errno));
    curl_free(w->site);
    curl_url_cleanup(w->parsed);
    curl_easy_cleanup(w->curl);
    hibloom_close(w->seen);
    hibloom_store_free(w->store);
    return good;
}

static struct worker *new_worker(const struct crawl *c, unsigned level, unsigned me)
{
    struct worker *w = calloc(1, sizeof *w);

    if (w == NULL) {
        perror("crawl");
        exit(EXIT_FAILURE);
    }
    w->crawl = c;
    w->level = level;
    w->me = me;
    return w;
}

static bool run_worker(const struct crawl *c, unsigned level, unsigned me)
{
    struct worker *w = new_worker(c, level, me);
    char path[128];

    bool good = open_all(w);
    for (unsigned from = 0; good && from < c->processes; from++) {
        links_path(c, level, from, me, path);
        FILE *links = fopen(path, "r");
        if (links == NULL)
            continue; /* at level 0 there is one file alone */
        good = work_off(w, links);
        fclose(links);
        remove(path);
    }
    good = close_all(w) && good;
    free(w);
    return good;
}

/* All processes; good only if each is. */
static bool run_level(const struct crawl *c, unsigned level)
{
    pid_t pids[PROCESSES_MAX];
    bool good = true;
    int status;

    fflush(stdout);
    for (unsigned i = 0; i < c->processes; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            exit(run_worker(c, level, i) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    for (unsigned i = 0; i < c->processes; i++)
        if (pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || status != 0)
            good = false;
    return good;
}

/* Whether any process has found a link there. Removes the empty files, or all. */
static bool has_links(const struct crawl *c, unsigned level, bool remove_all)
{
    bool found = false;
    struct stat file;
    char path[128];

    for (unsigned i = 0; i < c->processes * c->processes; i++) {
        links_path(c, level, i / c->processes, i % c->processes, path);
        const bool filled = stat(path, &file) == 0 && file.st_size > 0;
        found = found || filled;
        if (!filled || remove_all)
            remove(path);
    }
    return found;
}

/* ---- The crawl ------------------------------------------------------------------------ */

/* The filter that is there, or a new one; and the start page as the only link of level 0. */
static bool begin(const struct crawl *c)
{
    struct worker *w = new_worker(c, 0, 0);
    char path[128];

    hibloom_status status = hibloom_connect(&w->store, c->uri, NULL);
    if (status == HIBLOOM_OK)
        status = hibloom_open(&w->seen, w->store, c->name, NULL);
    if (status == HIBLOOM_ENOTFOUND)
        status = hibloom_open(&w->seen, w->store, c->name, "capacity=1M error=0.001");
    bool good = check(w, status);
    w->parsed = curl_url();
    char *start = w->parsed != NULL ? normal_url(w, c->start, "") : NULL;
    if (start != NULL) {
        links_path(c, 0, 0, owner_of(start, c->processes), path);
        FILE *links = fopen(path, "w");
        good = links != NULL && fprintf(links, "%s\n", start) > 0 && good;
        good = links != NULL && fclose(links) == 0 && good;
    } else {
        good = complain(c->start, "is no URL");
    }
    curl_free(start);
    good = close_all(w) && good;
    free(w);
    return good;
}

int main(int argc, char **argv)
{
    struct crawl c = {.dir = "/tmp/crawl-XXXXXX", .processes = 4, .depth = 50};

    if (argc > 4)
        c.processes = (unsigned)strtoul(argv[4], NULL, 10);
    if (argc > 5)
        c.depth = (unsigned)strtoul(argv[5], NULL, 10);
    if (argc < 4 || c.processes < 1 || c.processes > PROCESSES_MAX) {
        fprintf(stderr, "usage: %s URI NAME START [PROCESSES [DEPTH]]\n", argv[0]);
        return EXIT_FAILURE;
    }
    c.uri = argv[1];
    c.name = argv[2];
    c.start = argv[3];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || mkdtemp(c.dir) == NULL) {
        perror("crawl");
        return EXIT_FAILURE;
    }
    bool good = begin(&c);
    unsigned level = 0;
    for (; good && level < c.depth && has_links(&c, level, false); level++)
        good = run_level(&c, level);
    (void)has_links(&c, level, true);
    rmdir(c.dir);
    xmlCleanupParser();
    curl_global_cleanup();
    return good && fclose(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
