/* What a real server refuses, in its own words: the status is ESERVER, the
 * words reach hibloom_store_error, and once the cause is gone the same store
 * and filter go on, with answers that are right and not shifted. */
#include "support/proxy.h"
#include "support/redis_server.h"
#include "support/subject.h"

#include <ctype.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct redis_server *server;
static struct redisContext *redis;

static int set_up(void **state)
{
    /* Saving is on, so that it can fail; it never comes to it by itself. */
    const char *const arguments[] = { "--save", "999999 999999", "--dbfilename", "taken", NULL };

    (void)state;
    server = redis_server_start_tcp(arguments);
    redis = redis_server_connect(server);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    redisFree(redis);
    redis_server_stop(server);
    return 0;
}

static void begin_as(struct subject *subject, const struct variant *variant, const char *uri)
{
    const hibloom_connect_options options = { .commands = variant->commands };
    hibloom_store *store;

    assert_ok(hibloom_connect(&store, uri, &options), store);
    subject_open(subject, store, variant);
}

static void begin(struct subject *subject, const struct variant *variant)
{
    begin_as(subject, variant, redis_server_uri(server));
}

static void end(struct subject *subject)
{
    subject_check(subject);
    subject_remove(subject);
    hibloom_store_free(subject->store);
}

static void assert_words(const struct subject *subject, const struct call *call, hibloom_status status,
                         const char *words)
{
    if (status != HIBLOOM_ESERVER || strstr(hibloom_store_error(subject->store), words) == NULL)
        fail_msg("%s, %s: %s: \"%s\", not \"%s\"", subject->variant->name, call->name, hibloom_strerror(status),
                 hibloom_store_error(subject->store), words);
}

/* ---- A server that takes no writes ----------------------------------------------------- */

/* Under the condition, each call either is refused in the server's words or,
 * where it reads or only removes, passes; some are refused in any case. */
static void check_condition(void (*impose)(void), void (*lift)(void), const char *words)
{
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;

        begin(&subject, &variants[v]);
        for (int i = 0; i < CALLS; i++) {
            hibloom_status status;

            impose();
            status = calls[i].run(&subject);
            lift();
            if (calls[i].adds || status != HIBLOOM_OK)
                assert_words(&subject, &calls[i], status, words);
            if (calls[i].reads_only)
                assert_ok(status, subject.store);
            subject_check(&subject);
        }
        end(&subject);
    }
}

static void run_out_of_memory(void)
{
    test_command(redis, "CONFIG SET maxmemory 1");
}

static void buy_memory(void)
{
    test_command(redis, "CONFIG SET maxmemory 0");
}

static void out_of_memory(void **state)
{
    (void)state;
    check_condition(run_out_of_memory, buy_memory, "OOM");
}

static void become_replica(void)
{
    test_command(redis, "REPLICAOF 127.0.0.1 1");
}

static void become_master(void)
{
    test_command(redis, "REPLICAOF NO ONE");
}

static void read_only_replica(void **state)
{
    (void)state;
    check_condition(become_replica, become_master, "READONLY");
}

static void want_replicas(void)
{
    test_command(redis, "CONFIG SET min-replicas-to-write 1");
}

static void want_no_replicas(void)
{
    test_command(redis, "CONFIG SET min-replicas-to-write 0");
}

static void too_few_replicas(void **state)
{
    (void)state;
    check_condition(want_replicas, want_no_replicas, "NOREPLICAS");
}

/* Waits until the server has tried to save; permissions stop no one who is
 * root, but a directory in the file's place does. */
static void save_in_vain(void)
{
    redisReply *reply = NULL;
    char path[256];

    snprintf(path, sizeof path, "%s/taken", redis_server_dir(server));
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/taken/dump.rdb", redis_server_dir(server));
    mkdir(path, 0700);
    test_command(redis, "BGSAVE");
    for (int i = 0; i < 1000; i++) {
        reply = redisCommand(redis, "INFO persistence");
        assert_non_null(reply);
        if (strstr(reply->str, "rdb_last_bgsave_status:err") != NULL)
            break;
        freeReplyObject(reply);
        reply = NULL;
        test_sleep_ms(5);
    }
    assert_non_null(reply);
    freeReplyObject(reply);
}

