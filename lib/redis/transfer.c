/* transfer.c: pieces of bitmaps, read and merged. See transfer.h.
 *
 *     read    GETRANGE seen 0 262143         parts of 256 KB, two on their way at once; behind
 *             GETRANGE seen 1725 1816        each the guard: one may be sent again behind the
 *             ...                            others, or be answered by another replica
 *
 *     merge   PSETEX tmp 60000 bits          a whole key: the bits to set, under a temporary name
 *             EVAL merge seen tmp [old]      guard, BITOP OR tmp seen tmp, [RENAME seen old,] RENAME tmp seen
 *             GETRANGE old 0 262143 ...      only if somebody asks: the bits that were there before
 *             PEXPIRE old 0                  removes it, by a right that the script needs anyway
 *
 *     merge   EVAL merge seen ... bits       else by parts of 1 MB, two on their way; the script is its own guard
 *             EVAL sum seen ... counters     of a counting filter, parts of 16 KB: each byte is added by Lua
 *
 * In one step: if an answer is lost, the script is sent again alone. It finds the bits before (rule "done"), the bits
 * to set (not done yet), or neither (rule "none"). In the last case, and if the bits before are gone while they are
 * read, all begins again. From then on the bits before may hold those of the first time, so they prove nothing.
 *
 * By parts: a part is ORed within one script, so no bit that others set meanwhile is lost, and a process that dies has
 * merged whole parts. Parts that are all 0 are not sent. 1 MB takes some 4 ms of the server, in parts of any size: Lua
 * (Redis 7) hashes each byte of a string that it gets, and gets three, the bits that come, those there, and both ORed:
 * no command copies a range from key to key. BITOP on whole keys does without two of them; but it took 15 to 25 ms for
 * 16 MB and 1.7 s for 512 MB. */
#include "redis/transfer.h"
#include "base/number.h"
#include "bits/bits.h"
#include "redis/life.h"
#include "redis/scripts.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define READ_BYTES (256u << 10)
#define MERGE_BYTES (1u << 20)
#define SUM_BYTES (16u << 10) /* takes some 1.5 ms */
#define TRIES 16u

static struct transfer *transfer_of(struct talk *talk)
{
    return (struct transfer *)talk;
}

static size_t part_at(const struct piece *piece, uint64_t done, uint64_t part)
{
    return (size_t)(piece->len - done < part ? piece->len - done : part);
}

/* Its temporary keys: the bits to set, and those that were there before. They lie beside the key, in its slot. */
enum { BITS = 'a', OLD = 'b' };

static struct argument temporary(const struct transfer *transfer, char key[KEYS_SIZE], char what)
{
    return (struct argument){
        key, keys_temporary(key, transfer->talk.task.link, transfer->piece->key, what, transfer->number)};
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
    struct transfer *transfer = transfer_of(talk);

    if (tag >> 1 != 0)
        (void)guard_take(talk, talk->task.link->count, index, reply);
    else if (index == 0)
        take_part(transfer, tag & 1, reply);
    else if (guard_take(talk, transfer->piece->key, index - 1, reply) && transfer->cut[tag & 1])
        task_unexpected(&talk->task);
}

/* Of the key, with the guard behind it; or of the bits before a merge, whose name is proof enough. */
static bool read_pipeline(struct talk *talk, struct outbox *outbox, unsigned number)
{
    struct transfer *transfer = transfer_of(talk);
    const struct piece *piece = transfer->piece;
    struct link *link = talk->task.link;
    const size_t len = part_at(piece, transfer->asked, READ_BYTES);
    const bool before = transfer->bits != NULL;
    char name[KEYS_SIZE];

    if (len == 0 || transfer->lost)
        return false;
    const struct argument key = before ? temporary(transfer, name, OLD)
                                       : (struct argument){name, keys_name(name, link, piece->key)};
    outbox_begin(outbox, number, key); /* replicas need not have it */
    command_getrange(&outbox->commands, key, piece->from + transfer->asked, len);
    transfer->part_at[number] = transfer->asked;
    transfer->asked += len;
    if (!before)
        guard_ask(link, outbox, key, piece->key);
    outbox_end_into(outbox, 0, transfer->out + transfer->part_at[number], len);
    outbox_last(outbox)->as_one = !before;
    if (!before)
        guard_ask_config(link, outbox, 1 << 1 | number);
    return true;
}

