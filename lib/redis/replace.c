/* replace.c: a filter takes the place of another name. See replace.h.
 *
 * One script renames all its keys, so nobody ever sees some of the one filter and some
 * of the other. Each key brings its id along, so the guards of those who have opened the
 * filter that was there fail. It takes a generation of that moment: whoever sleeps over
 * another filter of the name, made later than this one and lost by now, leaves keys of a
 * newer generation alone when it wakes (tests/model/life.py, replacer). */
#include "redis/replace.h"
#include "base/number.h"
#include "redis/scripts.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <string.h>

enum { NOT_WHOLE = -1, CHANGED = -2, TAKEN = -3 };

static struct replacement *replacement_of(struct talk *talk)
{
    return (struct replacement *)talk;
}

static struct argument key_at(char key[KEYS_SIZE], const char *name, bool several, uint32_t i)
{
    return (struct argument){key, keys_at(key, name, several, i)};
}

static uint32_t count_of(const hibloom *filter)
{
    return filter != NULL ? redis_filter_of(filter)->count : 0;
}

/* Has the other one, of so many keys, this key, too? */
static bool is_among(uint32_t count, bool several, uint32_t i)
{
    return (count > 1) == several && i < count;
}

/* Keys of the old filter that no key of the new one takes the place of. */
static uint32_t count_gone(const struct replacement *r)
{
    const uint32_t count = count_of(r->talk.task.filter), old = count_of(r->old);

    if (old == 0)
        return 0;
    return is_among(count, old > 1, 0) ? (old > count ? old - count : 0) : old;
}

/* In a cluster NAME:0 may lie in another slot than NAME. Then the script cannot look there: a filter
 * of several keys that is made there just now is found by the next who opens the name. */
static bool has_second_place(const struct replacement *r)
{
    char key[KEYS_SIZE];

    return !redis_filter_of(r->talk.task.filter)->server->clustered ||
           keys_slot(key, keys_at(key, r->name, false, 0)) == keys_slot(key, keys_at(key, r->name, true, 0));
}

/* ---- The script ------------------------------------------------------------------ */

static void write_keys(const struct replacement *r, struct commands *out)
{
    const hibloom *filter = r->talk.task.filter;
    const uint32_t count = count_of(filter), old = count_of(r->old);
    char key[KEYS_SIZE];

    for (uint32_t i = 0; i < count; i++)
        command_argument(out, key_at(key, filter->name, count > 1, i));
    for (uint32_t i = 0; i < count; i++)
        command_argument(out, key_at(key, r->name, count > 1, i));
    command_argument(out, key_at(key, r->name, false, 0));
    command_argument(out, key_at(key, r->name, has_second_place(r), 0));
    for (uint32_t i = 0; i < old; i++)
        if (!is_among(count, old > 1, i))
            command_argument(out, key_at(key, r->name, old > 1, i));
}

static void take_replaced(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct replacement *r = replacement_of(talk);

    if (!task_expect(&talk->task, reply, REDIS_REPLY_INTEGER, 0))
        return;
    r->answer = reply->integers[0];
    if (r->answer == NOT_WHOLE)
        guard_note_other(talk, 0);
    if (r->answer < 0)
        return;
    redis_filter_of(talk->task.filter)->generation = (uint64_t)r->answer;
    strcpy(talk->task.filter->name, r->name);
}

static void judge_replaced(struct talk *talk, struct outbox *outbox)
{
    const struct replacement *r = replacement_of(talk);
    char key[KEYS_SIZE];

    if (r->answer == CHANGED) {
        task_fail(&talk->task, HIBLOOM_EBUSY, "others make, remove or replace '%s' just now", r->name);
    } else if (r->answer <= TAKEN) {
        keys_at(key, r->name, count_of(talk->task.filter) > 1, (uint32_t)(TAKEN - r->answer));
        task_fail(&talk->task, HIBLOOM_EMISMATCH, "'%s' is no key of a filter '%s': it is not replaced", key, r->name);
    }
}

static void ask(struct talk *talk, struct outbox *outbox)
{
    const struct replacement *r = replacement_of(talk);
    hibloom *filter = talk->task.filter;
    struct commands *out = &outbox->commands;
    const uint32_t count = count_of(filter);
    char key[KEYS_SIZE];

    (void)redis_begin(filter, outbox, 0, 0, key);
    script_start(out, SCRIPT_REPLACE, 2 * (size_t)count + 2 + count_gone(r), 8);
    write_keys(r, out);
    redis_expect(out, filter, 0, RECORD_IDENTITY);
    command_number(out, count);
    command_number(out, redis_trailer_at(filter, count - 1));
    redis_command_ids(out, filter, count);
    if (r->old != NULL)
        redis_expect(out, r->old, 0, RECORD_IDENTITY);
    else
        command_literal(out, "$1\r\n0\r\n$0\r\n\r\n");
    command_number(out, r->old == NULL ? 0 : count_of(r->old) == 1 ? 1 : 2);
    outbox_end(outbox);
    talk->take = take_replaced;
    talk->step = judge_replaced;
}

/* ---- May it be? ---------------------------------------------------------------------- */

static bool is_in_slot(uint16_t slot, const char *name, uint32_t count)
{
    char key[KEYS_SIZE];

    for (uint32_t i = 0; i < count; i++)
        if (keys_slot(key, keys_at(key, name, count > 1, i)) != slot)
            return false;
    return true;
}

/* A script works on one server, and in a cluster on one slot. */
static bool has_one_slot(const struct replacement *r)
{
    const hibloom *filter = r->talk.task.filter;
    const uint32_t count = count_of(filter);
    char key[KEYS_SIZE];
    const uint16_t slot = keys_slot(key, keys_at(key, filter->name, count > 1, 0));

    return !redis_filter_of(filter)->server->clustered ||
           (is_in_slot(slot, filter->name, count) && is_in_slot(slot, r->name, count) &&
            is_in_slot(slot, r->name, count_of(r->old)));
}

static void check(struct talk *talk, struct outbox *outbox)
{
    const struct replacement *r = replacement_of(talk);
    const hibloom *filter = talk->task.filter;

    if (!has_one_slot(r))
        task_fail(&talk->task, HIBLOOM_ENOTSUP,
                  "'%s' and '%s' do not lie in one slot of the cluster with all their keys, so that no single step "
                  "can replace them: give both names the same {tag}",
                  filter->name, r->name);
    else
        ask(talk, outbox);
}

void replace_begin(struct replacement *r, hibloom *filter, const char *name, const hibloom *old)
{
    *r = (struct replacement){.name = name, .old = old};
    talk_begin(&r->talk, filter, check);
    r->talk.task.adds = true; /* min_replicas: what replaces must not be forgotten alone */
}