static void mind_saving(void)
{
    test_command(redis, "CONFIG SET stop-writes-on-bgsave-error yes");
}

static void never_mind_saving(void)
{
    test_command(redis, "CONFIG SET stop-writes-on-bgsave-error no");
}

static void unable_to_save(void **state)
{
    (void)state;
    never_mind_saving();
    save_in_vain();
    check_condition(mind_saving, never_mind_saving, "MISCONF");
}

/* A replica that has lost its master may refuse reads as well. */
static void out_of_touch_with_its_master(void **state)
{
    struct subject subject;

    (void)state;
    begin(&subject, &variants[0]);
    test_command(redis, "CONFIG SET replica-serve-stale-data no");
    for (int i = 0; i < CALLS; i++) {
        hibloom_status status;

        become_replica();
        status = calls[i].run(&subject);
        become_master();
        assert_words(&subject, &calls[i], status,
                     strstr(hibloom_store_error(subject.store), "READONLY") != NULL ? "READONLY" : "MASTERDOWN");
        subject_check(&subject);
    }
    test_command(redis, "CONFIG SET replica-serve-stale-data yes");
    end(&subject);
}

/* An add that comes too late counts what it has to take back; to whom that is
 * forbidden the next answers are his all the same. */
static void who_may_not_count_late_bits_leaves_no_answer_behind(void **state)
{
    struct subject subject;

    (void)state;
    begin(&subject, &variants[0]);
    test_command(redis, "DEL %s {%s}:spec", subject.name, subject.name);
    test_command(redis, "ACL SETUSER default -incrby");
    assert_status(hibloom_add(subject.filter, "late", 4, NULL), HIBLOOM_ENOTFOUND, subject.store);
    test_command(redis, "ACL SETUSER default +incrby");
    assert_int_equal(test_command(redis, "DEL %s", subject.name), 1);
    subject.maybe_removed = true;
    end(&subject);
}

/* ---- Types ------------------------------------------------------------------------------ */

/* In place of each key from `first` to `last`, which the format makes names of. */
static void replace_by_lists(const struct subject *subject, const char *format, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        char key[TEST_NAME_SIZE + 16];

        snprintf(key, sizeof key, format, subject->name, i);
        if (test_command(redis, "EXISTS %s-aside", key) == 0)
            test_command(redis, "RENAME %s %s-aside", key, key);
        test_command(redis, "DEL %s", key);
        test_command(redis, "RPUSH %s x", key);
    }
}

static void take_lists_away(const struct subject *subject, const char *format, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        char key[TEST_NAME_SIZE + 16];

        snprintf(key, sizeof key, format, subject->name, i);
        assert_int_equal(test_command(redis, "LLEN %s", key), 1);
        test_command(redis, "DEL %s", key);
        test_command(redis, "RENAME %s-aside %s", key, key);
    }
}

static void check_wrong_type(struct subject *subject, const char *format, unsigned first, unsigned last)
{
    for (int i = 0; i < CALLS; i++) {
        hibloom_status status;

        if (!calls[i].on_handle) /* opening compares, removing removes */
            continue;
        replace_by_lists(subject, format, first, last);
        status = calls[i].run(subject);
        assert_words(subject, &calls[i], status, "WRONGTYPE");
        take_lists_away(subject, format, first, last);
    }
    subject->maybe_empty = subject->maybe_removed = false; /* they must not have been */
    subject_check(subject);
}

