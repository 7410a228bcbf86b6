/* Words about a refusal begin with the server. */
#include "support/borrowed.h"
#include "support/scripted_server.h"

#include <stdio.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_begin_with_the_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
