/* What an error of the server means: its words give a code, the code a status
 * and what to do. And the cluster slot of a key, by which drivers route. */
#include "support/test.h"

#include "redis/keys.h"
#include "resp/refusal.h"
#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As servers write them, Redis 3 to 7. */
static const struct {
    const char *words;
    enum refusal refusal;
    hibloom_status status;
} refusals[] = {
    {"MOVED 12739 127.0.0.1:7002", REFUSAL_MOVED, HIBLOOM_EUNAVAILABLE},
    {"ASK 12739 127.0.0.1:7002", REFUSAL_ASK, HIBLOOM_EUNAVAILABLE},
    {"TRYAGAIN Multiple keys request during rehashing of slot", REFUSAL_TRYAGAIN, HIBLOOM_EUNAVAILABLE},
    {"CLUSTERDOWN Hash slot not served", REFUSAL_CLUSTERDOWN, HIBLOOM_EUNAVAILABLE},
    {"LOADING Redis is loading the dataset in memory", REFUSAL_LOADING, HIBLOOM_EUNAVAILABLE},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", REFUSAL_BUSY,
     HIBLOOM_EUNAVAILABLE},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", REFUSAL_MASTERDOWN,
     HIBLOOM_EUNAVAILABLE},
    {"READONLY You can't write against a read only replica.", REFUSAL_READONLY, HIBLOOM_EUNAVAILABLE},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
     REFUSAL_MISCONF, HIBLOOM_EUNAVAILABLE},
    {"OOM command not allowed when used memory > 'maxmemory'.", REFUSAL_OOM, HIBLOOM_EUNAVAILABLE},
    {"NOREPLICAS Not enough good replicas to write.", REFUSAL_NOREPLICAS, HIBLOOM_EUNAVAILABLE},
    {"ERR max number of clients reached", REFUSAL_MAX_CLIENTS, HIBLOOM_EUNAVAILABLE},
    {"NOAUTH Authentication required.", REFUSAL_NOAUTH, HIBLOOM_EDENIED},
    {"WRONGPASS invalid username-password pair or user is disabled.", REFUSAL_WRONGPASS, HIBLOOM_EDENIED},
    {"ERR invalid password", REFUSAL_WRONGPASS, HIBLOOM_EDENIED},
    {"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration "
     "is correct?",
     REFUSAL_NO_PASSWORD, HIBLOOM_ESERVER},
    {"ERR Client sent AUTH, but no password is set", REFUSAL_NO_PASSWORD, HIBLOOM_ESERVER},
    {"DENIED Redis is running in protected mode because protected mode is enabled", REFUSAL_NOAUTH, HIBLOOM_EDENIED},
    {"NOPERM this user has no permissions to run the 'eval' command", REFUSAL_NOPERM, HIBLOOM_EDENIED},
    {"NOPERM this user has no permissions to access one of the keys used as arguments", REFUSAL_NOPERM,
     HIBLOOM_EDENIED},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", REFUSAL_WRONGTYPE, HIBLOOM_EMISMATCH},
    {"ERR unknown command `BITFIELD_RO`, with args beginning with: `seen`, ", REFUSAL_UNKNOWN_COMMAND, HIBLOOM_ESERVER},
    {"ERR Unknown Redis command called from script", REFUSAL_UNKNOWN_COMMAND, HIBLOOM_ESERVER},
    {"Unknown Redis command called from Lua script", REFUSAL_UNKNOWN_COMMAND, HIBLOOM_ESERVER},
    {"ERR value is not an integer or out of range", REFUSAL_OTHER, HIBLOOM_ESERVER},
    {"ERR string exceeds maximum allowed size (proto-max-bulk-len)", REFUSAL_OTHER, HIBLOOM_ESERVER},
    {"", REFUSAL_OTHER, HIBLOOM_ESERVER},
    {"OOM", REFUSAL_OTHER, HIBLOOM_ESERVER}, /* a code ends in a blank */
    {"OOMPH of another kind", REFUSAL_OTHER, HIBLOOM_ESERVER},
    {"ERR OOM is not in front here", REFUSAL_OTHER, HIBLOOM_ESERVER},
};
enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

