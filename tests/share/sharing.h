/* sharing.h: the comparison of a filter of ours with that of another program,
 * both ways, for peers.c and format.h, which say what to compare.
 *
 * The other side is a program in this directory, run as a process: it knows
 * the same bitmap by the same few numbers, and nothing else of ours. Where its
 * interpreter or a module of it is missing, the test fails. */
#ifndef HIBLOOM_TEST_SHARING_H
#define HIBLOOM_TEST_SHARING_H

#include "../support/test.h"
#include "../support/urls.h"
#include "base/store.h"
#include "spec/positions.h"

#include <hiredis/hiredis.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEER_WORDS 4

struct peer {
    const char *spec;                 /* how hibloom names the filter */
    const char *program[PEER_WORDS];  /* the other side: its command line up to MODE, */
    const char *settings[PEER_WORDS]; /* and how it names the filter; the rest NULL */
};

/* ---- Items ------------------------------------------------------------------- */

struct items {
    hibloom_item *list;
    size_t n, room;
};

static void items_push(struct items *items, const void *data, size_t len)
{
    if (items->n == items->room) {
        items->room = items->room == 0 ? 1024 : 2 * items->room;
        items->list = realloc(items->list, items->room * sizeof *items->list);
        assert_non_null(items->list);
    }
    char *copy = malloc(len + 1);
    assert_non_null(copy);
    if (len > 0)
        memcpy(copy, data, len);
    items->list[items->n++] = (hibloom_item){copy, len};
}

static void items_free(struct items *items)
{
    for (size_t i = 0; i < items->n; i++)
        free((void *)(uintptr_t)items->list[i].data);
    free(items->list);
}

/* Those that trip programs up. */
static void items_push_awkward(struct items *items)
{
    static const hibloom_item awkward[] = {
        {"", 0},
        {"0", 1}, /* false to PHP, but unequal to null */
        {"\0", 1},
        {"\n", 1},
        {"a\0b\nc\r\n", 7},
        {"\xff\xfe\x80\x00\x7f", 5},
        {"\xe5\xb8\x83\xe9\x9a\x86\xe8\xbf\x87\xe6\xbb\xa4\xe5\x99\xa8", 15},
        {"Z\xc3\xbcrich \xf0\x9f\x8c\xb8", 12},
        {"\xc3\x28 no UTF-8", 11},
        {"12345678901234567890", 20},
    };
    unsigned char all_ff[400];

    memset(all_ff, 0xff, sizeof all_ff);
    for (size_t i = 0; i < sizeof awkward / sizeof *awkward; i++)
        items_push(items, awkward[i].data, awkward[i].len);
    for (size_t len = sizeof all_ff; len > 0; len = len * 2 / 3)
        items_push(items, all_ff, len);
}

static void items_push_uids(struct items *items, size_t n)
{
    struct test_random random = test_random_new();

    for (size_t i = 0; i < n; i++) {
        char uid[11];
        snprintf(uid, sizeof uid, "%010" PRIu64, test_random_below(&random, UINT64_C(10000000000)));
        items_push(items, uid, 10);
    }
}

/* Every `step`th of the different URLs in the test data: the first, or one behind it. */
static void items_push_urls(struct items *items, size_t step, size_t first)
{
    size_t n;
    const char *const *urls = urls_all(&n);

    for (size_t i = first; i < n; i += step)
        items_push(items, urls[i], strlen(urls[i]));
}

/* ---- The other side ------------------------------------------------------------ */

static FILE *items_file(const hibloom_item *items, size_t n)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    for (size_t i = 0; i < n; i++) {
        const size_t len = items[i].len;
        const unsigned char head[4] = {len & 0xff, len >> 8 & 0xff, len >> 16 & 0xff, len >> 24 & 0xff};
        fwrite(head, 1, sizeof head, file);
        fwrite(items[i].data, 1, len, file);
    }
    assert_int_equal(fflush(file), 0);
    rewind(file);
    return file;
}

