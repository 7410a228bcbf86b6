/* share/format.c: the stored form is what docs/format.md says, on a real Redis.
 *
 * format.py is a client that was written from that document alone. It and the library make, fill, read, clear, repair
 * and remove each other's filters; and the worked bytes of the document are run as they stand there. */
#include "share/format.h"

#define SEED " seed=0123456789abcdef"

/* Each is its canonical text, which is all that the other side takes. */
static const char *const specs[] = {
    "hash=xxh3 layout=classic bits=30001 hashes=7" SEED " capacity=3000 error=0.01",
    "hash=xxh3 layout=classic bits=100003 hashes=1" SEED " empty=excluded error=1e-06",
    "hash=xxh3 layout=blocked bits=30720 hashes=7" SEED,
    "hash=xxh3 layout=partitioned bits=4001 hashes=7" SEED,
    "hash=xxh3 layout=classic bits=30000 hashes=7 segments=5" SEED,
    "hash=xxh3 layout=blocked bits=40448 hashes=7 segments=3" SEED,
    "hash=xxh3 layout=classic bits=60000 hashes=7 segments=300" SEED " capacity=3000",
    "hash=siphash layout=classic bits=30000 hashes=7 seed=000102030405060708090a0b0c0d0e0f",
    "hash=xxh3 layout=classic bits=30000 hashes=7 segments=5 counters=4" SEED " capacity=3000",
};
#define SPECS (sizeof specs / sizeof *specs)
#define SINGLE 0
#define SEVERAL 4
#define COUNTING 8

/* The first half of the items is added to begin with. */
static size_t half;

static void start(size_t which)
{
    shared_start(specs[which], "tests/share/format.py");
    assert_string_equal(s.text, specs[which]);
    items_push_awkward(&s.items);
    items_push_uids(&s.items, 300);
    items_push_urls(&s.items, 1000, 0);
    half = s.items.n / 2;
}

/* Of `n` items that were added and those behind them, which were not: all of the former are found, and few of the latter. */
static void assert_holds(const bool *found, size_t n)
{
    size_t wrong = 0;

    for (size_t i = 0; i < s.items.n; i++) {
        if (i < n)
            assert_int_equal(found[i], !excluded(&s.spec, &s.items.list[i]));
        else
            wrong += found[i];
    }
    assert_true(wrong * 10 <= s.items.n - n);
}

/* Both sides say so, and say the same of each item. */
static void assert_both_hold(hibloom *filter, size_t n)
{
    bool *ours = calloc(s.items.n, sizeof *ours), *theirs = calloc(s.items.n, sizeof *theirs);

    assert_true(ours != NULL && theirs != NULL);
    assert_ok(hibloom_contains_many(filter, s.items.list, s.items.n, ours), s.store);
    peer_answers(&s.peer, "read", s.name, s.items.list, s.items.n, theirs);
    assert_holds(ours, n);
    assert_memory_equal(ours, theirs, s.items.n * sizeof *ours);
    free(ours);
    free(theirs);
}

/* The second half is added as well, by us or by them, who learn that most of it is new; and the first half is not. */
static void add_the_rest(hibloom *filter)
{
    const size_t n = s.items.n - half;
    bool *is_new = calloc(s.items.n, sizeof *is_new);
    size_t news = 0;

    assert_non_null(is_new);
    if (filter != NULL)
        assert_ok(hibloom_add_many(filter, s.items.list + half, n, is_new), s.store);
    else
        peer_answers(&s.peer, "add", s.name, s.items.list + half, n, is_new);
    for (size_t i = 0; i < n; i++)
        news += is_new[i];
    assert_true(news * 10 >= n * 9);
    if (filter != NULL)
        assert_ok(hibloom_add_many(filter, s.items.list, half, is_new), s.store);
    else
        peer_answers(&s.peer, "add", s.name, s.items.list, half, is_new);
    for (size_t i = 0; i < half; i++)
        assert_false(is_new[i]);
    free(is_new);
}

/* ---- The tests ----------------------------------------------------------------- */

static void positions_are_those_of_the_document(void **state)
{
    static const size_t which[] = {0, 2, 3}; /* the others are checked by what they find */

    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        const char *spec = specs[which[i]];
        struct peer peer = {spec, {"/usr/bin/python3", "-B", "tests/share/format.py"}, {spec}};
        compare_positions(&peer);
    }
}

static void the_library_opens_what_the_document_makes(void)
{
    char text[SPEC_TEXT_SIZE];

    peer_does("create", s.text, half);
    hibloom *filter = opened(NULL);
    assert_ok(spec_format(&filter->spec, text, sizeof text), s.store);
    assert_string_equal(text, s.peer.spec);
    assert_both_hold(filter, half);
    add_the_rest(filter);
    assert_both_hold(filter, s.items.n);
    hibloom_close(filter);
}

