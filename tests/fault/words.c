/* A real server refuses a call in its own words. The status says whose matter it is, and the words reach hibloom_store_error
 * beside the names of server and key. Once the cause is gone, the same store and filter go on, with answers that are right
 * and not shifted. Making a filter sends its seed, the key of a siphash. A server that lacks a command repeats its
 * arguments; but no piece of a seed is in the words of an error. */
#include "base/store.h"
#include "spec/spec.h"
#include "support/borrowed.h"
#include "support/served.h"
#include "support/scripted_server.h"
#include "support/subject.h"
#include "support/test.h"

#include <ctype.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int set_up(void **state)
{
    /* Saving is on, so that it can fail; it never comes to it by itself. */
    const char *const arguments[] = {"--save", "999999 999999", "--dbfilename", "taken", NULL};

    server = redis_server_start_tcp(arguments);
    return proxied_set_up(state);
}

/* Under the condition, each call either is refused in the server's words or, where it reads or only removes, passes;
 * some are refused in any case, and a full server lets a filter go in any case. */
static void check_condition(const char *impose, const char *lift, const char *words)
{
    const bool is_full = strcmp(words, "OOM") == 0;

    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;

        subject_begin(&subject, redis_server_uri(server), &variants[v], NULL);
        for (int i = 0; i < CALLS; i++) {
            bool found;

            test_command(redis, impose);
            hibloom_status status = calls[i].run(&subject);
            test_command(redis, lift);
            if (calls[i].adds || status != HIBLOOM_OK)
                subject_assert_words(&subject, &calls[i], status, HIBLOOM_EUNAVAILABLE, words);
            if (calls[i].reads_only || (is_full && subject.maybe_removed))
                assert_ok(status, subject.store);
            (void)!hibloom_contains(subject.filter, "", 0, &found); /* ELOST: another one took over, for all it knows */
            subject_check(&subject);
        }
        subject_end(&subject);
    }
}

static void a_server_that_takes_no_writes(void **state)
{
    check_condition("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM");
    check_condition("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY");
    check_condition("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "NOREPLICAS");
}

static void opening_and_attaching_at_a_list_says_so(void **state)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = NULL;

    test_command(redis, "RPUSH a-list x");
    for (int attaches = 0; attaches < 2; attaches++) {
        assert_fails((attaches ? hibloom_attach : hibloom_open)(&filter, store, "a-list", "hash=xxh3 bits=96 hashes=7"),
                     HIBLOOM_EMISMATCH, store, "'a-list'");
        assert_words(store, "no string");
        assert_null(filter);
    }
    test_command(redis, "RENAME a-list a-list:0");
    assert_fails(hibloom_open(&filter, store, "a-list", "bits=96 hashes=7 segments=2"), HIBLOOM_EMISMATCH, store,
                 "'a-list:0'");
    test_command(redis, "DEL a-list:0");
    hibloom_store_free(store);
}

#define LOADING SCRIPT_ANSWER("-LOADING Redis is loading the dataset in memory\r\n")

static void assert_said(const hibloom_store *store, const char *where, const char *words)
{
    char begins[1024];

    snprintf(begins, sizeof begins, "%s: %s", where, words);
    if (strncmp(hibloom_store_error(store), begins, strlen(begins)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", hibloom_store_error(store), begins);
}

static void words_begin_with_the_server(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    static const struct script_step refuses[] = {SCRIPT_ACCEPT, LOADING, SCRIPT_END},
                                    lets_in[] = {SCRIPT_WELCOME, LOADING, SCRIPT_END};
    char where[64];
    hibloom *filter = NULL;
    hibloom_store *store;

    for (int i = 0; i < 2; i++) {
        struct scripted_server *scripted = scripted_server_start_tcp(lets_in, hosts[i]);
        if (scripted == NULL) /* this machine has no such address */
            continue;
        store = test_connect(scripted_server_uri(scripted), NULL);
        assert_status(hibloom_open(&filter, store, "any", NULL), HIBLOOM_EUNAVAILABLE, store);
        snprintf(where, sizeof where, i == 0 ? "%s:%d" : "[%s]:%d", hosts[i], scripted_server_port(scripted));
        assert_said(store, where, "'any': LOADING");
        hibloom_store_free(store);
        scripted_server_stop(scripted);
    }
    struct scripted_server *scripted = scripted_server_start(refuses);
    redisContext *context = connect_owner(scripted_server_socket(scripted));
    assert_ok(hibloom_borrow(&store, context, NULL), store);
    assert_status(hibloom_open(&filter, store, "any", NULL), HIBLOOM_EUNAVAILABLE, store);
    assert_said(store, "borrowed connection", "'any': LOADING");
    hibloom_store_free(store);
    redisFree(context);
    scripted_server_stop(scripted);
}

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
        const char piece[PIECE + 1] = {SEED[i], SEED[i + 1], SEED[i + 2], SEED[i + 3], '\0'};

        if (strstr(plain, piece) != NULL)
            fail_msg("a piece of the seed, %s, is in \"%s\"", piece, words);
    }
    assert_null(strstr(words, "seed=")); /* nor one that was drawn */
}

