/* What goes over the wire and what is read from it, without a wire: commands to bytes, bytes to answers, URIs, and the
 * names of keys. These are functions inside the library; test programs link the static one. */
#include "support/test.h"

#include "resp/command.h"
#include "redis/link.h"
#include "resp/reply.h"
#include "hibloom/hibloom.h"
#include "spec/spec.h"

#include <stdio.h>
#include <string.h>

static void commands_are_written_with_lengths(void **state)
{
    static const char expected[] = "*4\r\n$6\r\nSETBIT\r\n$5\r\na\0%s\n\r\n$20\r\n18446744073709551615\r\n$0\r\n\r\n";
    struct commands commands = {0};

    command_start(&commands, 4, "SETBIT");
    command_argument(&commands, (struct argument){"a\0%s\n", 5});
    command_number(&commands, UINT64_MAX);
    command_text(&commands, "");
    assert_false(commands.failed);
    assert_int_equal(commands.len, sizeof expected - 1);
    assert_memory_equal(commands.bytes, expected, sizeof expected - 1);

    commands_empty(&commands);
    assert_int_equal(commands.len, 0);
    for (int i = 0; i < 10000; i++)
        command_start(&commands, 1, "PING");
    assert_int_equal(commands.len, 10000 * strlen("*1\r\n$4\r\nPING\r\n"));
    assert_memory_equal(commands.bytes + commands.len - 14, "*1\r\n$4\r\nPING\r\n", 14);
    commands_free(&commands);
}

/* Feeds the bytes in pieces of `step`; the answer, which must be one. */
static void read_answer(const char *bytes, size_t len, size_t step, struct reply *reply)
{
    redisReader *reader = redisReaderCreateWithFunctions(&reply_functions);
    void *object = NULL;

    memset(reply, 0x55, sizeof *reply);
    reply_reset(reply);
    reader->privdata = reply;
    for (size_t at = 0; at < len; at += step) {
        assert_null(object);
        assert_int_equal(redisReaderFeed(reader, bytes + at, at + step < len ? step : len - at), REDIS_OK);
        assert_int_equal(redisReaderGetReply(reader, &object), REDIS_OK);
    }
    assert_non_null(object);
    reply_functions.freeObject(object);
    redisReaderFree(reader);
}

static void answers_are_noted_whole_or_in_pieces(void **state)
{
    static const struct {
        const char *bytes;
        int type;
        size_t count;
        const char *text;
    } cases[] = {
        {":1\r\n", REDIS_REPLY_INTEGER, 1, ""},
        {"+QUEUED\r\n", REDIS_REPLY_STATUS, 0, "QUEUED"},
        {"-ERR no\r\n", REDIS_REPLY_ERROR, 0, "ERR no"},
        {"$5\r\nhello\r\n", REDIS_REPLY_STRING, 0, "hello"},
        {"$0\r\n\r\n", REDIS_REPLY_STRING, 0, ""},
        {"$-1\r\n", REDIS_REPLY_NIL, 0, ""},
        {"*-1\r\n", REDIS_REPLY_NIL, 0, ""},
        {"*3\r\n:1\r\n:0\r\n:1\r\n", REDIS_REPLY_ARRAY, 3, ""},
        {"*2\r\n*1\r\n:1\r\n*2\r\n:0\r\n:1\r\n", REDIS_REPLY_ARRAY, 3, ""},
        {"*2\r\n:1\r\n$-1\r\n", REDIS_REPLY_ARRAY, 1, ""},
        {"*3\r\n:1\r\n-OOM first\r\n-ERR second\r\n", REDIS_REPLY_ERROR, 1, "OOM first"},
        {"*0\r\n", REDIS_REPLY_ARRAY, 0, ""},
    };
    struct reply reply;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step <= strlen(cases[i].bytes); step++) {
            read_answer(cases[i].bytes, strlen(cases[i].bytes), step, &reply);
            assert_int_equal(reply.type, cases[i].type);
            assert_int_equal(reply.count, cases[i].count);
            assert_string_equal(reply.text, cases[i].text);
            assert_int_equal(reply.text_len, strlen(cases[i].text));
        }
    read_answer("*3\r\n:1\r\n:0\r\n:-7\r\n", 18, 18, &reply);
    assert_int_equal(reply.integers[0], 1);
    assert_int_equal(reply.integers[1], 0);
    assert_int_equal(reply.integers[2], -7);
    assert_int_equal(reply.elements, 3);
    read_answer("*2\r\n*1\r\n:1\r\n*2\r\n:0\r\n:1\r\n", 24, 5, &reply);
    assert_int_equal(reply.elements, 2);
    assert_int_equal(reply.count, 3);
}