static void the_library_opens_what_is_made_without_a_script(void)
{
    peer_does("plain", s.text, half);
    hibloom *filter = opened(&s.spec);
    assert_both_hold(filter, half);
    hibloom_close(filter);
}

static void the_document_opens_what_the_library_makes(void)
{
    hibloom *filter = opened(&s.spec);
    assert_ok(hibloom_add_many(filter, s.items.list, half, NULL), s.store);
    assert_both_hold(filter, half);
    add_the_rest(NULL);
    assert_both_hold(filter, s.items.n);
    peer_does("create", s.text, 0); /* there already, and the same */
    hibloom_close(filter);
}

static void each_side_clears_what_the_other_has_open(void)
{
    peer_does("create", s.text, half);
    hibloom *filter = opened(&s.spec);
    assert_both_hold(filter, half);
    peer_does("clear", NULL, 0);
    assert_both_hold(filter, 0);
    assert_ok(hibloom_add_many(filter, s.items.list, half, NULL), s.store);
    assert_both_hold(filter, half);
    assert_ok(hibloom_clear(filter), s.store);
    assert_both_hold(filter, 0);
    hibloom_close(filter);
}

/* What is added twice, by one side and the other, is in until both have removed it; then nothing is left. */
static void each_side_removes_what_the_other_has_added(void)
{
    const size_t all = s.items.n, n = s.items.n = 300;
    bool *was_in = calloc(n, sizeof *was_in);
    hibloom_info info;

    assert_non_null(was_in);
    hibloom *filter = opened(&s.spec);
    peer_answers(&s.peer, "add", s.name, s.items.list, n / 3, was_in);
    assert_ok(hibloom_add_many(filter, s.items.list, n / 3, NULL), s.store);
    assert_ok(hibloom_remove_many(filter, s.items.list, n / 3, was_in), s.store);
    assert_both_hold(filter, n / 3);
    peer_answers(&s.peer, "remove", s.name, s.items.list, n / 3, was_in);
    for (size_t i = 0; i < n / 3; i++)
        assert_true(was_in[i]);
    peer_answers(&s.peer, "remove", s.name, s.items.list, n, was_in);
    for (size_t i = 0; i < n; i++)
        assert_false(was_in[i]);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), s.store);
    assert_int_equal(info.bits_set, 0);
    free(was_in);
    hibloom_close(filter);
    s.items.n = all; /* they are freed */
}

static void each_side_notices_that_the_other_has_removed_it(void)
{
    bool found;
    hibloom *filter = opened(&s.spec);

    peer_does("drop", NULL, 0);
    assert_int_equal(keys_of("*"), 0);
    assert_status(hibloom_contains(filter, "a", 1, &found), HIBLOOM_ENOTFOUND, s.store);
    peer_does("create", s.text, half); /* of the same spec, and another filter all the same */
    assert_status(hibloom_add(filter, "a", 1, NULL), HIBLOOM_EMISMATCH, s.store);
    hibloom_close(filter);
    filter = opened(&s.spec);
    assert_both_hold(filter, half);
    assert_ok(hibloom_drop_by_name(s.store, s.name), s.store);
    assert_int_equal(keys_of("*"), 0);
    peer_does("create", s.text, 0);
    hibloom_close(filter);
}

/* Its adds go to keys that are gone, and it takes them back: nothing is in the way of the next filter. */
static void late_bits_of_the_other_side_are_taken_back(void)
{
    char said[16] = "";

    hibloom_close(opened(&s.spec));
    FILE *out = peer_run(&s.peer, "late", s.name, s.items.list, half);
    assert_non_null(fgets(said, sizeof said, out));
    assert_string_equal(said, "ENOTFOUND\n");
    assert_at_end(out);
    assert_int_equal(keys_of("*"), 0);
    hibloom *filter = opened(&s.spec);
    assert_both_hold(filter, 0);
    hibloom_close(filter);
}

static void each_side_repairs_for_the_other(void)
{
    bool *found = calloc(s.items.n, sizeof *found);
    hibloom *filter;

    assert_non_null(found);
    for (int ours = 0; ours < 2; ours++) {
        hibloom *before = opened(&s.spec);
        peer_answers(&s.peer, "add", s.name, s.items.list, s.items.n, found);
        assert_int_equal(test_command(s.redis, "DEL %s:1", s.name), 1);
        assert_status(hibloom_open(&filter, s.store, s.name, test_text(&s.spec)), HIBLOOM_ECORRUPT, s.store);
        if (ours)
            assert_ok(hibloom_repair(s.store, s.name), s.store);
        else
            peer_does("repair", NULL, 0);
        assert_status(hibloom_contains_many(before, s.items.list, s.items.n, found), HIBLOOM_ECORRUPT, s.store);
        filter = opened(&s.spec);
        peer_answers(&s.peer, "add", s.name, s.items.list, s.items.n, found);
        assert_both_hold(filter, s.items.n);
        hibloom_close(before);
        hibloom_close(filter);
    }
    free(found);
}

