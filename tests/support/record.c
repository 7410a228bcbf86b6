/* The record behind the bits of a key. See record.h. */
#include "record.h"

#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

static void read_columns(const char *key, struct stored_record *out)
{
    char again[TRAILER + 1];

    if (sscanf(out->trailer, " %u %llu %u/%u %x %c %llu %llx %llu hibloom1", &out->text_len, &out->bytes, &out->key,
               &out->keys, &out->crc, &out->state, &out->generation, &out->id, &out->epoch) != 9)
        fail_msg("%s ends in no trailer: '%s'", key, out->trailer);
    snprintf(again, sizeof again, " %04u %09llu %05u/%05u %08x %c %016llu %016llx %010llu hibloom1", out->text_len,
             out->bytes, out->key, out->keys, out->crc, out->state, out->generation, out->id, out->epoch);
    assert_string_equal(out->trailer, again);
    assert_int_equal(out->trailer[STATE_AT], out->state);
}

static uint64_t list_bytes(uint32_t key, uint32_t keys)
{
    return key == 0 && keys > 1 ? UINT64_C(16) * keys : 0;
}

void record_stored(struct redisContext *redis, const char *key, struct stored_record *out)
{
    redisReply *reply = redisCommand(redis, "GETRANGE %s -3000 -1", key);

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    assert_true(reply->len >= TRAILER);
    memcpy(out->trailer, reply->str + reply->len - TRAILER, TRAILER);
    out->trailer[TRAILER] = '\0';
    read_columns(key, out);
    assert_true(out->text_len < sizeof out->text && out->text_len + TRAILER <= reply->len);
    memcpy(out->text, reply->str + reply->len - TRAILER - out->text_len, out->text_len);
    out->text[out->text_len] = '\0';
    freeReplyObject(reply);

    const uLong crc = crc32(crc32(0, (const Bytef *)out->text, out->text_len), (const Bytef *)out->trailer, 27);
    assert_int_equal(out->crc, crc);
    out->length = (uint64_t)test_command(redis, "STRLEN %s", key);
    assert_int_equal(out->length, out->bytes + list_bytes(out->key, out->keys) + out->text_len + TRAILER);
}

uint64_t record_length(const struct spec *spec, uint32_t key)
{
    char text[SPEC_TEXT_SIZE];

    assert_ok(spec_format(spec, text, sizeof text), NULL);
    return spec_bitmap_bytes(spec) + list_bytes(key, spec_keys(spec)) + strlen(text) + TRAILER;
}

long long keys_with(struct redisContext *redis, const char *word)
{
    redisReply *reply = redisCommand(redis, "KEYS *%s*", word);

    assert_non_null(reply);
    const long long count = (long long)reply->elements;
    freeReplyObject(reply);
    return count;
}
