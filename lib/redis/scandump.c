/* scandump.c: pieces of a dump of RedisBloom. See scandump.h.
 *
 *     BF.SCANDUMP key 0        1, and the header
 *     BF.SCANDUMP key 1        1 + n, and n bytes; 16 MB at most
 *     BF.SCANDUMP key 1+n      ... 0, and nothing
 *
 * It asks the primary: two replicas that lag behind may have different states. */
#include "redis/scandump.h"
#include "base/store.h"

#include <string.h>

/* The key is no filter of ours: the advice that is given elsewhere would mislead. */
static void refused(struct scandump *dump, const char *words)
{
    struct task *task = &dump->talk.task;
    const enum refusal refusal = refusal_of(words);

    if (strncmp(words, "ERR not found", 13) == 0) {
        task_fail(task, HIBLOOM_ENOTFOUND, "'%.256s': the server has no such filter of RedisBloom", dump->key);
    } else if (refusal == REFUSAL_UNKNOWN_COMMAND) {
        task_fail(task, HIBLOOM_ENOTSUP,
                  "'%.256s': the server has no BF.SCANDUMP, or not under this name: where a filter of RedisBloom is, "
                  "the module is loaded (it is a part of Redis 8)",
                  dump->key);
    } else if (refusal == REFUSAL_WRONGTYPE) {
        task_fail(task, HIBLOOM_EMISMATCH, "'%.256s': the key holds something else than a filter of RedisBloom",
                  dump->key);
    } else {
        task_fail_as(task, task_refusal(task, refusal, words, dump->key));
    }
}

static void take_piece(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct scandump *dump = (struct scandump *)talk;

    if (reply->type == REDIS_REPLY_ERROR) {
        refused(dump, reply->text);
    } else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply->count != 1 ||
               reply->integers[0] < 0) {
        task_unexpected(&talk->task);
    } else {
        dump->piece->next = (uint64_t)reply->integers[0];
        dump->piece->len = reply->text_len;
    }
}

static void ask(struct talk *talk, struct outbox *outbox)
{
    const struct scandump *dump = (const struct scandump *)talk;
    const struct argument key = {dump->key, strlen(dump->key)};

    outbox_begin(outbox, 0, key);
    command_start_on(&outbox->commands, 3, "BF.SCANDUMP", key);
    command_number(&outbox->commands, dump->piece->at);
    outbox_end_into(outbox, 0, dump->piece->bytes, dump->piece->room);
    talk_then(talk, take_piece, NULL);
}

void scandump_begin(struct scandump *dump, const char *key, struct dumped *piece)
{
    *dump = (struct scandump){.key = key, .piece = piece};
    talk_begin(&dump->talk, NULL, ask);
}
