/* merge.c: many bits of a key in one step of the server. See merge.h.
 *
 * If an answer is lost, the script is sent again alone. It finds the bits before (rule "done"), the bits to set (not
 * done yet), or neither (rule "none"). In the last case, and if the bits before are gone while they are read, all
 * begins again. From then on the bits before may hold those of the first time, so they prove nothing. */
#include "redis/merge.h"
#include "base/number.h"
#include "bits/bits.h"
#include "redis/life.h"
#include "redis/scripts.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define READ_BYTES (256u << 10)
#define TRIES 16u

enum { TAG_BITS, TAG_SCRIPT };

/* Its temporary keys: the bits to set, and those that were there before. They lie beside the key, in its slot. */
enum { BITS = 'a', OLD = 'b' };

static struct argument temporary(const struct merge *merge, char key[KEYS_SIZE], char what)
{
    return (struct argument){key, keys_temporary(key, merge->talk.task.link, merge->key, what, merge->number)};
}

/* ---- The bits before ---------------------------------------------------------------------------- */

static void begin_again(struct talk *, struct outbox *);

static bool read_old(struct talk *talk, struct outbox *outbox, unsigned number)
{
    struct merge *merge = (struct merge *)talk;
    const size_t left = merge->len - (size_t)merge->asked, len = left < READ_BYTES ? left : READ_BYTES;
    char name[KEYS_SIZE];
    const struct argument old = temporary(merge, name, OLD);

    if (len == 0 || merge->cut)
        return false;
    outbox_begin(outbox, number, old);
    command_getrange(&outbox->commands, old, merge->asked, len);
    merge->part_at[number] = merge->asked;
    merge->asked += len;
    outbox_end_into(outbox, 0, merge->old + merge->part_at[number], len);
    return true;
}

/* Rule "whole": a part that is not there is seen. */
static void take_old(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct merge *merge = (struct merge *)talk;
    const size_t left = merge->len - (size_t)merge->part_at[tag & 1], len = left < READ_BYTES ? left : READ_BYTES;

    if (task_expect(&talk->task, reply, REDIS_REPLY_STRING, merge->key))
        merge->cut = merge->cut || reply->text_len != len;
}

/* Rule "doubt". It would expire by itself, so nobody minds if UNLINK fails. */
static void judge_old(struct talk *talk, struct outbox *outbox)
{
    struct merge *merge = (struct merge *)talk;
    char name[KEYS_SIZE];
    const struct argument old = temporary(merge, name, OLD);

    if (merge->cut) {
        begin_again(talk, outbox);
        return;
    }
    if (merge->sent_again)
        memset(merge->old, 0, merge->len);
    outbox_begin(outbox, 0, old);
    command_start(&outbox->commands, 2, "UNLINK");
    command_argument(&outbox->commands, old);
    outbox_end(outbox);
    outbox_last(outbox)->spare = true;
    talk_then(talk, NULL, NULL);
}

/* ---- The script ---------------------------------------------------------------------------------- */

static void take_answer(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct merge *merge = (struct merge *)talk;
    const bool is_trailer = strchr("des", reply->text[0]) != NULL && reply->text[0] != '\0';

    if (tag == TAG_BITS) {
        merge->stored = task_expect(&talk->task, reply, REDIS_REPLY_STATUS, merge->key);
        return;
    }
    merge->stored = false;
    merge->repeated = merge->repeated || reply->repeated;
    if (!task_expect(&talk->task, reply, REDIS_REPLY_STRING, merge->key))
        return;
    merge->answer = reply->text[0];
    if (merge->answer == 'f')
        talk->task.link = merge->from;
    if (merge->answer == 'o' || merge->answer == 'f' ||
        (is_trailer && !guard_is_trailer(talk, merge->key, reply->text + 1, reply->text_len - 1, false)))
        guard_note_other(talk, merge->key);
}

static void judge_answer(struct talk *, struct outbox *);