/* A server that knows no scripts, in whose arguments the seed goes to it. */
static void a_seed_is_not_in_the_words_of_a_server_that_lacks_a_command(void **state)
{
    const char *const arguments[] = {"--rename-command", "EVAL", "", NULL};
    static const char *const texts[] = {
        "bits=9000 hashes=7 hash=siphash",
        "bits=9000 hashes=7 hash=siphash seed=" SEED,
        "bits=900 hashes=3 layout=partitioned hash=siphash seed=" SEED,
        "bits=9000 hashes=7 seed=b5e9c27d104f8a63",
        "bits=9000 hashes=7",
    };
    struct redis_server *lacking = redis_server_start(arguments);
    struct redisContext *context = redis_server_connect(lacking);

    for (int borrowed = 0; borrowed < 2; borrowed++)
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            hibloom_store *store;
            hibloom *filter = NULL;
            struct spec spec = test_spec(texts[i]);

            if (borrowed)
                assert_ok(hibloom_borrow(&store, context, NULL), store);
            else
                assert_ok(hibloom_connect(&store, redis_server_uri(lacking), NULL), store);
            assert_status(hibloom_open(&filter, store, "x", test_text(&spec)), HIBLOOM_ESERVER, store);
            assert_null(filter);
            assert_words(store, "ERR");
            assert_words_without_seed(store);
            assert_status(hibloom_open(&filter, store, "x", NULL), HIBLOOM_ENOTFOUND, store); /* it goes on */
            assert_int_equal(test_command(context, "DBSIZE"), 0);
            hibloom_store_free(store);
        }
    redisFree(context);
    redis_server_stop(lacking);
}

/* What a filter's creation is answered: to the look at both places of its name, to the script that makes it, to the
 * look at the other place, to the script that declares it ready. Either script's answer is replaced by those words. */
enum { MAKE = 2, READY = 4, REPLIES };

#define REPEATS "refused (its words are left out, since they hold the seed)"

static void create_and_be_refused(hibloom_store *store, const char *words, const char *kept)
{
    static const uint64_t places[] = {MAKE, READY};
    char refusal[512];
    hibloom *filter = NULL;

    snprintf(refusal, sizeof refusal, "-%s\r\n", words);
    const struct spec spec = test_spec("bits=9000 hashes=7 hash=siphash seed=" SEED);
    for (int i = 0; i < 2; i++) {
        proxy_mark(proxy);
        proxy_replace(proxy, places[i], 1, refusal);
        const hibloom_status status = hibloom_open(&filter, store, "x", test_text(&spec));
        assert_int_equal(proxy_replaced(proxy), '$');
        if (status != HIBLOOM_EUNAVAILABLE && status != HIBLOOM_EDENIED)
            assert_status(status, HIBLOOM_ESERVER, store);
        assert_words_without_seed(store);
        assert_words(store, kept);
        proxy_heal(proxy);
        assert_int_equal(test_command(redis, "DEL x"), 1); /* it was made all the same */
    }
    proxy_mark(proxy);
    assert_ok(hibloom_open(&filter, store, "x", test_text(&spec)), store);
    assert_int_equal(proxy_values(proxy, PROXY_REPLIES), REPLIES);
    test_command(redis, "DEL x");
    hibloom_close(filter);
}

static void a_seed_is_not_in_words_that_cut_or_escape_it(void **state)
{
    static const struct {
        const char *words, *kept;
    } refusals[] = {
        {"ERR unknown command 'EVAL', with args: 'x' 'bits=9000 hashes=7 hash=siphash seed=" SEED "'", REPEATS},
        {"ERR unknown command 'EVAL', with args: 'x' 'bits=9000 hashes=7 hash=siphash seed=b5e9'", REPEATS},
        {"ERR unknown command 'EVAL', with args: '... 0c5a284b36'", REPEATS},
        {"ERR what is '4f8a' ?", REPEATS},
        {"ERR unknown command 'EVAL', with args: 'seed\\x3db5e9c27d104f'", REPEATS},
        {"ERR unknown command 'EVAL', with args: 'b5 e9 c2 7d 10 4f 8a 63'", REPEATS},
        {"ERR unknown command 'EVAL', with args: 'b\"\"5\\e-9_c:2.7/d'", REPEATS},
        {"NOPERM-b5e9c27d104f8a63 no", REPEATS}, /* the very code of the error */
        {SEED, REPEATS},
        {"OOM command not allowed when used memory > 'maxmemory'.", "OOM command not allowed when used memory"},
        {"ERR unknown command 'EVAL'", "ERR unknown command 'EVAL'"},
    };

    hibloom_store *store = test_connect(proxy_uri(proxy), NULL);
    hibloom *filter;

    assert_status(hibloom_open(&filter, store, "x", NULL), HIBLOOM_ENOTFOUND, store); /* so it has its connection */
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        create_and_be_refused(store, refusals[i].words, refusals[i].kept);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_takes_no_writes),
        cmocka_unit_test(opening_and_attaching_at_a_list_says_so),
        cmocka_unit_test(words_begin_with_the_server),
        cmocka_unit_test(a_seed_is_not_in_the_words_of_a_server_that_lacks_a_command),
        cmocka_unit_test(a_seed_is_not_in_words_that_cut_or_escape_it),
    };

    return cmocka_run_group_tests(tests, set_up, proxied_tear_down);
}