static void words_are_a_code_and_a_status(void **state)
{
    for (int i = 0; i < REFUSALS; i++) {
        const enum refusal refusal = refusal_of(refusals[i].words);
        if (refusal != refusals[i].refusal)
            fail_msg("\"%s\" is code %d", refusals[i].words, (int)refusal);
        assert_int_equal(refusal_status(refusal), refusals[i].status);
    }
}

static void what_may_pass_is_retryable_and_what_must_be_mended_is_not(void **state)
{
    for (int i = 0; i < REFUSALS; i++)
        assert_int_equal(hibloom_is_retryable(refusals[i].status), refusals[i].status == HIBLOOM_EUNAVAILABLE);
}

/* What can be done stands behind the words, and the full stop between them goes. */
static void what_to_do_follows_the_words(void **state)
{
    char out[64];

    for (int i = REFUSAL_OTHER + 1; i <= REFUSAL_UNKNOWN_COMMAND; i++) {
        const bool theirs = refusal_explain((enum refusal)i, "WORDS of it.", out, sizeof out);
        assert_int_equal(theirs, i != REFUSAL_WRONGPASS && i != REFUSAL_NO_PASSWORD);
        if (!theirs) {
            assert_null(strstr(out, "WORDS"));
            continue;
        }
        assert_memory_equal(out, "WORDS of it: ", strlen("WORDS of it: "));
        assert_true(strlen(out) > strlen("WORDS of it: "));
    }
    refusal_explain(REFUSAL_OTHER, "ERR no\nmore\x1b.", out, sizeof out); /* one line, and no colours */
    assert_string_equal(out, "ERR no?more?.");
    refusal_explain(REFUSAL_OOM, "", out, sizeof out);
    assert_memory_equal(out, ": ", 2);
    memset(out, 7, sizeof out);
    refusal_explain(REFUSAL_OOM, "OOM", out, 5); /* cut to what there is room for */
    assert_string_equal(out, "OOM:");
    assert_int_equal(out[5], 7);
}

/* Redis 7 puts the place behind the words. Up to 6 it stands in front: of the error of a command once; of what the
 * script layer refuses itself twice, and there with the '-' of the reply. A script that returns such an error instead
 * of raising it has the inner place alone. */
static const char *const script_forms[] = {
    "%s script: f_0cfed4d2f31ac3a0b9fcf5f7e4ee5bd8cd96ae37, on @user_script:12.",
    "ERR Error running script (call to f_0cfed4d2f31ac3a0b9fcf5f7e4ee5bd8cd96ae37): @user_script:12: %s",
    "ERR Error running script (call to f_0cfed4d2f31ac3a0b9fcf5f7e4ee5bd8cd96ae37): @user_script:12: -%s",
    "ERR Error running script (call to f_0cfed4d2f31ac3a0b9fcf5f7e4ee5bd8cd96ae37): @user_script:12: "
    "@user_script: 12: %s",
    "ERR Error running script (call to f_0cfed4d2f31ac3a0b9fcf5f7e4ee5bd8cd96ae37): @user_script:12: "
    "@user_script: 12: -%s",
    "@user_script: 12: %s",
    "@user_script: 12: -%s",
};

static void within_a_script_they_mean_the_same(void **state)
{
    char words[512];

    for (size_t form = 0; form < sizeof script_forms / sizeof script_forms[0]; form++)
        for (int i = 0; i < REFUSALS; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(words, sizeof words, script_forms[form], refusals[i].words);
#pragma GCC diagnostic pop
            if (strcmp(refusals[i].words, "OOM") != 0 && refusal_of(words) != refusals[i].refusal)
                fail_msg("\"%s\" is code %d", words, (int)refusal_of(words));
        }
}