static void a_list_in_place_of_the_bitmap_or_the_spec(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        const bool partitioned = strstr(variants[v].spec, "partitioned") != NULL;
        struct subject subject;

        begin(&subject, &variants[v]);
        check_wrong_type(&subject, "{%s}:spec", 0, 0);
        if (partitioned)
            check_wrong_type(&subject, "%s:%u", 2, 2);
        else if (hibloom_spec_of(subject.filter)->segments > 1) /* a call need not touch every one */
            check_wrong_type(&subject, "%s:%u", 0, 2);
        else
            check_wrong_type(&subject, "%s", 0, 0);
        end(&subject);
    }
}

static void opening_and_attaching_at_a_list_fails_and_leaves_it(void **state)
{
    hibloom_store *store;
    hibloom_spec spec;
    hibloom *filter = NULL;
    hibloom_status status;

    (void)state;
    assert_ok(hibloom_spec_for(&spec, 1000, 0.01), NULL);
    assert_ok(hibloom_connect(&store, redis_server_uri(server), NULL), store);
    test_command(redis, "RPUSH a-list x");
    status = hibloom_open(&filter, store, "a-list", &spec);
    if (status != HIBLOOM_EMISMATCH) /* what is there is not a filter, whichever way that is put */
        assert_status(status, HIBLOOM_ESERVER, store);
    assert_null(filter);
    assert_status(hibloom_attach(&filter, store, "a-list", &spec), HIBLOOM_ESERVER, store);
    assert_non_null(strstr(hibloom_store_error(store), "WRONGTYPE"));
    assert_null(filter);
    assert_int_equal(test_command(redis, "LLEN a-list"), 1);
    assert_int_equal(test_command(redis, "EXISTS {a-list}:spec"), 0);
    test_command(redis, "DEL a-list");
    assert_ok(hibloom_open(&filter, store, "a-list", &spec), store);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* ---- Permissions --------------------------------------------------------------------------- */

/* Which commands a call needs is the library's business: each is forbidden in
 * turn, and whatever then fails must say so. Returns how many calls did. */
static int check_forbidden(struct subject *subject, const char *command)
{
    int refused = 0;

    for (int i = 0; i < CALLS; i++) {
        hibloom_status status;

        test_command(redis, "ACL SETUSER app -%s", command);
        status = calls[i].run(subject);
        test_command(redis, "ACL SETUSER app +%s", command);
        if (status != HIBLOOM_OK) {
            assert_words(subject, &calls[i], status, "NOPERM");
            refused++;
        }
        subject_check(subject);
    }
    return refused;
}

static void a_command_that_is_not_permitted(void **state)
{
    static const char *const commands[] = { "setbit", "getbit", "bitfield", "bitfield_ro", "bitcount", "get", "set",
                                            "setnx", "strlen", "getrange", "setrange", "exists", "del", "unlink",
                                            "expire", "pexpire", "persist", "watch", "multi", "exec", "unwatch" };
    char uri[256];

    (void)state;
    test_command(redis, "ACL SETUSER app on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;
        int refused = 0;

        begin_as(&subject, &variants[v], uri);
        for (size_t j = 0; j < sizeof commands / sizeof commands[0]; j++) {
            const int n = check_forbidden(&subject, commands[j]);

            if (strcmp(commands[j], variants[v].commands == HIBLOOM_COMMANDS_SETBIT ? "setbit" : "bitfield") == 0)
                assert_true(n >= 2);
            refused += n;
        }
        assert_true(refused >= CALLS);
        end(&subject);
    }
}

static void a_key_that_is_not_permitted(void **state)
{
    struct subject subject;
    char uri[256];

    (void)state;
    test_command(redis, "ACL SETUSER app on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    begin_as(&subject, &variants[0], uri);
    for (int i = 0; i < CALLS; i++) {
        hibloom_status status;

        test_command(redis, "ACL SETUSER app resetkeys ~elsewhere*");
        status = calls[i].run(&subject);
        test_command(redis, "ACL SETUSER app ~*");
        assert_words(&subject, &calls[i], status, "NOPERM");
        subject_check(&subject);
    }
    end(&subject);
}

/* The password comes while the store is connected: it is found out when the
 * connection has to be made anew. */
static void a_server_that_wants_a_password(void **state)
{
    struct subject subject;

    (void)state;
    begin(&subject, &variants[0]);
    for (int i = 0; i < CALLS; i++) {
        hibloom_status status;

        test_command(redis, "CONFIG SET requirepass secret");
        test_command(redis, "CLIENT KILL TYPE normal");
        status = calls[i].run(&subject);
        if (status == HIBLOOM_EIO) /* so it was found closed in the middle of the call */
            status = calls[i].run(&subject);
        test_command(redis, "CONFIG SET requirepass %s", "");
        if (strstr(hibloom_store_error(subject.store), "unauthenticated") == NULL) {
            assert_words(&subject, &calls[i], status, "NOAUTH");
        } else { /* said to a long command of who has not logged in, and then it hangs up: seen at once or next */
            assert_status(status, HIBLOOM_ESERVER, subject.store);
            if (call_named("get_info")->run(&subject) != HIBLOOM_OK)
                assert_ok(call_named("get_info")->run(&subject), subject.store);
        }
        subject_check(&subject);
    }
    end(&subject);
}

/* ---- Words that repeat a seed --------------------------------------------------------------
 *
 * What is sent to create a filter holds its seed, the key of a siphash, and a
 * server that does not know a command says with which arguments it came. */

#define SEED "b5e9c27d104f8a63d9e1f70c5a284b36"
#define PIECE 4 /* of a seed, that is too much to let out */

/* Letters and digits alone, since how a server writes others is its own choice. */
static void assert_words_without_seed(const hibloom_store *store)
{
    const char *words = hibloom_store_error(store);
    char plain[2048];
    size_t len = 0;

    for (const char *c = words; *c != '\0' && len + 1 < sizeof plain; c++)
        if (isalnum((unsigned char)*c))
            plain[len++] = *c;
    plain[len] = '\0';
    for (size_t i = 0; i + PIECE <= strlen(SEED); i++) {
        const char piece[PIECE + 1] = { SEED[i], SEED[i + 1], SEED[i + 2], SEED[i + 3], '\0' };

        if (strstr(plain, piece) != NULL)
            fail_msg("a piece of the seed, %s, is in \"%s\"", piece, words);
    }
    assert_null(strstr(words, "seed=")); /* nor one that was drawn */
}

/* A server that refuses to store the spec. */
static void a_seed_is_not_in_the_words_of_a_server_that_lacks_a_command(void **state)
{
    const char *const arguments[] = { "--rename-command", "SET", "", NULL };
    static const char *const texts[] = {
        "bits=9000 hashes=7 hash=siphash", "bits=9000 hashes=7 hash=siphash seed=" SEED,
        "bits=900 hashes=3 layout=partitioned hash=siphash seed=" SEED, "bits=9000 hashes=7 seed=b5e9c27d104f8a63",
        "bits=9000 hashes=7",
    };
    struct redis_server *lacking = redis_server_start(arguments);
    struct redisContext *context = redis_server_connect(lacking);

    (void)state;
    for (int borrowed = 0; borrowed < 2; borrowed++)
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            hibloom_store *store;
            hibloom *filter = NULL;
            hibloom_spec spec;

            assert_ok(hibloom_spec_parse(&spec, texts[i]), NULL);
            if (borrowed)
                assert_ok(hibloom_borrow(&store, context), store);
            else
                assert_ok(hibloom_connect(&store, redis_server_uri(lacking), NULL), store);
            assert_status(hibloom_open(&filter, store, "x", &spec), HIBLOOM_ESERVER, store);
            assert_null(filter);
            assert_non_null(strstr(hibloom_store_error(store), "ERR"));
            assert_words_without_seed(store);
            assert_status(hibloom_open(&filter, store, "x", NULL), HIBLOOM_ENOTFOUND, store); /* it goes on */
            assert_int_equal(test_command(context, "DBSIZE"), 0);
            hibloom_store_free(store);
        }
    redisFree(context);
    redis_server_stop(lacking);
}

/* Creates a filter, and each answer but the first, to what is asked before the
 * seed is sent, is replaced in turn by those words. */
static void create_and_be_refused(hibloom_store *store, struct proxy *proxy, const char *words, const char *kept)
{
    char refusal[512];
    hibloom_spec spec;
    hibloom *filter = NULL;

    snprintf(refusal, sizeof refusal, "-%s\r\n", words);
    assert_ok(hibloom_spec_parse(&spec, "bits=9000 hashes=7 hash=siphash seed=" SEED), NULL);
    for (uint64_t reply = 1; filter == NULL; reply++) {
        hibloom_status status;

        proxy_mark(proxy);
        proxy_replace(proxy, reply, 1, refusal);
        status = hibloom_open(&filter, store, "x", &spec);
        if (proxy_replaced(proxy) != '\0') {
            assert_status(status, HIBLOOM_ESERVER, store);
            assert_words_without_seed(store);
            if (strstr(hibloom_store_error(store), kept) == NULL)
                fail_msg("\"%s\" is not in \"%s\"", kept, hibloom_store_error(store));
        } else {
            assert_ok(status, store);
            assert_true(reply > 5);
        }
        test_command(redis, "DEL x {x}:spec"); /* it may have been created all the same */
    }
    proxy_heal(proxy);
    hibloom_close(filter);
}

static void a_seed_is_not_in_words_that_cut_or_escape_it(void **state)
{
    static const struct {
        const char *words, *kept;
    } refusals[] = {
        { "ERR unknown command 'SET', with args: '{x}:spec' 'bits=9000 hashes=7 hash=siphash seed=" SEED "'", "ERR" },
        { "ERR unknown command 'SET', with args: '{x}:spec' 'bits=9000 hashes=7 hash=siphash seed=b5e9'", "ERR" },
        { "ERR unknown command 'SET', with args: '... 0c5a284b36'", "ERR" },
        { "ERR what is '4f8a' ?", "ERR" },
        { "ERR unknown command 'SET', with args: 'seed\\x3db5e9c27d104f'", "ERR" },
        { "ERR unknown command 'SET', with args: 'b5 e9 c2 7d 10 4f 8a 63'", "ERR" },
        { "ERR unknown command 'SET', with args: 'b\"\"5\\e-9_c:2.7/d'", "ERR" },
        { "NOPERM-b5e9c27d104f8a63 no", "" }, /* the very code of the error */
        { SEED, "" },
        { "OOM command not allowed when used memory > 'maxmemory'.", "OOM command not allowed when used memory" },
        { "ERR unknown command 'SET'", "ERR unknown command 'SET'" },
    };

    struct proxy *proxy = proxy_start(redis_server_socket(server));
    hibloom_store *store;
    hibloom *filter;

    (void)state;
    assert_ok(hibloom_connect(&store, proxy_uri(proxy), NULL), store);
    assert_status(hibloom_open(&filter, store, "x", NULL), HIBLOOM_ENOTFOUND, store); /* so it has its connection */
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        create_and_be_refused(store, proxy, refusals[i].words, refusals[i].kept);
    hibloom_store_free(store);
    proxy_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(read_only_replica),
        cmocka_unit_test(too_few_replicas),
        cmocka_unit_test(unable_to_save),
        cmocka_unit_test(out_of_touch_with_its_master),
        cmocka_unit_test(who_may_not_count_late_bits_leaves_no_answer_behind),
        cmocka_unit_test(a_list_in_place_of_the_bitmap_or_the_spec),
        cmocka_unit_test(opening_and_attaching_at_a_list_fails_and_leaves_it),
        cmocka_unit_test(a_command_that_is_not_permitted),
        cmocka_unit_test(a_key_that_is_not_permitted),
        cmocka_unit_test(a_server_that_wants_a_password),
        cmocka_unit_test(a_seed_is_not_in_the_words_of_a_server_that_lacks_a_command),
        cmocka_unit_test(a_seed_is_not_in_words_that_cut_or_escape_it),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
