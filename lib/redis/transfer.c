/* transfer.c: pieces of bitmaps, read and merged. See transfer.h.
 *
 *     read    GETRANGE seen 0 262143         parts of 256 KB, two on their way at once; behind
 *             GETRANGE seen 1725 1816        each the guard: one may be sent again behind the
 *             ...                            others, or be answered by another replica
 *     merge   EVAL merge seen ... bits       parts of 1 MB, likewise; the script is its own guard
 *             EVAL sum seen ... counters     of a counting filter, parts of 16 KB: each byte is added by Lua
 *
 * A part is ORed within one script, so no bit that others set meanwhile is lost,
 * and a process that dies has merged whole parts. Parts that are all 0 are not sent.
 *
 * 1 MB takes some 4 ms of the server, in parts of any size: Lua (Redis 7) hashes each
 * byte of a string that it gets, and gets three, the bits that come, those there, and
 * both ORed: no command copies a range from key to key. BITOP on whole keys would do
 * without two of them; but it took 15 ms for 16 MB and 1.7 s for 512 MB, needs the
 * key's memory twice, and takes its time to live away. */
#include "redis/transfer.h"
#include "bits/bits.h"
#include "redis/scripts.h"

#include <string.h>

#define READ_BYTES (256u << 10)
#define MERGE_BYTES (1u << 20)
#define SUM_BYTES (16u << 10) /* takes some 1.5 ms */

static size_t part_at(const struct piece *piece, uint64_t done, uint64_t part)
{
    return (size_t)(piece->len - done < part ? piece->len - done : part);
}

static void begin(struct transfer *transfer, struct link *link, const struct piece *piece, talk_step *step)
{
    memset(transfer, 0, sizeof *transfer);
    talk_begin(&transfer->talk, link, step);
    transfer->piece = piece;
}

/* ---- Reading --------------------------------------------------------------------- */

/* Where a bare bitmap ends early, 0 follows; a filter does not, unless the guard
 * finds it another one. */
static void take_part(struct transfer *transfer, unsigned number, const struct reply *reply)
{
    const uint64_t at = transfer->part_at[number];
    const size_t len = part_at(transfer->piece, at, READ_BYTES);

    if (!task_expect(&transfer->talk.task, reply, REDIS_REPLY_STRING, transfer->piece->key))
        return;
    if (reply->text_len > len)
        task_unexpected(&transfer->talk.task);
    transfer->cut[number] = reply->text_len < len && !transfer->talk.task.link->bare;
    if (reply->text_len < len)
        memset(transfer->out + at + reply->text_len, 0, len - reply->text_len);
}

static void take_read(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct transfer *transfer = (struct transfer *)talk;

    if (tag >> 1 != 0)
        (void)guard_take(talk, talk->task.link->count, index, reply);
    else if (index == 0)
        take_part(transfer, tag & 1, reply);
    else if (guard_take(talk, transfer->piece->key, index - 1, reply) && transfer->cut[tag & 1])
        task_unexpected(&talk->task);
}

static bool read_pipeline(struct talk *talk, struct outbox *outbox, unsigned number)
{
    struct transfer *transfer = (struct transfer *)talk;
    const struct piece *piece = transfer->piece;
    const size_t len = part_at(piece, transfer->asked, READ_BYTES);
    char name[KEYS_SIZE];

    if (len == 0)
        return false;
    const struct argument key = {name, keys_name(name, talk->task.link, piece->key)};
    outbox_begin(outbox, number, key); /* replicas need not have it */
    command_getrange(&outbox->commands, key, piece->from + transfer->asked, len);
    transfer->part_at[number] = transfer->asked;
    transfer->asked += len;
    guard_ask(talk->task.link, outbox, key, piece->key);
    outbox_end_into(outbox, 0, transfer->out + transfer->part_at[number], len);
    outbox_last(outbox)->anew = true;
    guard_ask_config(talk->task.link, outbox, 1 << 1 | number);
    return true;
}

static void begin_reading(struct talk *talk, struct outbox *outbox)
{
    talk_stream(talk, read_pipeline, take_read, NULL);
}

void transfer_begin_read(struct transfer *transfer, struct link *link, const struct piece *piece, unsigned char *out)
{
    begin(transfer, link, piece, begin_reading);
    transfer->talk.task.reads = true;
    transfer->out = out;
}

/* ---- Merging --------------------------------------------------------------------- */

static void take_merged(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct transfer *transfer = (struct transfer *)talk;

    if (!task_expect(&talk->task, reply, REDIS_REPLY_INTEGER, transfer->piece->key))
        return;
    if (reply->integers[0] == 1)
        return;
    if (reply->integers[0] == -1 && transfer->from != NULL)
        talk->task.link = transfer->from;
    else if (reply->integers[0] != 0)
        task_unexpected(&talk->task);
    guard_note_other(talk, transfer->piece->key);
}

