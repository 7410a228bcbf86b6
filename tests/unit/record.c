/* What lies behind the bits of a key: written in its columns, read back, and
 * not taken for a filter once a byte of it is altered that never changes. */
#include "support/test.h"

#include "base/number.h"
#include "redis/record.h"

#include <string.h>

/* Worked by hand, with Python's zlib.crc32 of the text and of columns 0 to 26. */
/* clang-format off */
static const struct worked {
    struct record record;
    const char *text, *trailer;
} worked[] = {
    {{.bytes = 13, .keys = 1, .crc = 0x2774212e,
      .generation = 1763740000123456, .id = 0x0123456789abcdef, .state = RECORD_READY},
     "hash=xxh3 layout=classic bits=104 hashes=2 seed=0000000000005eed",
     " 0064 000000013 00000/00001 2774212e r 1763740000123456 0123456789abcdef 0000000000 hibloom1"},
    {{.bytes = 25, .keys = 5, .crc = 0xcda49cc1,
      .generation = 7, .id = UINT64_MAX, .epoch = 9999999999, .state = RECORD_CREATING},
     "hash=xxh3 layout=classic bits=1000 hashes=3 segments=5 seed=0000000000005eed",
     " 0076 000000025 00000/00005 cda49cc1 c 0000000000000007 ffffffffffffffff 9999999999 hibloom1"},
    {{.bytes = 25, .key = 3, .keys = 5, .crc = 0xfc4c865c,
      .generation = 9999999999999999, .id = 1, .epoch = 1, .state = RECORD_REMOVING},
     "hash=xxh3 layout=classic bits=1000 hashes=3 segments=5 seed=0000000000005eed",
     " 0076 000000025 00003/00005 fc4c865c x 9999999999999999 0000000000000001 0000000001 hibloom1"},
};
/* clang-format on */
enum { WORKED = sizeof worked / sizeof worked[0] };

static struct record record_of(const struct worked *example)
{
    struct record record = example->record;

    record.text_len = (uint32_t)strlen(example->text);
    return record;
}

/* Text and trailer, as they stand at the end of a key; how many bytes. */
static size_t write_end(char end[RECORD_END], const struct record *record, const char *text)
{
    memcpy(end, text, record->text_len);
    record_format(record, end + record->text_len);
    return record->text_len + RECORD_TRAILER;
}

static void assert_same(const struct record *a, const struct record *b)
{
    assert_true(a->text_len == b->text_len && a->key == b->key && a->keys == b->keys && a->bytes == b->bytes);
    assert_true(a->crc == b->crc && a->generation == b->generation && a->id == b->id && a->epoch == b->epoch);
    assert_int_equal(a->state, b->state);
}

static void a_trailer_is_written_in_its_columns_and_read_back(void **state)
{
    char trailer[RECORD_TRAILER], identity[RECORD_IDENTITY + 1];
    struct record again;
    uint64_t id;

    for (int i = 0; i < WORKED; i++) {
        const struct record record = record_of(&worked[i]);
        assert_int_equal(strlen(worked[i].trailer), RECORD_TRAILER);
        record_format(&record, trailer);
        assert_memory_equal(trailer, worked[i].trailer, RECORD_TRAILER);
        assert_true(record_parse(trailer, &again));
        assert_same(&again, &record);
        record_identity(record.generation, record.id, identity);
        assert_memory_equal(identity, trailer + RECORD_IDENTITY_AT, RECORD_IDENTITY);
        assert_true(number_parse_hex(trailer + 56, RECORD_ID_DIGITS, &id) && id == record.id);
    }
    assert_false(number_parse_hex("0123456789abcdeg", RECORD_ID_DIGITS, &id));
    assert_false(number_parse_hex("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", RECORD_ID_DIGITS, &id));
}

static void the_crc_is_zlibs_of_the_text_and_the_first_columns(void **state)
{
    for (int i = 0; i < WORKED; i++) {
        struct record record = record_of(&worked[i]);
        assert_int_equal(record_crc(&record, worked[i].text), worked[i].record.crc);
        record.state = RECORD_REMOVING; /* what changes in the life of a key is not in it */
        record.generation++;
        record.id++;
        record.epoch++;
        record.crc = 0;
        assert_int_equal(record_crc(&record, worked[i].text), worked[i].record.crc);
    }
}

