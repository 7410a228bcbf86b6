/* What is sent to create a filter holds its seed, the key of a siphash, and a
 * server that does not know a command says with which arguments it came: no
 * piece of a seed is in the words of an error. */
#include "support/proxied.h"
#include "support/test.h"
#include "spec/spec.h"

#include <ctype.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

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
            assert_non_null(strstr(hibloom_store_error(store), "ERR"));
            assert_words_without_seed(store);
            assert_status(hibloom_open(&filter, store, "x", NULL), HIBLOOM_ENOTFOUND, store); /* it goes on */
            assert_int_equal(test_command(context, "DBSIZE"), 0);
            hibloom_store_free(store);
        }
    redisFree(context);
    redis_server_stop(lacking);
}

/* What a filter's creation is answered: to the look at both places of its name, to
 * the script that makes it, to the look at the other place, to the script that
 * declares it ready. Either script's answer is replaced by those words. */
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
        if (strstr(hibloom_store_error(store), kept) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", kept, hibloom_store_error(store));
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
        cmocka_unit_test(a_seed_is_not_in_the_words_of_a_server_that_lacks_a_command),
        cmocka_unit_test(a_seed_is_not_in_words_that_cut_or_escape_it),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