void transfer_begin_read(struct transfer *transfer, struct link *link, const struct piece *piece, unsigned char *out)
{
    begin(transfer, link, piece, NULL);
    talk_stream(&transfer->talk, read_pipeline, take_read, NULL);
    transfer->talk.task.reads = true;
    transfer->out = out;
}

/* ---- In one step ------------------------------------------------------------------- */

enum { TAG_BITS, TAG_SCRIPT };

static void begin_again(struct talk *, struct outbox *);
static void judge_answer(struct talk *, struct outbox *);

/* Rule "whole": a part that is not there is seen. */
static void take_old(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    take_part(transfer_of(talk), tag & 1, reply);
    transfer_of(talk)->lost |= transfer_of(talk)->cut[tag & 1];
}

/* It would expire by itself, so nobody minds if that fails. */
static void remove_temporary(struct talk *talk, struct outbox *outbox, char what)
{
    char name[KEYS_SIZE];
    const struct argument key = temporary(transfer_of(talk), name, what);

    outbox_begin(outbox, 0, key);
    command_start_on(&outbox->commands, 3, "PEXPIRE", key);
    command_literal(&outbox->commands, "$1\r\n0\r\n");
    outbox_end(outbox);
    outbox_last(outbox)->spare = true;
    talk_then(talk, NULL, NULL);
}

/* They were not merged. */
static void remove_bits(struct talk *talk, struct outbox *outbox)
{
    remove_temporary(talk, outbox, BITS);
}

/* Rule "doubt". */
static void judge_old(struct talk *talk, struct outbox *outbox)
{
    struct transfer *transfer = transfer_of(talk);

    if (transfer->lost) {
        begin_again(talk, outbox);
        return;
    }
    if (transfer->sent_again)
        memset(transfer->out, 0, (size_t)transfer->piece->len);
    remove_temporary(talk, outbox, OLD);
}

static bool expect(struct talk *talk, const struct reply *reply, int type)
{
    const uint32_t i = transfer_of(talk)->piece->key;
    const struct link *from = talk->task.from;

    return from != NULL ? task_expect_of_two(&talk->task, reply, type, i, link_name(from, LINK_NAME))
                        : task_expect(&talk->task, reply, type, i);
}

static void take_answer(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct transfer *transfer = transfer_of(talk);
    const uint32_t i = transfer->piece->key;
    const bool is_trailer = strchr("des", reply->text[0]) != NULL && reply->text[0] != '\0';

    if (tag == TAG_BITS) {
        transfer->stored = task_expect(&talk->task, reply, REDIS_REPLY_STATUS, i);
        return;
    }
    transfer->stored = false;
    transfer->repeated = transfer->repeated || reply->repeated;
    if (expect(talk, reply, REDIS_REPLY_STRING)) {
        transfer->answer = reply->text[0];
        if (transfer->answer == 'f')
            talk->task.link = talk->task.from;
        if (transfer->answer == 'o' || transfer->answer == 'f' || (is_trailer && !guard_matches(talk, i, reply, 1)))
            guard_note_other(talk, i);
    }
    if (talk_is_cut(talk) && transfer->bits != NULL)
        talk->cleanup = remove_bits;
}

/* What a script expects of the other filter's key, and how many bytes it takes of it. */
static void write_from(const struct transfer *transfer, struct commands *out, uint64_t bytes)
{
    link_expect(out, transfer->talk.task.from, transfer->piece->key, RECORD_IDENTITY);
    command_number(out, bytes);
}