static void the_end_of_a_key_is_a_filter_or_nothing_of_the_kind(void **state)
{
    char end[RECORD_END], padded[RECORD_END];
    struct record record;

    for (int i = 0; i < WORKED; i++) {
        const struct record written = record_of(&worked[i]);
        const size_t len = write_end(end, &written, worked[i].text);
        assert_int_equal(record_read_end(end, len, &record), RECORD_FOUND);
        assert_same(&record, &written);
        assert_string_equal(record.text, worked[i].text);
        memset(padded, 0xff, sizeof padded); /* with bits in front */
        memcpy(padded + sizeof padded - len, end, len);
        assert_int_equal(record_read_end(padded, sizeof padded, &record), RECORD_FOUND);
        assert_same(&record, &written);
        for (size_t cut = 1; cut <= len; cut++) { /* from its front, and from its end */
            const enum record_found whole = cut == len ? RECORD_NOTHING : RECORD_NONE;
            assert_int_equal(record_read_end(end, len - cut, &record), whole);
            const enum record_found headless = record_read_end(end + cut, len - cut, &record);
            assert_int_equal(headless, cut == len                   ? RECORD_NOTHING
                                       : len - cut < RECORD_TRAILER ? RECORD_NONE
                                                                    : RECORD_DAMAGED);
        }
        padded[sizeof padded - 1] = '2'; /* a later format */
        assert_int_equal(record_read_end(padded, sizeof padded, &record), RECORD_NONE);
    }
    memset(padded, 0, sizeof padded);
    assert_int_equal(record_read_end(padded, sizeof padded, &record), RECORD_NONE);
    memcpy(padded + sizeof padded - 8, "hibloom1", 8);
    assert_int_equal(record_read_end(padded, sizeof padded, &record), RECORD_DAMAGED);
}

/* State, generation, id and epoch are what the life of a key changes. The guard
 * compares the first three of them; the epoch is told by no one. */
static bool may_change(size_t column)
{
    return column == RECORD_STATE_AT || (column >= 39 && column < 55) || (column >= 56 && column < 72) ||
           (column >= 73 && column < 83);
}

static void every_other_byte_that_is_altered_is_found(void **state)
{
    char end[RECORD_END];
    struct record record;
    unsigned taken = 0;

    for (int i = 0; i < WORKED; i++) {
        const struct record written = record_of(&worked[i]);
        const size_t len = write_end(end, &written, worked[i].text);
        for (size_t at = 0; at < len; at++) {
            const char before = end[at];
            const bool free_to = at >= written.text_len && may_change(at - written.text_len);
            for (unsigned byte = 0; byte < 256; byte++) {
                end[at] = (char)byte;
                const enum record_found found = record_read_end(end, len, &record);
                if (end[at] == before)
                    continue;
                if (!free_to)
                    assert_int_not_equal(found, RECORD_FOUND);
                if (found != RECORD_FOUND)
                    continue;
                taken++;
                assert_true(record.bytes == written.bytes && record.key == written.key && record.keys == written.keys &&
                            record.crc == written.crc);
                assert_true(record.generation != written.generation || record.id != written.id ||
                            record.state != written.state || record.epoch != written.epoch);
            }
            end[at] = before;
        }
    }
    assert_true(taken > 0);
}

/* With a crc that is right: what was written so was never this library's. */
static void a_record_that_is_not_its_texts_is_damaged(void **state)
{
    static const char *const texts[] = {
        "bits=104 layout=classic hash=xxh3 hashes=2 seed=0000000000005eed",    /* in another order */
        "hash=xxh3 layout=classic bits=104 hashes=2 seed=00000000000o5eed",    /* no spec */
        "hash=xxh3 layout=classic bits=112 hashes=2 seed=0000000000005eed",    /* other bits than so many bytes hold */
        "hash=xxh3 layout=classic bits=104 hashes=2 capacity=9 error=0.01",    /* without its seed */
        "hash=xxh3 layout=classic bits=104 hashes=2 segments=2 seed=5eed--",   /* and no spec */
        "hash=xxh3 layout=classic bits=104 hashes=2 seed=00000000000\0005eed", /* a zero byte in it */
        "hash=php-mt-legacy layout=classic bits=104 hashes=2 keys=rueidis",    /* another library's keys */
    };
    struct record record, read;
    char end[RECORD_END];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        record = record_of(&worked[0]);
        record.crc = record_crc(&record, texts[i]);
        assert_int_equal(record_read_end(end, write_end(end, &record, texts[i]), &read), RECORD_DAMAGED);
    }
    for (int i = 0; i < 5; i++) {
        record = record_of(&worked[2]);
        record.bytes += i == 0;
        record.keys += i == 1;
        record.key = i == 2 ? record.keys : record.key;
        record.state = i == 3 ? 'q' : record.state;
        record.crc = record_crc(&record, worked[2].text);
        assert_int_equal(record_read_end(end, write_end(end, &record, worked[2].text), &read),
                         i == 4 ? RECORD_FOUND : RECORD_DAMAGED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trailer_is_written_in_its_columns_and_read_back),
        cmocka_unit_test(the_crc_is_zlibs_of_the_text_and_the_first_columns),
        cmocka_unit_test(the_end_of_a_key_is_a_filter_or_nothing_of_the_kind),
        cmocka_unit_test(every_other_byte_that_is_altered_is_found),
        cmocka_unit_test(a_record_that_is_not_its_texts_is_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