static void a_time_to_live_is_the_same_to_both(void)
{
    hibloom_info info;
    hibloom *filter = opened(&s.spec);

    peer_does("expire", "100", 0);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), s.store);
    assert_in_range(info.ttl_ms, 1, 100000);
    peer_does("clear", NULL, 0); /* keeps it */
    assert_ok(hibloom_get_info(filter, &info, sizeof info), s.store);
    assert_in_range(info.ttl_ms, 1, 100000);
    assert_ok(hibloom_expire(filter, 0), s.store);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), s.store);
    assert_int_equal(info.ttl_ms, -1);
    assert_both_hold(filter, 0);
    hibloom_close(filter);
}

/* ---- The document's own bytes ---------------------------------------------------- */

#define WORDS 4

/* A command as redis-cli takes it, its words cut out in place; of the key `seen` the name of the test. */
static redisReply *run_line(redisContext *redis, char *line, const char *name)
{
    const char *words[WORDS];
    int n = 0;

    for (char *at = line + strspn(line, " "); *at != '\0' && n < WORDS; at += strspn(at, " ")) {
        const char *end = *at == '"' ? "\"" : " ";
        at += *at == '"';
        words[n++] = at;
        at += strcspn(at, end);
        if (*at != '\0')
            *at++ = '\0';
    }
    assert_true(n > 1);
    assert_string_equal(words[1], "seen");
    words[1] = name;
    return redisCommandArgv(redis, n, words, NULL);
}

static void assert_said(const redisReply *reply, const char *expected)
{
    char said[512];

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_INTEGER)
        snprintf(said, sizeof said, "(integer) %lld", reply->integer);
    else
        snprintf(said, sizeof said, "\"%s\"", reply->str);
    assert_string_equal(said, expected);
}

/* The lines "    > COMMAND" with the answers below them. */
static void the_worked_bytes_are_what_redis_and_the_library_say(void **state)
{
    static const char mark[] = "    > ";
    FILE *file = fopen("docs/format.md", "r");
    redisContext *redis = test_redis();
    hibloom_store *store = test_store(NULL);
    hibloom *filter = NULL;
    char line[512], name[TEST_NAME_SIZE];
    size_t commands = 0;
    bool found;

    assert_non_null(file);
    test_name(name);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, mark, strlen(mark)) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        redisReply *reply = run_line(redis, line + strlen(mark), name);
        assert_non_null(fgets(line, sizeof line, file));
        line[strcspn(line, "\n")] = '\0';
        assert_said(reply, line + strspn(line, " "));
        freeReplyObject(reply);
        commands++;
    }
    assert_int_equal(commands, 8);
    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    assert_ok(hibloom_contains(filter, "hello", 5, &found), store);
    assert_true(found);
    assert_ok(hibloom_contains(filter, "", 0, &found), store);
    assert_false(found);
    test_close(filter, store);
    redisFree(redis);
    fclose(file);
}

/* ---- Which specs each is about ------------------------------------------------------ */

#define ALL ((1u << SPECS) - 1)
#define TWO (1u << SINGLE | 1u << SEVERAL)
#define RULE(function, specs) \
    { \
#function, function, specs \
    }

static struct rule {
    const char *name;
    void (*run)(void);
    unsigned specs;
} rules[] = {
    RULE(the_library_opens_what_the_document_makes, ALL),
    RULE(the_library_opens_what_is_made_without_a_script, TWO),
    RULE(the_document_opens_what_the_library_makes, ALL),
    RULE(each_side_clears_what_the_other_has_open, TWO),
    RULE(each_side_removes_what_the_other_has_added, 1u << COUNTING),
    RULE(each_side_notices_that_the_other_has_removed_it, TWO),
    RULE(late_bits_of_the_other_side_are_taken_back, TWO),
    RULE(each_side_repairs_for_the_other, 1u << SEVERAL),
    RULE(a_time_to_live_is_the_same_to_both, TWO),
};

static void for_each_spec(void **state)
{
    const struct rule *rule = *state;

    for (size_t i = 0; i < SPECS; i++)
        if ((rule->specs >> i & 1) != 0) {
            start(i);
            rule->run();
            shared_end();
        }
}

int main(void)
{
    struct CMUnitTest tests[2 + COUNT(rules)] = {
        cmocka_unit_test(positions_are_those_of_the_document),
        cmocka_unit_test(the_worked_bytes_are_what_redis_and_the_library_say),
    };

    for (size_t i = 0; i < COUNT(rules); i++)
        tests[2 + i] = (struct CMUnitTest){rules[i].name, for_each_spec, NULL, NULL, &rules[i]};
    return cmocka_run_group_tests_name("share the stored form", tests, NULL, NULL);
}