static void ask_script(struct talk *talk, struct outbox *outbox)
{
    struct merge *merge = (struct merge *)talk;
    struct link *into = talk->task.link;
    struct commands *out = &outbox->commands;
    char name[KEYS_SIZE], epoch[NUMBER_DIGITS + 1] = "";
    const struct argument key = link_begin(into, outbox, TAG_SCRIPT, merge->key, name);
    const bool third = merge->from != NULL || merge->old != NULL;

    script_start(out, SCRIPT_MERGE, third ? 3 : 2, merge->from != NULL ? 7 : 4);
    command_argument(out, key);
    command_argument(out, temporary(merge, name, BITS));
    if (merge->from != NULL)
        command_argument(out, (struct argument){name, keys_name(name, merge->from, merge->key)});
    else if (merge->old != NULL)
        command_argument(out, temporary(merge, name, OLD));
    link_expect(out, into, merge->key, RECORD_IDENTITY);
    if (merge->from != NULL)
        command_text(out, "");
    else
        command_number(out, merge->len);
    if (merge->old != NULL)
        snprintf(epoch, sizeof epoch, "%010" PRIu64, into->keys[merge->key].epoch);
    command_text(out, epoch);
    if (merge->from != NULL) {
        link_expect(out, merge->from, merge->key, RECORD_IDENTITY);
        command_number(out, merge->len);
    }
    outbox_end(outbox);
    outbox_last(outbox)->replaceable = merge->replaceable;
    talk_then(talk, take_answer, judge_answer);
}

/* If the answer to the first command is lost, it is not sent again, since the script tells what was done. */
static void send_bits(struct talk *talk, struct outbox *outbox)
{
    struct merge *merge = (struct merge *)talk;
    char name[KEYS_SIZE];
    const struct argument tmp = temporary(merge, name, BITS);

    outbox_begin(outbox, TAG_BITS, tmp);
    command_start(&outbox->commands, 4, "PSETEX");
    command_argument(&outbox->commands, tmp);
    command_text(&outbox->commands, TEMPORARY_MS);
    outbox_end_with(outbox, merge->bits, merge->len);
    outbox_last(outbox)->spare = true;
    ask_script(talk, outbox);
}

static bool may_try(struct merge *merge)
{
    if (merge->tries++ < TRIES)
        return true;
    task_fail(&merge->talk.task, HIBLOOM_EUNAVAILABLE,
              "the temporary keys of '%s' are lost again and again: evicted, or the server takes too long",
              link_name(merge->talk.task.link, LINK_NAME));
    return false;
}

static void begin_again(struct talk *talk, struct outbox *outbox)
{
    struct merge *merge = (struct merge *)talk;

    merge->sent_again = true;
    talk->task.link->server->stats.in_doubt++;
    if (may_try(merge))
        send_bits(talk, outbox);
}

static void judge_answer(struct talk *talk, struct outbox *outbox)
{
    struct merge *merge = (struct merge *)talk;

    if (merge->answer == 'n' && !merge->stored) {
        begin_again(talk, outbox);
    } else if (merge->answer == 'n' || merge->answer == 'e') { /* the bits came later; or the epoch is noted */
        if (may_try(merge))
            ask_script(talk, outbox);
    } else if (merge->answer != 's' && merge->answer != 'd') {
        task_unexpected(&talk->task);
    } else if (merge->old != NULL) {
        merge->asked = 0;
        merge->cut = false;
        talk_stream(talk, read_old, take_old, judge_old);
    }
}

bool merge_may_be_done(const struct merge *merge)
{
    return merge->answer == 's' || merge->answer == 'd' || merge->repeated || merge->sent_again;
}

/* ---- Its begin --------------------------------------------------------------------------------------- */

/* A bare bitmap has no guard that a script could compare, and counters are no bits. */
bool merge_can(const struct link *link, const struct piece *piece, const unsigned char *bits, bool wants_old)
{
    return !link->bare && link->spec->counters == 0 && piece->from == 0 &&
           piece->len == spec_bitmap_bytes(link->spec) && (wants_old || piece->len < MERGE_PARTS_BYTES) &&
           (bits == NULL || !bits_are_zero(bits, (size_t)piece->len));
}

static void begin(struct merge *merge, struct link *into, uint32_t key, talk_step *step)
{
    memset(merge, 0, sizeof *merge);
    talk_begin(&merge->talk, into, step);
    merge->talk.task.adds = true;
    merge->key = key;
    merge->len = (size_t)spec_bitmap_bytes(into->spec);
    (void)life_draw_id(&merge->talk.task, &merge->number);
}

void merge_begin(struct merge *merge, struct link *into, uint32_t key, const unsigned char *bits, unsigned char *old)
{
    begin(merge, into, key, send_bits);
    merge->bits = bits;
    merge->old = old;
}

void merge_begin_within(struct merge *merge, struct link *into, struct link *from, uint32_t key)
{
    begin(merge, into, key, ask_script);
    merge->from = merge->talk.task.from = from;
}
