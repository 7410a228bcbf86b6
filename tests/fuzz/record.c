/* Fuzz target: the end of a key's string, where anybody who may write to Redis
 * can put anything: a spec text and a trailer, or something like them. */
#include "fuzz.h"
#include "redis/record.h"
#include "spec/spec.h"

/* What parses is what would be written. */
static void require_trailer(const char trailer[RECORD_TRAILER])
{
    char again[RECORD_TRAILER];
    struct record record;

    if (!record_parse(trailer, &record))
        return;
    record_format(&record, again);
    REQUIRE(memcmp(again, trailer, RECORD_TRAILER) == 0);
    REQUIRE(record.key < record.keys && record.text_len < 10000);
    REQUIRE(record_list_bytes(record.key, record.keys) <= UINT64_C(99999) * RECORD_ID_DIGITS);
    REQUIRE(record.bytes + record_list_bytes(record.key, record.keys) + record.text_len >= record.bytes);
}

static void require_record(const char *end, size_t len, const struct record *record)
{
    char trailer[RECORD_TRAILER];
    struct spec spec;

    record_format(record, trailer);
    REQUIRE(memcmp(end + len - RECORD_TRAILER, trailer, RECORD_TRAILER) == 0);
    REQUIRE(memcmp(end + len - RECORD_TRAILER - record->text_len, record->text, record->text_len) == 0);
    REQUIRE(strlen(record->text) == record->text_len);
    REQUIRE(record_crc(record, record->text) == record->crc);
    REQUIRE(spec_adopt(&spec, record->text) == HIBLOOM_OK);
    REQUIRE(spec.keys == KEYS_OWN && record->keys == spec_keys(&spec) && record->bytes == spec_bitmap_bytes(&spec));
}

static void read_end(const char *end, size_t len)
{
    struct record record;
    const enum record_found found = record_read_end(end, len, &record);

    REQUIRE((found == RECORD_NOTHING) == (len == 0));
    if (len > RECORD_END) /* more than was asked for is not read */
        len = RECORD_END;
    if (len < RECORD_TRAILER)
        REQUIRE(found == RECORD_NOTHING || found == RECORD_NONE);
    else
        require_trailer(end + len - RECORD_TRAILER);
    if (found == RECORD_FOUND)
        require_record(end, len, &record);
}

/* Bytes at random never have the right checksum: it is put in. */
static void mend_crc(char *end, size_t len)
{
    struct record record;

    if (len < RECORD_TRAILER || !record_parse(end + len - RECORD_TRAILER, &record) ||
        record.text_len + RECORD_TRAILER > len)
        return;
    record.crc = record_crc(&record, end + len - RECORD_TRAILER - record.text_len);
    record_format(&record, end + len - RECORD_TRAILER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *end = fuzz_copy(data, size, 0);

    read_end(end, size);
    mend_crc(end, size < RECORD_END ? size : RECORD_END);
    read_end(end, size);
    free(end);
    return 0;
}