/* The ways in which servers say that this user may not run what is in a script. */
static void what_a_script_may_not_run_is_denied(void **state)
{
    assert_int_equal(refusal_of("ERR ACL failure in script: User mary has no permissions to run the 'set' command "
                                "script: f_0cf, on @user_script:1."),
                     REFUSAL_NOPERM);
    assert_int_equal(refusal_of("ERR Error running script (call to f_0cf): @user_script:1: @user_script: 1: "
                                "The user executing the script can't run this command or subcommand"),
                     REFUSAL_NOPERM);
    assert_int_equal(refusal_of("ERR Error running script (call to f_0cf): @user_script:1: @user_script: 1: "
                                "The user executing the script can't access at least one of the keys mentioned in "
                                "the command arguments"),
                     REFUSAL_NOPERM);
    assert_int_equal(refusal_of("ERR The user executing the script can't run this command or subcommand script: "
                                "f_0cf, on @user_script:1."),
                     REFUSAL_NOPERM); /* 7.0 */
}

/* Words that another's script has made up do not become a code. */
static void a_place_in_the_middle_is_no_code(void **state)
{
    assert_int_equal(refusal_of("ERR something @user_script:1: OOM command not allowed"), REFUSAL_OTHER);
    assert_int_equal(refusal_of("ERR Error running script"), REFUSAL_OTHER);
    assert_int_equal(refusal_of("ERR Error running script (call to f_0cf): @user_script:"), REFUSAL_OTHER);
    assert_int_equal(refusal_of("ERR Error compiling script (new function): user_script:1: '=' expected"),
                     REFUSAL_OTHER);
}

static unsigned slot(const char *key)
{
    return keys_slot(key, strlen(key));
}

/* Redis Cluster specification: "123456789" is CRC16's own test vector, and the others are its examples of tags. */
static void a_slot_is_that_of_the_cluster_specification(void **state)
{
    assert_int_equal(slot("123456789"), 0x31c3);
    assert_int_equal(slot("123456789"), 12739);
    assert_int_equal(slot("foo"), 12182);
    assert_int_equal(slot(""), 0);
    assert_int_equal(slot("{user1000}.following"), slot("{user1000}.followers"));
    assert_int_equal(slot("{user1000}.following"), slot("user1000"));
    assert_int_equal(slot("foo{}{bar}"), 8363); /* an empty tag is none: all of the key counts */
    assert_int_equal(slot("foo{{bar}}zap"), slot("{bar"));
    assert_int_equal(slot("foo{bar}{zap}"), slot("bar"));
    assert_int_not_equal(slot("foo{bar}{zap}"), slot("zap"));
    assert_int_not_equal(slot("foo{bar"), slot("bar")); /* not closed */
    assert_int_not_equal(slot("}foo{bar"), slot("bar"));
    assert_int_equal(keys_slot("{a\0b}c", 6), keys_slot("a\0b", 3));
    assert_int_equal(keys_slot("\xff\xfe", 2), 3374); /* bytes are unsigned */
}

static void keys_of_a_name_with_a_tag_share_its_slot(void **state)
{
    char key[KEYS_SIZE];

    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(keys_slot(key, keys_at(key, "{t}seen", true, i)), slot("t"));
        assert_int_equal(strtoul(key + strlen("{t}seen:"), NULL, 10), i);
    }
    assert_int_equal(keys_slot(key, keys_at(key, "123456789", false, 7)), 12739);
    assert_string_equal(key, "123456789");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_a_code_and_a_status),
        cmocka_unit_test(what_may_pass_is_retryable_and_what_must_be_mended_is_not),
        cmocka_unit_test(what_to_do_follows_the_words),
        cmocka_unit_test(within_a_script_they_mean_the_same),
        cmocka_unit_test(what_a_script_may_not_run_is_denied),
        cmocka_unit_test(a_place_in_the_middle_is_no_code),
        cmocka_unit_test(a_slot_is_that_of_the_cluster_specification),
        cmocka_unit_test(keys_of_a_name_with_a_tag_share_its_slot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