static int spawn(const char *const *argv, const int *fds, int n)
{
    posix_spawn_file_actions_t files;
    pid_t pid;

    posix_spawn_file_actions_init(&files);
    for (int i = 0; i < n; i += 2)
        posix_spawn_file_actions_adddup2(&files, fds[i], fds[i + 1]);
    if (posix_spawnp(&pid, argv[0], &files, NULL, (char **)(uintptr_t)argv, environ) != 0)
        fail_msg("%s is not installed", argv[0]);
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

/* The exit status of a Python program. One interpreter runs all of them: see host.py. */
static int host_run(const char *const *argv, int in, int out)
{
    static FILE *runs, *ends;
    int status = -1;

    if (runs == NULL) {
        const char *const host[] = {argv[0], argv[1], "tests/share/host.py", NULL};
        int to[2], from[2];

        assert_int_equal(pipe2(to, O_CLOEXEC), 0);
        assert_int_equal(pipe2(from, O_CLOEXEC), 0);
        (void)spawn(host, (const int[]){to[0], 3, from[1], 4}, 4);
        close(to[0]);
        close(from[1]);
        runs = fdopen(to[1], "w");
        ends = fdopen(from[0], "r");
    }
    fprintf(runs, "/proc/%d/fd/%d\t/proc/%d/fd/%d", (int)getpid(), in, (int)getpid(), out);
    for (size_t i = 2; argv[i] != NULL; i++)
        fprintf(runs, "\t%s", argv[i]);
    fprintf(runs, "\n");
    assert_int_equal(fflush(runs), 0);
    assert_int_equal(fscanf(ends, "%d", &status), 1);
    return status;
}

/* Runs it in a mode, with the items as its input and what it prints as the
 * result, which must be read to its end. key NULL: the mode needs no Redis. */
static FILE *peer_run(const struct peer *peer, const char *mode, const char *key, const hibloom_item *items, size_t n)
{
    const char *argv[2 * PEER_WORDS + 4];
    size_t argc = 0;

    for (size_t i = 0; i < PEER_WORDS && peer->program[i] != NULL; i++)
        argv[argc++] = peer->program[i];
    argv[argc++] = mode;
    if (key != NULL) {
        argv[argc++] = test_uri();
        argv[argc++] = key;
    }
    for (size_t i = 0; i < PEER_WORDS && peer->settings[i] != NULL; i++)
        argv[argc++] = peer->settings[i];
    argv[argc] = NULL;

    FILE *in = items_file(items, n), *out = tmpfile();
    int status;

    assert_non_null(out);
    if (strstr(argv[0], "python3") != NULL) {
        status = host_run(argv, fileno(in), fileno(out));
    } else {
        const int pid = spawn(argv, (const int[]){fileno(in), STDIN_FILENO, fileno(out), STDOUT_FILENO}, 4);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    if (status != 0)
        fail_msg("%s failed, see above", peer->program[0]);
    fclose(in);
    rewind(out);
    return out;
}

static void assert_at_end(FILE *out)
{
    assert_int_equal(fgetc(out), EOF);
    fclose(out);
}

static void peer_fill(const struct peer *peer, const char *key, const hibloom_item *items, size_t n)
{
    assert_at_end(peer_run(peer, "fill", key, items, n));
}

static void peer_answers(const struct peer *peer, const char *mode, const char *key, const hibloom_item *items,
                         size_t n, bool *answers)
{
    FILE *out = peer_run(peer, mode, key, items, n);

    for (size_t i = 0; i < n; i++) {
        const int digit = fgetc(out);
        assert_true(digit == '0' || digit == '1');
        assert_int_equal(fgetc(out), '\n');
        answers[i] = digit == '1';
    }
    assert_at_end(out);
}

/* ---- Comparing ------------------------------------------------------------------ */

static struct spec spec_of(const struct peer *peer)
{
    struct spec spec;

    print_message("  %s\n", peer->spec);
    assert_ok(spec_parse(&spec, peer->spec), NULL);
    return spec;
}

static bool excluded(const struct spec *spec, const hibloom_item *item)
{
    return spec->empty_excluded && item->len == 0;
}

/* Our positions of an item as the other side prints them. */
static void print_positions(const struct spec *spec, const hibloom_item *item, char *buf, size_t size)
{
    const bool keyed = spec->layout == LAYOUT_PARTITIONED;
    hibloom_position positions[HIBLOOM_HASHES_MAX];
    size_t used = 0;

    buf[0] = '\0';
    if (excluded(spec, item))
        return;
    assert_ok(positions_of(spec, item->data, item->len, positions), NULL);
    for (uint32_t i = 0; i < spec->hashes; i++) {
        if (i > 0)
            used += (size_t)snprintf(buf + used, size - used, ",");
        if (keyed)
            used += (size_t)snprintf(buf + used, size - used, "%" PRIu64 ":", positions[i].key);
        used += (size_t)snprintf(buf + used, size - used, "%" PRIu64, positions[i].bit);
        assert_true(used < size);
    }
}

/* The same bits for a ninth of the different URLs, other ones for each peer, and then some. */
static void compare_positions(const struct peer *peer)
{
    static size_t turn;
    const struct spec spec = spec_of(peer);
    struct items items = {0};
    char ours[4096], theirs[4096];

    items_push_awkward(&items);
    items_push_uids(&items, 1000);
    items_push_urls(&items, 9, turn++ % 9);
    FILE *out = peer_run(peer, "positions", NULL, items.list, items.n);

    for (size_t i = 0; i < items.n; i++) {
        assert_non_null(fgets(theirs, sizeof theirs, out));
        theirs[strcspn(theirs, "\n")] = '\0';
        print_positions(&spec, &items.list[i], ours, sizeof ours);
        if (strcmp(ours, theirs) != 0)
            print_message("  item %zu, \"%.*s\"\n", i, (int)items.list[i].len, (const char *)items.list[i].data);
        assert_string_equal(ours, theirs);
    }
    assert_at_end(out);
    items_free(&items);
}

static redisReply *bitmap(redisContext *redis, const char *name, const char *suffix)
{
    redisReply *reply = redisCommand(redis, "GET %s%s", name, suffix);

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    while (reply->len > 0 && reply->str[reply->len - 1] == '\0')
        reply->len--; /* whether a bit not set is stored or not is no difference */
    return reply;
}

static void assert_same_bitmaps(const struct spec *spec, const char *one, const char *other)
{
    const bool keyed = spec->layout == LAYOUT_PARTITIONED;
    redisContext *redis = test_redis();

    for (uint32_t key = 0; key < (keyed ? spec->hashes : 1); key++) {
        char suffix[16] = "";

        if (keyed)
            snprintf(suffix, sizeof suffix, ":%" PRIu32, key);
        redisReply *a = bitmap(redis, one, suffix), *b = bitmap(redis, other, suffix);
        assert_int_equal(a->len, b->len);
        assert_memory_equal(a->str, b->str, a->len);
        freeReplyObject(a);
        freeReplyObject(b);
    }
    redisFree(redis);
}

/* A bitmap, half of whose items are in it. */
struct sample {
    char name[TEST_NAME_SIZE];
    const hibloom_item *list;
    size_t n, added; /* the first ones */
};

/* Some items of every kind, those with an even number first, or an odd one. */
static hibloom_item *sample_items(const struct items *items, size_t parity, size_t *added)
{
    hibloom_item *list = calloc(items->n, sizeof *list);
    size_t n = 0;

    assert_non_null(list);
    for (size_t i = parity; i < items->n; i += 2)
        list[n++] = items->list[i];
    *added = n;
    for (size_t i = 1 - parity; i < items->n; i += 2)
        list[n++] = items->list[i];
    return list;
}

/* Both sides give the same answers: yes to what was added and is not excluded, and to the rest what their bits say. */
static void assert_same_answers(const struct peer *peer, hibloom *filter, const struct sample *sample)
{
    const struct spec *spec = &filter->spec;
    bool *ours = calloc(sample->n, sizeof *ours), *theirs = calloc(sample->n, sizeof *theirs);
    size_t refused = 0;

    assert_true(ours != NULL && theirs != NULL);
    assert_ok(hibloom_contains_many(filter, sample->list, sample->n, ours), NULL);
    peer_answers(peer, "read", sample->name, sample->list, sample->n, theirs);
    for (size_t i = 0; i < sample->n; i++) {
        assert_int_equal(ours[i], theirs[i]);
        if (i < sample->added)
            assert_int_equal(ours[i], !excluded(spec, &sample->list[i]));
        refused += !ours[i];
    }
    assert_true(refused > 100);
    free(ours);
    free(theirs);
}

/* The other side fills and hibloom reads, and would add the same bits. */
static void check_theirs(const struct peer *peer, const struct spec *spec, hibloom_store *store,
                         const struct sample *sample)
{
    bool *is_new = calloc(sample->added, sizeof *is_new);
    hibloom *filter;

    assert_non_null(is_new);
    peer_fill(peer, sample->name, sample->list, sample->added);
    assert_ok(hibloom_attach(&filter, store, sample->name, test_text(spec)), store);
    assert_same_answers(peer, filter, sample);
    assert_ok(hibloom_add_many(filter, sample->list, sample->added, is_new), store);
    for (size_t i = 0; i < sample->added; i++)
        assert_false(is_new[i]);
    hibloom_close(filter);
    free(is_new);
}

/* hibloom fills, in both ways it has of adding, and the other side reads. */
static void check_ours(const struct peer *peer, const struct spec *spec, hibloom_store *store,
                       const struct sample *sample)
{
    const size_t half = sample->added / 2;
    bool *is_new = calloc(sample->added, sizeof *is_new);
    hibloom *filter;

    assert_non_null(is_new);
    assert_ok(hibloom_attach(&filter, store, sample->name, test_text(spec)), store);
    assert_ok(hibloom_add_many(filter, sample->list, half, NULL), store);
    assert_ok(hibloom_add_many(filter, sample->list + half, sample->added - half, is_new), store);
    assert_same_answers(peer, filter, sample);
    hibloom_close(filter);
    free(is_new);
}

static void push_some_of_every_kind(struct items *items)
{
    items_push_awkward(items);
    items_push_uids(items, 300);
    items_push_urls(items, 100, 0);
}

/* Both ways, once with each half of the items; and the two bitmaps, filled
 * with the same items by the two sides, are the same. */
static void compare_filters(const struct peer *peer)
{
    const struct spec spec = spec_of(peer);
    hibloom_store *store = test_store(NULL);
    struct items items = {0};

    push_some_of_every_kind(&items);
    for (size_t parity = 0; parity < 2; parity++) {
        size_t added;
        hibloom_item *list = sample_items(&items, parity, &added);
        struct sample theirs = {"", list, items.n, added}, ours = theirs;

        test_name(theirs.name);
        test_name(ours.name);
        check_theirs(peer, &spec, store, &theirs);
        check_ours(peer, &spec, store, &ours);
        assert_same_bitmaps(&spec, theirs.name, ours.name);
        free(list);
    }
    hibloom_store_free(store);
    items_free(&items);
}

/* The same for a bitmap so large that one of it is enough: it is not fetched whole, and removed at once. */
static void compare_large_filter(const struct peer *peer)
{
    const struct spec spec = spec_of(peer);
    hibloom_store *store = test_store(NULL);
    struct items items = {0};
    size_t added;

    push_some_of_every_kind(&items);
    hibloom_item *list = sample_items(&items, 0, &added);
    struct sample theirs = {"", list, items.n, added};
    redisContext *redis = test_redis();

    test_name(theirs.name);
    check_theirs(peer, &spec, store, &theirs);
    test_command(redis, "UNLINK %s", theirs.name);
    redisFree(redis);
    hibloom_store_free(store);
    free(list);
    items_free(&items);
}

#endif