static void ask_script(struct talk *talk, struct outbox *outbox)
{
    struct transfer *transfer = transfer_of(talk);
    struct link *into = talk->task.link, *from = talk->task.from;
    const uint32_t i = transfer->piece->key;
    struct commands *out = &outbox->commands;
    char name[KEYS_SIZE], epoch[NUMBER_DIGITS + 1] = "";
    const struct argument key = link_begin(into, outbox, TAG_SCRIPT, i, name);

    script_start(out, SCRIPT_MERGE, from != NULL || transfer->out != NULL ? 3 : 2, from != NULL ? 7 : 4);
    command_argument(out, key);
    command_argument(out, temporary(transfer, name, BITS));
    if (from != NULL)
        command_argument(out, (struct argument){name, keys_name(name, from, i)});
    else if (transfer->out != NULL)
        command_argument(out, temporary(transfer, name, OLD));
    link_expect(out, into, i, RECORD_IDENTITY);
    if (from != NULL)
        command_text(out, "");
    else
        command_number(out, transfer->piece->len);
    if (transfer->out != NULL)
        snprintf(epoch, sizeof epoch, "%010" PRIu64, into->keys[i].epoch);
    command_text(out, epoch);
    if (from != NULL)
        write_from(transfer, out, transfer->piece->len);
    outbox_end(outbox);
    outbox_last(outbox)->replaceable = transfer->replaceable;
    talk_then(talk, take_answer, judge_answer);
}

/* If the answer to the first command is lost, it is not sent again, since the script tells what was done. */
static void send_bits(struct talk *talk, struct outbox *outbox)
{
    struct transfer *transfer = transfer_of(talk);
    char name[KEYS_SIZE];
    const struct argument tmp = temporary(transfer, name, BITS);

    outbox_begin(outbox, TAG_BITS, tmp);
    command_start_on(&outbox->commands, 4, "PSETEX", tmp);
    command_text(&outbox->commands, TEMPORARY_MS);
    outbox_end_with(outbox, transfer->bits, (size_t)transfer->piece->len);
    outbox_last(outbox)->spare = true;
    outbox_last(outbox)->replaceable = transfer->replaceable;
    ask_script(talk, outbox);
}

static bool may_try(struct transfer *transfer)
{
    if (transfer->tries++ < TRIES)
        return true;
    task_fail(&transfer->talk.task, HIBLOOM_EUNAVAILABLE,
              "the temporary keys of '%s' are lost again and again: evicted, or the server takes too long",
              link_name(transfer->talk.task.link, LINK_NAME));
    return false;
}

static void begin_again(struct talk *talk, struct outbox *outbox)
{
    struct transfer *transfer = transfer_of(talk);

    transfer->sent_again = true;
    talk->task.link->server->stats.in_doubt++;
    if (may_try(transfer))
        send_bits(talk, outbox);
}

static void judge_answer(struct talk *talk, struct outbox *outbox)
{
    struct transfer *transfer = transfer_of(talk);

    if (transfer->answer == 'n' && !transfer->stored) {
        begin_again(talk, outbox);
    } else if (transfer->answer == 'n' || transfer->answer == 'e') { /* the bits came later; or the epoch is noted */
        if (may_try(transfer))
            ask_script(talk, outbox);
    } else if (transfer->answer != 's' && transfer->answer != 'd') {
        task_unexpected(&talk->task);
    } else if (transfer->out != NULL) {
        transfer->asked = 0;
        transfer->lost = false;
        talk_stream(talk, read_pipeline, take_old, judge_old);
    }
}

bool transfer_gave_up(const struct transfer *transfer)
{
    return transfer->tries > TRIES;
}

bool transfer_may_be_done(const struct transfer *transfer)
{
    return transfer->answer == 's' || transfer->answer == 'd' || transfer->repeated || transfer->sent_again;
}

/* ---- By parts ------------------------------------------------------------------------ */

