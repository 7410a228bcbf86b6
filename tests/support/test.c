/* The helpers of all test programs. See test.h. */
#include "test.h"

#include "redis/store.h"
#include "redis_server.h"
#include "spec/request.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- Where to test ---------------------------------------------------------- */

static const char *external_uri(void)
{
    const char *uri = getenv("HIBLOOM_TEST_URL");

    return uri != NULL && uri[0] != '\0' ? uri : NULL;
}

static struct redis_server *own_server(void)
{
    static struct redis_server *server;

    if (server == NULL)
        server = redis_server_start(NULL);
    return server;
}

const char *test_uri(void)
{
    const char *uri = external_uri();

    return uri != NULL ? uri : redis_server_uri(own_server());
}

static void run(redisContext *context, const char *format, const char *argument)
{
    redisReply *reply = redisCommand(context, format, argument);

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "HIBLOOM_TEST_URL: %s\n", reply != NULL ? reply->str : context->errstr);
        exit(EXIT_FAILURE);
    }
    freeReplyObject(reply);
}

/* Plain URIs are enough here: redis://[:password@]host[:port][/db] and unix:///path, without escapes. The library's own
 * reading of URIs is under test and so not to be used. */
static redisContext *connect_external(const char *uri)
{
    char host[256] = "127.0.0.1", password[256] = "", db[16] = "0";
    int port = 6379;
    redisContext *context;
    const char *at = strrchr(uri, '@');

    if (strncmp(uri, "unix://", 7) == 0) {
        context = redisConnectUnix(uri + 7);
    } else {
        if (at != NULL)
            sscanf(uri, "redis://%*[^:]:%255[^@]", password);
        if (at != NULL && password[0] == '\0')
            sscanf(uri, "redis://:%255[^@]", password);
        at = at != NULL ? at + 1 : uri + strlen("redis://");
        sscanf(at, "%255[^:/]", host);
        sscanf(at, "%*[^:/]:%d", &port);
        sscanf(at, "%*[^/]/%15s", db);
        context = redisConnect(host, port);
    }
    if (context == NULL || context->err != 0) {
        fprintf(stderr, "HIBLOOM_TEST_URL: %s\n", context != NULL ? context->errstr : "out of memory");
        exit(EXIT_FAILURE);
    }
    if (password[0] != '\0')
        run(context, "AUTH %s", password);
    run(context, "SELECT %s", db);
    return context;
}

struct redisContext *test_redis(void)
{
    const char *uri = external_uri();

    return uri != NULL ? connect_external(uri) : redis_server_connect(own_server());
}

/* ---- Names ------------------------------------------------------------------ */

static char name_prefix[TEST_NAME_SIZE / 2];
static pid_t names_owner;

/* Scans once; a server of the tests' own takes its keys with it instead. */
static void remove_leftovers(void)
{
    redisContext *context;
    char cursor[32] = "0";

    if (external_uri() == NULL || names_owner != getpid())
        return;
    context = test_redis();
    do {
        redisReply *page = redisCommand(context, "SCAN %s MATCH *%s* COUNT 1000", cursor, name_prefix);

        if (page == NULL || page->type != REDIS_REPLY_ARRAY || page->elements != 2)
            break;
        snprintf(cursor, sizeof cursor, "%s", page->element[0]->str);
        for (size_t i = 0; i < page->element[1]->elements; i++)
            run(context, "DEL %s", page->element[1]->element[i]->str);
        freeReplyObject(page);
    } while (strcmp(cursor, "0") != 0);
    redisFree(context);
}

const char *test_name(char buf[TEST_NAME_SIZE])
{
    static unsigned count;
    struct timespec now;

    if (names_owner == 0) {
        names_owner = getpid();
        clock_gettime(CLOCK_REALTIME, &now);
        /* Containers on one Redis may share a process id. */
        snprintf(name_prefix, sizeof name_prefix, "hibloom-test-%d-%09ld", (int)getpid(), now.tv_nsec);
        atexit(remove_leftovers);
    }
    snprintf(buf, TEST_NAME_SIZE, "%s-%d-%u", name_prefix, (int)getpid(), count++);
    return buf;
}

void test_item_by_item(hibloom_store *store, bool always)
{
    if (store->class == &redis_store_class)
        ((struct redis_store *)store)->server.cost.network_mb_s = always ? NAN : 1000; /* NAN: nothing is less */
}

hibloom_store *test_connect_any_way(const char *uri, const hibloom_setup *setup)
{
    hibloom_store *store = NULL;

    assert_ok(hibloom_connect(&store, uri, setup), store);
    return store;
}

