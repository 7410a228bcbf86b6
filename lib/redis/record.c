/* record.c: the record behind the bits of a key. See record.h. */
#include "redis/record.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

_Static_assert(RECORD_END == 2140, "RECORD_FROM_END says so");

/* The crc covers the text and these columns of the trailer. */
#define SUMMED " %04" PRIu32 " %09" PRIu64 " %05" PRIu32 "/%05" PRIu32
#define SUMMED_BYTES 27

uint32_t record_crc(const struct record *record, const char *text)
{
    char columns[SUMMED_BYTES + 1];
    const uLong crc = crc32_z(0, (const unsigned char *)text, record->text_len);

    snprintf(columns, sizeof columns, SUMMED, record->text_len, record->bytes, record->key, record->keys);
    return (uint32_t)crc32_z(crc, (const unsigned char *)columns, SUMMED_BYTES);
}

void record_format(const struct record *record, char trailer[RECORD_TRAILER])
{
    char text[RECORD_TRAILER + 1];

    snprintf(text, sizeof text, SUMMED " %08" PRIx32 " %c %016" PRIu64 " %016" PRIx64 " %010" PRIu64 " " RECORD_FORMAT,
             record->text_len, record->bytes, record->key, record->keys, record->crc, (char)record->state,
             record->generation, record->id, record->epoch);
    memcpy(trailer, text, RECORD_TRAILER);
}

/* Digits, hexadecimal ones, the state; the rest as it stands. */
static const char columns[] =
    " 0000 000000000 00000/00000 ffffffff s 0000000000000000 ffffffffffffffff 0000000000 hibloom1";

/* Any of these stands at s. */
static const char states[] = {RECORD_READY, RECORD_GROWN, RECORD_CREATING, RECORD_REMOVING};

static bool has_columns(const char trailer[RECORD_TRAILER])
{
    for (size_t i = 0; i < RECORD_TRAILER; i++) {
        const char c = trailer[i];
        const bool digit = c >= '0' && c <= '9';
        if (columns[i] == '0'   ? !digit
            : columns[i] == 'f' ? !digit && !(c >= 'a' && c <= 'f')
            : columns[i] == 's' ? memchr(states, c, sizeof states) == NULL
                                : c != columns[i])
            return false;
    }
    return true;
}

/* In these columns each number fits its type, and something else stands behind it. */
bool record_parse(const char trailer[RECORD_TRAILER], struct record *record)
{
    if (!has_columns(trailer))
        return false;
    record->text_len = (uint32_t)strtoul(trailer + 1, NULL, 10);
    record->bytes = strtoul(trailer + 6, NULL, 10);
    record->key = (uint32_t)strtoul(trailer + 16, NULL, 10);
    record->keys = (uint32_t)strtoul(trailer + 22, NULL, 10);
    record->crc = (uint32_t)strtoul(trailer + 28, NULL, 16);
    record->state = (enum record_state)trailer[RECORD_STATE_AT];
    record->generation = strtoull(trailer + 39, NULL, 10);
    record->id = strtoull(trailer + 56, NULL, 16);
    record->epoch = strtoull(trailer + 73, NULL, 10);
    return record->key < record->keys;
}

uint64_t record_list_bytes(uint32_t key, uint32_t keys)
{
    return key == 0 && keys > 1 ? (uint64_t)keys * RECORD_ID_DIGITS : 0;
}

/* The text must be canonical and have its seed, bits and keys are those that it tells, and the keys are ours. */
static enum record_found read_text(const char *end, size_t len, struct record *record)
{
    struct spec spec = {.hashes = 0};
    hibloom_status status = HIBLOOM_ECORRUPT;

    if (record->text_len >= sizeof record->text || record->text_len + RECORD_TRAILER > len)
        return RECORD_DAMAGED;
    memcpy(record->text, end + len - RECORD_TRAILER - record->text_len, record->text_len);
    record->text[record->text_len] = '\0';
    if (strlen(record->text) == record->text_len && record->crc == record_crc(record, record->text))
        status = spec_adopt(&spec, record->text);
    const bool fits = status == HIBLOOM_OK && spec.keys == KEYS_OWN && !spec_lacks_seed(&spec) &&
                      record->keys == spec_keys(&spec) && record->bytes == spec_bitmap_bytes(&spec);
    record->link = spec.link;
    record->chain = spec.chain;
    explicit_bzero(&spec, sizeof spec); /* the seed */
    return fits ? RECORD_FOUND : status == HIBLOOM_ENOTSUP ? RECORD_NEWER : RECORD_DAMAGED;
}

enum record_found record_read_end(const char *end, size_t len, struct record *record)
{
    if (len == 0)
        return RECORD_NOTHING;
    if (len > RECORD_END) /* more than the request */
        len = RECORD_END;
    if (len < RECORD_TRAILER || memcmp(end + len - strlen(RECORD_FORMAT), RECORD_FORMAT, strlen(RECORD_FORMAT)) != 0)
        return RECORD_NONE;
    return record_parse(end + len - RECORD_TRAILER, record) ? read_text(end, len, record) : RECORD_DAMAGED;
}

void record_identity(uint64_t generation, uint64_t id, char out[RECORD_IDENTITY + 1])
{
    snprintf(out, RECORD_IDENTITY + 1, "%016" PRIu64 " %016" PRIx64, generation, id);
}

void record_format_id(uint64_t id, char out[RECORD_ID_DIGITS + 1])
{
    snprintf(out, RECORD_ID_DIGITS + 1, "%016" PRIx64, id);
}
