/* What a user may not do: each command and key in turn is forbidden, or the
 * server wants a password; it is said so, and afterwards the filter goes on. */
#include "support/served.h"
#include "support/subject.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

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
            subject_assert_words(subject, &calls[i], status, "NOPERM");
            refused++;
        }
        subject_check(subject);
    }
    return refused;
}

static void a_command_that_is_not_permitted(void **state)
{
    static const char *const commands[] = {"setbit", "getbit", "bitfield", "bitfield_ro", "bitcount", "get",
                                           "set",    "setnx",  "strlen",   "getrange",    "setrange", "exists",
                                           "del",    "unlink", "expire",   "pexpire",     "persist",  "watch",
                                           "multi",  "exec",   "unwatch"};
    char uri[256];

    (void)state;
    test_command(redis, "ACL SETUSER app on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;
        int refused = 0;

        subject_begin(&subject, uri, &variants[v], NULL);
        for (size_t j = 0; j < sizeof commands / sizeof commands[0]; j++) {
            const int n = check_forbidden(&subject, commands[j]);

            if (strcmp(commands[j], variants[v].commands == HIBLOOM_COMMANDS_SETBIT ? "setbit" : "bitfield") == 0)
                assert_true(n >= 2);
            refused += n;
        }
        assert_true(refused >= CALLS);
        subject_end(&subject);
    }
}

static void a_key_that_is_not_permitted(void **state)
{
    struct subject subject;
    char uri[256];

    (void)state;
    test_command(redis, "ACL SETUSER app on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    subject_begin(&subject, uri, &variants[0], NULL);
    for (int i = 0; i < CALLS; i++) {
        hibloom_status status;

        test_command(redis, "ACL SETUSER app resetkeys ~elsewhere*");
        status = calls[i].run(&subject);
        test_command(redis, "ACL SETUSER app ~*");
        subject_assert_words(&subject, &calls[i], status, "NOPERM");
        subject_check(&subject);
    }
    subject_end(&subject);
}

/* The password comes while the store is connected: it is found out when the
 * connection has to be made anew. */
static void a_server_that_wants_a_password(void **state)
{
    struct subject subject;

    (void)state;
    subject_begin(&subject, redis_server_uri(server), &variants[0], NULL);
    for (int i = 0; i < CALLS; i++) {
        hibloom_status status;

        test_command(redis, "CONFIG SET requirepass secret");
        test_command(redis, "CLIENT KILL TYPE normal");
        status = calls[i].run(&subject);
        if (status == HIBLOOM_EIO) /* so it was found closed in the middle of the call */
            status = calls[i].run(&subject);
        test_command(redis, "CONFIG SET requirepass %s", "");
        if (strstr(hibloom_store_error(subject.store), "unauthenticated") == NULL) {
            subject_assert_words(&subject, &calls[i], status, "NOAUTH");
        } else { /* said to a long command of who has not logged in, and then it hangs up: seen at once or next */
            assert_status(status, HIBLOOM_ESERVER, subject.store);
            if (call_named("get_info")->run(&subject) != HIBLOOM_OK)
                assert_ok(call_named("get_info")->run(&subject), subject.store);
        }
        subject_check(&subject);
    }
    subject_end(&subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_that_is_not_permitted),
        cmocka_unit_test(a_key_that_is_not_permitted),
        cmocka_unit_test(a_server_that_wants_a_password),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
