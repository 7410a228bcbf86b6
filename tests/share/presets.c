/* presets.c: filters shared with nine other libraries, on a real Redis, both ways.
 *
 * None of them is in Debian. So the other side is presets.py: their formulas, as
 * docs/presets.md has them, in Python, with nothing of ours. Both sides fill one filter,
 * each finds what the other one has added, and they agree on sizes. */
#include "support/test.h"
#include "spec/positions.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 30, SIZES = 300, RANDOM_ITEMS = 40, RANDOM_LENGTH = 200 };

static const char *const presets[] = {
    "pyrebloom capacity=1000 error=0.0001",
    "scrapy-redis bits=1048576 hashes=6",
    "scrapy-redis bits=1048576 hashes=6 chars=latin1",
    "go-zero bits=100003",
    "rueidis capacity=1000 error=0.0001",
    "redisson capacity=1000 error=0.0001",
    "redisson capacity=1000 error=0.0001 codec=string",
    "bloomfilter-rb bits=100003 hashes=7 seeds=1700000000",
    "taganaka capacity=1000 error=0.0001",
    "orestes capacity=1000 error=0.0001",
    "orestes capacity=1000 error=0.0001 index=murmur3",
    "redisbloom capacity=1000 error=0.0001",
};

/* ---- The other side: one process for all lines ---- */

static struct {
    FILE *in, *out;
    pid_t pid;
} peer;

