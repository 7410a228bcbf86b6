/* Fuzz target: what a server answers. The first byte says in what pieces the rest arrives, whether strings go to a room
 * of the asker's, and whether pushes have an owner; the answers must be those of the same bytes in one piece. */
#include "fuzz.h"
#include "resp/refusal.h"
#include "resp/reply.h"

#define ROOM 16u /* of strings that go elsewhere */
#define PIECE(setting) (1u + ((setting)&15u))
#define HAS_ROOM 16u
#define HAS_OWNER 32u

struct stream {
    redisReader *reader;
    struct reply reply;
    unsigned char room[ROOM + 1]; /* and a byte that stays as it is */
    uint64_t sum, answers;        /* of all that the answers said */
    bool failed;
};

static void add_to_sum(struct stream *s, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        s->sum = (s->sum ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static void next_answer(struct stream *s, unsigned setting)
{
    reply_reset(&s->reply);
    memset(s->room, 0xaa, sizeof s->room);
    if (setting & HAS_ROOM) {
        s->reply.bulk = s->room;
        s->reply.bulk_room = ROOM;
    }
}

static void require_explained(const char *words)
{
    const enum refusal refusal = refusal_of(words);
    char explained[4096], cut[16];

    REQUIRE(refusal_status(refusal) >= HIBLOOM_EIO);
    refusal_explain(refusal, words, explained, sizeof explained);
    refusal_explain(refusal, words, cut, sizeof cut);
    REQUIRE(strncmp(explained, cut, sizeof cut - 1) == 0 && strlen(cut) < sizeof cut);
}

static void take_answer(struct stream *s, void *object)
{
    const struct reply *reply = &s->reply;
    const size_t integers = reply->count < REPLY_INTEGERS ? reply->count : REPLY_INTEGERS;
    const size_t text_len = strnlen(reply->text, sizeof reply->text);

    REQUIRE(text_len <= REPLY_TEXT);
    REQUIRE(s->room[ROOM] == 0xaa);
    REQUIRE(reply->pushed || (reply->type >= REDIS_REPLY_STRING && reply->type < 32));
    REQUIRE(reply->type != REDIS_REPLY_INTEGER || (reply->count == 1 && reply->text_len == 0));
    add_to_sum(s, &reply->type, sizeof reply->type);
    add_to_sum(s, &reply->elements, sizeof reply->elements);
    add_to_sum(s, &reply->count, sizeof reply->count);
    add_to_sum(s, reply->integers, integers * sizeof reply->integers[0]);
    add_to_sum(s, &reply->text_len, sizeof reply->text_len);
    add_to_sum(s, reply->text, text_len);
    add_to_sum(s, s->room, ROOM);
    if (reply->type == REDIS_REPLY_ERROR)
        require_explained(reply->text);
    s->answers++;
    reply_functions.freeObject(object);
}

static void feed(struct stream *s, unsigned setting, const char *bytes, size_t len)
{
    void *object = NULL;

    s->failed = s->failed || redisReaderFeed(s->reader, bytes, len) != REDIS_OK;
    while (!s->failed) {
        s->failed = redisReaderGetReply(s->reader, &object) != REDIS_OK;
        if (s->failed || object == NULL)
            return;
        take_answer(s, object);
        next_answer(s, setting);
    }
}

static void read_stream(struct stream *s, unsigned setting, const uint8_t *bytes, size_t size, size_t piece)
{
    redisReader *owner = redisReaderCreate(); /* for its functions, with which hiredis builds objects */

    *s = (struct stream){.reader = redisReaderCreateWithFunctions(&reply_functions)};
    REQUIRE(s->reader != NULL && owner != NULL);
    s->reader->privdata = &s->reply;
    s->reply.owner = setting & HAS_OWNER ? owner->fn : NULL;
    next_answer(s, setting);
    for (size_t at = 0; at < size && !s->failed; at += piece) {
        const size_t len = piece < size - at ? piece : size - at;
        char *copy = fuzz_copy(bytes + at, len, 0);
        feed(s, setting, copy, len);
        free(copy);
    }
    reply_leave(s->reader);
    redisReaderFree(s->reader);
    redisReaderFree(owner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stream whole, pieces;

    if (size < 2)
        return 0;
    read_stream(&whole, data[0], data + 1, size - 1, size - 1);
    read_stream(&pieces, data[0], data + 1, size - 1, PIECE(data[0]));
    REQUIRE(whole.answers == pieces.answers && whole.sum == pieces.sum);
    REQUIRE(whole.failed == pieces.failed);
    return 0;
}