hibloom_store *test_connect(const char *uri, const hibloom_setup *setup)
{
    hibloom_store *store = test_connect_any_way(uri, setup);

    test_item_by_item(store, true);
    return store;
}

hibloom_store *test_store(const hibloom_setup *setup)
{
    return test_connect(test_uri(), setup);
}

struct spec test_spec(const char *text)
{
    struct request request;
    struct error error;
    const hibloom_status status = request_read(&request, text, &error);

    if (status != HIBLOOM_OK)
        fail_msg("'%s': %s", text, error.words);
    return request.spec;
}

const char *test_text(const struct spec *spec)
{
    static char texts[4][HIBLOOM_TEXT_SIZE];
    static unsigned next;
    char *text = texts[next++ % 4];

    assert_int_equal(spec_format_said(spec, text, sizeof texts[0]), HIBLOOM_OK);
    return text;
}

hibloom *test_open(hibloom_store *store, const char *name, const char *text)
{
    hibloom *filter = NULL;

    assert_ok(hibloom_open(&filter, store, name, text), store);
    return filter;
}

hibloom *test_attach(hibloom_store *store, const char *name, const char *text)
{
    const struct spec spec = test_spec(text); /* the hash may be unsaid */
    hibloom *filter = NULL;

    assert_ok(hibloom_attach(&filter, store, name, test_text(&spec)), store);
    return filter;
}

void test_close(hibloom *filter, hibloom_store *store)
{
    hibloom_close(filter);
    hibloom_store_free(store);
}

long long test_command(struct redisContext *redis, const char *format, ...)
{
    va_list arguments;
    redisReply *reply;
    long long integer;

    va_start(arguments, format);
    reply = redisvCommand(redis, format, arguments);
    va_end(arguments);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply != NULL ? reply->str : redis->errstr);
    integer = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    freeReplyObject(reply);
    return integer;
}

/* ---- Asserting -------------------------------------------------------------- */

void test_assert_status(hibloom_status status, hibloom_status expected, const hibloom_store *store, const char *file,
                        int line)
{
    if (status == expected)
        return;
    print_error("status %d (%s), not %d (%s); the store's error: \"%s\"\n", (int)status, hibloom_strerror(status),
                (int)expected, hibloom_strerror(expected), hibloom_store_error(store));
    _fail(file, line);
}

void test_assert_words(const hibloom_store *store, const char *words, const char *file, int line)
{
    if (hibloom_store_error(store)[0] != '\0' && strstr(hibloom_store_error(store), words) != NULL)
        return;
    print_error("\"%s\" is not in the store's error: \"%s\"\n", words, hibloom_store_error(store));
    _fail(file, line);
}

/* ---- Chance ----------------------------------------------------------------- */

static uint64_t program_seed(void)
{
    static uint64_t seed;
    static bool known;

    if (!known) {
        const char *given = getenv("HIBLOOM_TEST_SEED");
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)now.tv_nsec << 20 ^ (uint64_t)now.tv_sec;
        known = true;
        fprintf(stderr, "HIBLOOM_TEST_SEED=%" PRIu64 "\n", seed);
    }
    return seed;
}

struct test_random test_random_new(void)
{
    return (struct test_random){.state = program_seed()};
}

/* A Weyl sequence through Stafford's mixer (SplitMix64, Steele et al. 2014):
 * any seed is a good one, which is what a number typed by hand needs. */
uint64_t test_random_u64(struct test_random *random)
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t test_random_below(struct test_random *random, uint64_t bound)
{
    return test_random_u64(random) % bound; /* the bias does not matter to a test */
}

void test_random_bytes(struct test_random *random, void *buf, size_t len)
{
    unsigned char *bytes = buf;

    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)test_random_u64(random);
}

bool test_is_slow(void)
{
    return getenv("HIBLOOM_TEST_LONG") == NULL;
}

/* ---- Time ------------------------------------------------------------------- */

uint64_t test_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void test_sleep_ms(unsigned milliseconds)
{
    const struct timespec pause = {.tv_sec = (time_t)(milliseconds / 1000),
                                   .tv_nsec = (long)(milliseconds % 1000) * 1000000};

    nanosleep(&pause, NULL);
}

hibloom_stats test_stats(const hibloom_store *store)
{
    hibloom_stats stats;

    hibloom_get_stats(store, &stats, sizeof stats);
    return stats;
}

size_t test_count_true(const bool *flags, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += flags[i];
    return count;
}