static int set_up(void **state)
{
    int in[2], out[2];

    const char *uri = test_uri();
    if (pipe(in) != 0 || pipe(out) != 0 || (peer.pid = fork()) < 0)
        return -1;
    if (peer.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        close(out[0]);
        execl("/usr/bin/python3", "/usr/bin/python3", "-Bu", "tests/share/presets.py", uri, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    peer.in = fdopen(in[1], "w");
    peer.out = fdopen(out[0], "r");
    return peer.in == NULL || peer.out == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    int status;

    fclose(peer.in);
    fclose(peer.out);
    return waitpid(peer.pid, &status, 0) == peer.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static void ask_peer(char answer[64], const char *what, const char *name, const char *item, const char *preset)
{
    fprintf(peer.in, "%s %s %s %s\n", what, name, item, preset);
    fflush(peer.in);
    if (fgets(answer, 64, peer.out) == NULL)
        fail_msg("presets.py failed, see above: %s %s", what, preset);
    answer[strcspn(answer, "\n")] = '\0';
}

static bool peer_says(const char *what, const char *name, const char *item, const char *preset)
{
    char answer[64];

    ask_peer(answer, what, name, item, preset);
    assert_true(strcmp(answer, "0") == 0 || strcmp(answer, "1") == 0);
    return answer[0] == '1';
}

/* ---- One filter, two sides ---- */

/* Of all lengths, and with characters of one to four bytes; no blanks, for a line has words. */
static void write_item(char item[128], size_t i)
{
    static const char *const ends[] = {"", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x99\x82"};
    const int len = snprintf(item, 128, "%zu%.*s", i, (int)(i * 3 % 80),
                             "/abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ/0123456789-0123456789-012");

    snprintf(item + len, 128 - (size_t)len, "%s", ends[i % 4]);
}

static void check_preset(hibloom_store *store, redisContext *redis, const char *preset)
{
    const bool counts = strncmp(preset, "rueidis", 7) == 0;
    char name[TEST_NAME_SIZE], item[128];
    bool is_new, found;

    print_message("  %s\n", preset);
    test_name(name);
    write_item(item, 3 * ITEMS);
    assert_true(peer_says("add", name, item, preset)); /* it makes what lies beside */
    hibloom *filter = test_attach(store, name, preset);
    for (size_t i = 0; i < ITEMS; i++) {
        write_item(item, i);
        if (i % 2 == 0) {
            assert_ok(hibloom_add(filter, item, strlen(item), &is_new), store);
            assert_true(is_new);
            assert_true(peer_says("has", name, item, preset));
            assert_false(peer_says("add", name, item, preset));
        } else {
            assert_true(peer_says("add", name, item, preset));
            assert_ok(hibloom_contains(filter, item, strlen(item), &found), store);
            assert_true(found);
            assert_ok(hibloom_add(filter, item, strlen(item), &is_new), store);
            assert_false(is_new);
        }
        write_item(item, ITEMS + i);
        assert_ok(hibloom_contains(filter, item, strlen(item), &found), store);
        assert_int_equal(found, peer_says("has", name, item, preset));
    }
    if (counts)
        assert_int_equal(test_command(redis, "INCRBY {%s}:c 0", name), ITEMS + 1);
    assert_dropped(filter, store);
}

static void each_side_finds_what_the_other_one_adds(void **state)
{
    hibloom_store *store = test_store(NULL);
    redisContext *redis = test_redis();

    for (size_t i = 0; i < COUNT(presets); i++)
        check_preset(store, redis, presets[i]);
    redisFree(redis);
    hibloom_store_free(store);
}

/* ---- Positions ---- */

/* Any bytes; or text of characters of one to four bytes, or of ASCII near kryo5's 32: eight of that, then at random. */
static size_t draw_item(struct test_random *random, int i, bool text, unsigned char item[4 * RANDOM_LENGTH])
{
    static const uint32_t most[] = {0x80, 0x800, 0xd800, 0x110000};
    const bool ascii = i < 8 || test_random_below(random, 2) == 0;
    size_t n = ascii ? 28 + (size_t)i % 8 : (size_t)test_random_below(random, RANDOM_LENGTH), len = 0;

    if (i >= 8 && test_random_below(random, 4) == 0)
        n %= 4;
    if (!text) {
        test_random_bytes(random, item, n);
        return n;
    }
    for (; n > 0; n--) {
        const uint32_t c = (uint32_t)test_random_below(random, ascii ? 0x80 : most[test_random_below(random, 4)]);
        const unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        if (c >= 0xd800 && c < 0xe000)
            continue;
        item[len++] = (unsigned char)(more == 0 ? c : (0xf00u >> (more + 1) & 0xff) | c >> 6 * more);
        for (unsigned rest = more; rest-- > 0;)
            item[len++] = (unsigned char)(0x80 | (c >> 6 * rest & 0x3f));
    }
    return len;
}

static void check_positions(struct test_random *random, const char *preset)
{
    const struct spec spec = test_spec(preset);
    hibloom_position at[HIBLOOM_HASHES_MAX];
    unsigned char item[4 * RANDOM_LENGTH];
    char theirs[4096], ours[4096];

    for (int i = 0; i < RANDOM_ITEMS; i++) {
        const size_t n = draw_item(random, i, spec.codec != CODEC_BYTES, item);
        size_t len = 0;
        assert_ok(positions_of(&spec, item, n, at), NULL);
        for (uint32_t k = 0; k < spec.hashes; k++)
            len += (size_t)snprintf(ours + len, sizeof ours - len, k > 0 ? " %" PRIu64 : "%" PRIu64, at[k].bit);
        fputs(n > 0 ? "at " : "at -", peer.in);
        for (size_t byte = 0; byte < n; byte++)
            fprintf(peer.in, "%02x", item[byte]);
        fprintf(peer.in, " %s\n", preset);
        fflush(peer.in);
        assert_non_null(fgets(theirs, sizeof theirs, peer.out));
        theirs[strcspn(theirs, "\n")] = '\0';
        if (strcmp(ours, theirs) != 0)
            fail_msg("%s, item %d of %zu bytes: ours %s, theirs %s", preset, i, n, ours, theirs);
    }
}

static void both_sides_compute_the_same_positions_of_any_bytes(void **state)
{
    static const char *const more[] = {"redisson capacity=1000 error=0.0001 codec=bytes",
                                       "pyrebloom capacity=400000000 error=0.01",
                                       "go-zero bits=4294967296",
                                       "scrapy-redis bits=4294967296 hashes=9",
                                       "rueidis capacity=7 error=0.5",
                                       "orestes capacity=70000000 error=0.000001 index=murmur3"};
    struct test_random random = test_random_new();

    for (size_t i = 0; i < COUNT(presets); i++)
        check_positions(&random, presets[i]);
    for (size_t i = 0; i < COUNT(more); i++)
        check_positions(&random, more[i]);
}

/* ---- Sizes ---- */

static void both_sides_compute_the_same_sizes(void **state)
{
    static const char *const sized[] = {"pyrebloom", "rueidis",    "redisson",           "taganaka",
                                        "orestes",   "redisbloom", "redisbloom growth=4"};
    struct test_random random = test_random_new();
    char preset[128], theirs[64], ours[64];
    struct spec spec;

    for (size_t i = 0; i < SIZES; i++) {
        const uint64_t n = 1 + test_random_below(&random, UINT64_C(1) << (1 + test_random_below(&random, 24)));
        const unsigned p = 1 + (unsigned)test_random_below(&random, 999);
        snprintf(preset, sizeof preset, "%s capacity=%" PRIu64 " error=0.%s%03u", sized[i % COUNT(sized)], n,
                 i % 2 == 0 ? "" : "000", p);
        if (spec_parse(&spec, preset) != HIBLOOM_OK)
            strcpy(ours, "0"); /* k or m is 0 there */
        else
            snprintf(ours, sizeof ours, "%" PRIu64 " %" PRIu32, spec.bits, spec.hashes);
        fprintf(peer.in, "size %s\n", preset);
        fflush(peer.in);
        assert_non_null(fgets(theirs, sizeof theirs, peer.out));
        theirs[strcspn(theirs, "\n")] = '\0';
        if (strcmp(ours, "0") == 0 ? strtoull(theirs, NULL, 10) != 0 && strstr(theirs, " 0") == NULL
                                   : strcmp(ours, theirs) != 0)
            fail_msg("%s: ours %s, theirs %s", preset, ours, theirs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_side_finds_what_the_other_one_adds),
        cmocka_unit_test(both_sides_compute_the_same_positions_of_any_bytes),
        cmocka_unit_test(both_sides_compute_the_same_sizes),
    };

    return cmocka_run_group_tests_name("presets", tests, set_up, tear_down);
}