static void long_answers_are_cut_but_counted(void **state)
{
    char bytes[8 * REPLY_INTEGERS + 4 * REPLY_TEXT];
    struct reply reply;
    int len;

    len = snprintf(bytes, sizeof bytes, "$%u\r\n", 2 * REPLY_TEXT);
    memset(bytes + len, 'x', 2 * REPLY_TEXT);
    memcpy(bytes + len + 2 * REPLY_TEXT, "\r\n", 3);
    read_answer(bytes, (size_t)len + 2 * REPLY_TEXT + 2, 100, &reply);
    assert_int_equal(reply.text_len, 2 * REPLY_TEXT);
    assert_int_equal(strlen(reply.text), REPLY_TEXT);

    len = snprintf(bytes, sizeof bytes, "*%u\r\n", REPLY_INTEGERS + 5);
    for (unsigned i = 0; i < REPLY_INTEGERS + 5; i++)
        len += snprintf(bytes + len, sizeof bytes - (size_t)len, ":1\r\n");
    read_answer(bytes, (size_t)len, 100, &reply);
    assert_int_equal(reply.count, REPLY_INTEGERS + 5);
    assert_int_equal(reply.integers[REPLY_INTEGERS - 1], 1);
}

/* In the slot of the key that they are for, and two of them; no name that a caller can give has a zero byte. */
static void temporary_keys_are_nobodys_and_share_the_slot(void **state)
{
    static const char *const names[] = {"seen", "a:b c", "{tag}seen", "my{tag}", "{{a}}x"};
    hibloom_store *store;

    assert_ok(hibloom_connect(&store, "memory:", NULL), NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int several = 0; several < 2; several++) {
            const char *text = several ? "bits=64 hashes=3 layout=partitioned" : "bits=64 hashes=3";
            hibloom *filter = test_open(store, names[i], text);
            struct redis_filter of = {.handle = filter};
            const struct link link = {.of = &of, .spec = &filter->spec};
            char key[KEYS_SIZE], one[KEYS_SIZE], two[KEYS_SIZE];
            const uint32_t number = several ? 2 : 0;
            const size_t len = keys_name(key, &link, number), one_len = keys_temporary(one, &link, number, 'a', 7),
                         two_len = keys_temporary(two, &link, number, 'b', 7);

            assert_true(strlen(one) < one_len && strlen(two) < two_len && two_len < KEYS_SIZE);
            assert_int_equal(one_len, two_len);
            assert_memory_not_equal(one, two, one_len);
            assert_int_equal(keys_slot(one, one_len), keys_slot(key, len));
            assert_int_equal(keys_slot(two, two_len), keys_slot(key, len));
            assert_dropped(filter, store);
        }
    hibloom_store_free(store);
}

static void names_without_a_slot_of_their_own_are_refused(void **state)
{
    static const char *const bad[] = {"", "{", "}", "{}", "{}x", "x{", "x}y", "}{", "{}{a}"};
    char longest[HIBLOOM_NAME_MAX + 2], key[KEYS_SIZE];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(keys_check(bad[i]), HIBLOOM_EINVAL);
    assert_int_equal(keys_check("{seen}"), HIBLOOM_OK); /* whose keys are not those of "seen" */
    memset(longest, 'n', sizeof longest);
    longest[HIBLOOM_NAME_MAX + 1] = '\0';
    assert_int_equal(keys_check(longest), HIBLOOM_ERANGE);
    longest[HIBLOOM_NAME_MAX] = '\0';
    assert_int_equal(keys_check(longest), HIBLOOM_OK);
    assert_int_equal(keys_at(key, longest, true, 65535), HIBLOOM_NAME_MAX + 6);
    assert_string_equal(key + HIBLOOM_NAME_MAX, ":65535");
}

static void every_status_has_words(void **state)
{
    static const char *const unknown = "unknown status";
    const char *words[HIBLOOM_ELOST + 1];
    unsigned known = 0;

    for (int status = 0; status <= HIBLOOM_ELOST; status++) {
        words[status] = hibloom_strerror((hibloom_status)status);
        known += strcmp(words[status], unknown) != 0;
        for (int other = 0; other < status; other++)
            assert_true(strcmp(words[status], words[other]) != 0 || strcmp(words[status], unknown) == 0);
    }
    assert_int_equal(known, 17);
    assert_string_equal(hibloom_strerror((hibloom_status)77), unknown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_written_with_lengths),
        cmocka_unit_test(answers_are_noted_whole_or_in_pieces),
        cmocka_unit_test(long_answers_are_cut_but_counted),
        cmocka_unit_test(temporary_keys_are_nobodys_and_share_the_slot),
        cmocka_unit_test(names_without_a_slot_of_their_own_are_refused),
        cmocka_unit_test(every_status_has_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