/* Skips the parts that are all 0; of a piece that is nothing else, one is sent,
 * since each call proves the filter. It sends no byte then, so the script needs no right
 * but to read. A bare bitmap is not made for nothing. */
static size_t next_part(struct transfer *transfer)
{
    const struct piece *piece = transfer->piece;
    const uint64_t most = transfer->talk.task.link->spec->counters != 0 ? SUM_BYTES : MERGE_BYTES;
    size_t len = part_at(piece, transfer->asked, most);

    while (transfer->bits != NULL && len > 0 && bits_are_zero(transfer->bits + transfer->asked, len) &&
           (transfer->sent || transfer->talk.task.link->bare || transfer->asked + len < piece->len)) {
        transfer->asked += len;
        len = part_at(piece, transfer->asked, most);
    }
    return len;
}

static void ask_merge(struct transfer *transfer, struct commands *out, struct argument key, size_t len)
{
    struct link *into = transfer->talk.task.link;
    const uint32_t i = transfer->piece->key;
    char name[KEYS_SIZE];

    script_start(out, SCRIPT_MERGE_PART, transfer->from != NULL ? 4 : 3, transfer->from != NULL ? 7 : 4);
    command_argument(out, key);
    for (unsigned t = 0; t < 2; t++)
        command_argument(out, (struct argument){name, keys_temporary(name, into, i, "ab"[t], 0)});
    if (transfer->from != NULL)
        command_argument(out, (struct argument){name, keys_name(name, transfer->from, i)});
    link_expect(out, into, i, RECORD_IDENTITY);
    command_number(out, transfer->piece->from + transfer->asked);
    if (transfer->from == NULL) {
        const unsigned char *bits = transfer->bits + transfer->asked;
        command_argument(out, (struct argument){(const char *)bits, bits_are_zero(bits, len) ? 0 : len});
    } else {
        command_text(out, "");
        link_expect(out, transfer->from, i, RECORD_IDENTITY);
        command_number(out, len);
    }
}

static void ask_sum(struct transfer *transfer, struct commands *out, struct argument key, size_t len)
{
    const struct link *into = transfer->talk.task.link;

    script_start(out, SCRIPT_SUM, 1, 5);
    command_argument(out, key);
    link_expect(out, into, transfer->piece->key, RECORD_IDENTITY);
    command_counter_type(out, into->spec->counters);
    command_number(out, transfer->piece->from + transfer->asked);
    command_argument(out, (struct argument){(const char *)transfer->bits + transfer->asked, len});
}

static bool merge_pipeline(struct talk *talk, struct outbox *outbox, unsigned number)
{
    struct transfer *transfer = (struct transfer *)talk;
    struct link *into = talk->task.link;
    const size_t len = next_part(transfer);
    char name[KEYS_SIZE];

    if (len == 0)
        return false;
    const struct argument key = link_begin(into, outbox, number, transfer->piece->key, name);
    if (into->spec->counters != 0)
        ask_sum(transfer, &outbox->commands, key, len);
    else
        ask_merge(transfer, &outbox->commands, key, len);
    outbox_end(outbox);
    outbox_last(outbox)->replaceable = transfer->replaceable;
    transfer->asked += len;
    transfer->sent = true;
    return true;
}

/* A bare bitmap's guard, before and behind: that it was lost, and what was made. */
static void ask_bare(struct talk *talk, struct outbox *outbox)
{
    const uint32_t i = ((struct transfer *)talk)->piece->key;

    guard_ask_alone(talk->task.link, outbox, i, i);
    guard_ask_config(talk->task.link, outbox, talk->task.link->count);
    talk_then(talk, guard_take_before, NULL);
}

static void merge_parts(struct talk *talk, struct outbox *outbox)
{
    talk_stream(talk, merge_pipeline, take_merged, talk->task.link->bare ? ask_bare : NULL);
}

static void begin_merging(struct talk *talk, struct outbox *outbox)
{
    if (talk->task.link->bare) {
        ask_bare(talk, outbox);
        talk_then(talk, guard_take_before, merge_parts);
    } else {
        merge_parts(talk, outbox);
    }
}

/* A link that is about to get some has less room than was counted. */
static void begin_merge(struct transfer *transfer, struct link *into, const struct piece *piece)
{
    begin(transfer, into, piece, begin_merging);
    transfer->talk.task.adds = true;
    into->room = 0;
}

void transfer_begin_merge(struct transfer *transfer, struct link *into, const struct piece *piece,
                          const unsigned char *bits)
{
    begin_merge(transfer, into, piece);
    transfer->bits = bits;
}

void transfer_begin_merge_within(struct transfer *transfer, struct link *into, struct link *from,
                                 const struct piece *piece)
{
    begin_merge(transfer, into, piece);
    transfer->from = transfer->talk.task.from = from;
}