static void take_merged(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    if (!expect(talk, reply, REDIS_REPLY_INTEGER) || reply->integers[0] == 1)
        return;
    if (reply->integers[0] == -1 && talk->task.from != NULL)
        talk->task.link = talk->task.from;
    else if (reply->integers[0] != 0)
        task_unexpected(&talk->task);
    guard_note_other(talk, transfer_of(talk)->piece->key);
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

static void ask_part(struct transfer *transfer, struct commands *out, struct argument key, size_t len)
{
    struct link *into = transfer->talk.task.link, *from = transfer->talk.task.from;
    const bool sums = into->spec->counters != 0;
    const uint32_t i = transfer->piece->key;
    const char *bits = from == NULL ? (const char *)transfer->bits + transfer->asked : "";
    char name[KEYS_SIZE];

    script_start(out, sums ? SCRIPT_SUM : SCRIPT_MERGE_PART,
                 sums           ? 1
                 : from != NULL ? 4
                                : 3,
                 sums           ? 5
                 : from != NULL ? 7
                                : 4);
    command_argument(out, key);
    if (!sums) {
        command_argument(out, temporary(transfer, name, BITS));
        command_argument(out, temporary(transfer, name, OLD));
    }
    if (from != NULL)
        command_argument(out, (struct argument){name, keys_name(name, from, i)});
    link_expect(out, into, i, RECORD_IDENTITY);
    if (sums)
        command_counter_type(out, into->spec->counters);
    command_number(out, transfer->piece->from + transfer->asked);
    command_argument(
        out, (struct argument){bits, from != NULL || bits_are_zero((const unsigned char *)bits, len) ? 0 : len});
    if (from != NULL)
        write_from(transfer, out, len);
}

static bool merge_pipeline(struct talk *talk, struct outbox *outbox, unsigned number)
{
    struct transfer *transfer = transfer_of(talk);
    const size_t len = next_part(transfer);

    if (len == 0)
        return false;
    const struct argument key = link_begin(talk->task.link, outbox, number, transfer->piece->key, KEY_NAME);
    ask_part(transfer, &outbox->commands, key, len);
    outbox_end(outbox);
    outbox_last(outbox)->replaceable = transfer->replaceable;
    transfer->asked += len;
    transfer->sent = true;
    return true;
}

static void merge_parts(struct talk *, struct outbox *);

/* A bare bitmap's guard, before and behind: that it was lost, and what was made. */
static void ask_bare(struct talk *talk, struct outbox *outbox)
{
    const struct transfer *transfer = transfer_of(talk);

    guard_ask_alone(talk->task.link, outbox, transfer->piece->key, transfer->piece->key);
    guard_ask_config(talk->task.link, outbox, talk->task.link->count);
    talk_then(talk, guard_take_before, transfer->asked == 0 ? merge_parts : NULL);
}

static void merge_parts(struct talk *talk, struct outbox *outbox)
{
    talk_stream(talk, merge_pipeline, take_merged, talk->task.link->bare ? ask_bare : NULL);
}

/* ---- Their begin ----------------------------------------------------------------------- */

/* A bare bitmap has no guard that a script could compare, and counters are no bits: they go by parts. */
void transfer_begin_merge(struct transfer *transfer, struct link *into, const struct piece *piece,
                          const unsigned char *bits, unsigned char *before)
{
    const bool one_step = !into->bare && into->spec->counters == 0 && piece->from == 0 &&
                          piece->len == spec_bitmap_bytes(into->spec) &&
                          (before != NULL || piece->len < TRANSFER_PARTS_BYTES) &&
                          (bits == NULL || !bits_are_zero(bits, (size_t)piece->len));

    begin(transfer, into, piece,
          one_step     ? bits != NULL ? send_bits : ask_script
          : into->bare ? ask_bare
                       : merge_parts);
    transfer->talk.task.adds = true;
    transfer->bits = bits;
    transfer->out = before;
    if (one_step)
        (void)life_draw_id(&transfer->talk.task, &transfer->number);
}

void transfer_begin_merge_within(struct transfer *transfer, struct link *into, struct link *from,
                                 const struct piece *piece)
{
    transfer_begin_merge(transfer, into, piece, NULL, NULL);
    transfer->talk.task.from = from;
}
