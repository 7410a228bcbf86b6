/* replace.c: a filter takes the place of another name. See replace.h.
 *
 * One script renames all its keys, those of all its links, so nobody ever sees some of the
 * one filter and some of the other. Each key brings its id along, so the guards of those who
 * have opened the filter that was there fail. It takes a generation of that moment: whoever
 * sleeps over another filter of the name, made later than this one and lost by now, leaves
 * keys of a newer generation alone when it wakes (tests/model/life.py, replacer). Where one of
 * the two grows meanwhile the newest link that is known here is not the newest any more, which
 * its state says, and nothing is done. */
#include "redis/replace.h"
#include "redis/life.h"
#include "redis/scripts.h"
#include "spec/spec.h"

#include <string.h>

enum { CHANGED = -1, TAKEN = -2, NOT_WHOLE = -1000000000 };

static uint32_t links_of(const struct redis_filter *filter)
{
    return filter != NULL ? redis_links(filter) : 0;
}

/* Keys of a link; 0: there is no such link. */
static uint32_t count_of(struct redis_filter *filter, uint32_t link)
{
    return link < links_of(filter) ? redis_link(filter, link)->count : 0;
}

static uint32_t all_keys(struct redis_filter *filter)
{
    uint32_t keys = 0;

    for (uint32_t link = 0; link < links_of(filter); link++)
        keys += count_of(filter, link);
    return keys;
}

static uint32_t most_links(const struct replacement *r)
{
    const uint32_t links = links_of(r->filter), old = links_of(r->old);

    return links > old ? links : old;
}

static struct argument key_at(char key[KEYS_SIZE], const char *name, uint32_t link, bool several, uint32_t i)
{
    char of[LINK_NAME_SIZE];

    keys_link(of, name, link);
    return (struct argument){key, keys_at(key, link == 0 ? name : of, several, i)};
}

/* Has the link of so many keys this key, too? */
static bool is_among(uint32_t count, bool several, uint32_t i)
{
    return (count > 1) == several && i < count;
}

/* Keys of a link of the old filter that no key of the new one takes the place of. */
static uint32_t count_gone(const struct replacement *r, uint32_t link)
{
    const uint32_t count = count_of(r->filter, link), old = count_of(r->old, link);

    return is_among(count, old > 1, 0) ? (old > count ? old - count : 0) : old;
}

/* ---- The script ------------------------------------------------------------------ */

static void write_links_keys(const struct replacement *r, const char *name, struct commands *out)
{
    char key[KEYS_SIZE];

    for (uint32_t link = 0; link < links_of(r->filter); link++)
        for (uint32_t count = count_of(r->filter, link), i = 0; i < count; i++)
            command_argument(out, key_at(key, name, link, count > 1, i));
}

/* Of a link that only the old filter has its own place is enough. In a cluster NAME:0 may lie in another slot than NAME.
 * Then the script cannot look there: a filter of several keys that is made there just now is found by the next who opens
 * the name. */
static void write_places(const struct replacement *r, struct commands *out)
{
    char key[KEYS_SIZE];
    const bool has_second_place = !r->filter->first.server->clustered ||
                                  keys_slot(key, keys_at(key, r->name, false, 0)) ==
                                      keys_slot(key, keys_at(key, r->name, true, 0));

    for (uint32_t link = 0; link < most_links(r); link++) {
        const bool only_old = link >= links_of(r->filter), several = only_old && count_of(r->old, link) > 1;
        command_argument(out, key_at(key, r->name, link, several, 0));
        command_argument(out, key_at(key, r->name, link, only_old ? several : link > 0 || has_second_place, 0));
    }
}

static void write_gone(const struct replacement *r, struct commands *out)
{
    char key[KEYS_SIZE];

    for (uint32_t link = 0; link < links_of(r->old); link++)
        for (uint32_t old = count_of(r->old, link), i = 0; i < old; i++)
            if (!is_among(count_of(r->filter, link), old > 1, i))
                command_argument(out, key_at(key, r->name, link, old > 1, i));
}

static void write_links(const struct replacement *r, struct commands *out)
{
    for (uint32_t i = 0; i < links_of(r->filter); i++) {
        const struct link *link = redis_link(r->filter, i);
        const uint32_t count = count_of(r->filter, i);
        command_number(out, count);
        link_expect(out, link, 0, RECORD_GENERATION);
        command_number(out, link_trailer_at(link, count - 1));
        command_number(out, spec_bitmap_bytes(link->spec));
        link_command_ids(out, link, count);
    }
    for (uint32_t i = 0; i < links_of(r->old); i++) {
        const uint32_t count = count_of(r->old, i);
        command_number(out, count > 1 && i < links_of(r->filter) ? 2 : 1);
        link_expect(out, redis_link(r->old, i), 0, RECORD_IDENTITY);
        command_number(out, count_gone(r, i));
    }
}

static void take_replaced(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct replacement *r = (struct replacement *)talk;
    uint32_t i;

    if (!task_expect_of_two(&talk->task, reply, REDIS_REPLY_INTEGER, 0, r->name))
        return;
    r->answer = reply->integers[0];
    const int64_t of_all = r->answer >= 0 ? -1 : (r->answer <= NOT_WHOLE ? NOT_WHOLE : TAKEN) - r->answer;
    if (of_all >= all_keys(r->filter)) {
        task_unexpected(&talk->task);
    } else if (r->answer >= 0 &&
               r->filter->handle->uses > 1) { /* other calls go by the old name, and undo by it, too */
        task_fail(&talk->task, HIBLOOM_EBUSY, "'%s' is replaced, but other calls on the handle are pending", r->name);
    } else if (r->answer >= 0) { /* the handle, as it is from now on */
        for (i = 0; i < redis_links(r->filter); i++)
            redis_link(r->filter, i)->generation = (uint64_t)r->answer;
        if (strcmp(r->filter->handle->name, r->name) != 0) /* else it was done before, and is made again */
            handle_swap_name(r->filter->handle, r->spare);
    } else if (r->answer <= NOT_WHOLE) {
        talk->task.link = redis_key_of(r->filter, (uint32_t)of_all, &i);
        guard_note_other(talk, i);
    }
}

static void ask(struct talk *, struct outbox *);

static void judge_replaced(struct talk *talk, struct outbox *outbox)
{
    struct replacement *r = (struct replacement *)talk;
    char key[KEYS_SIZE];
    uint32_t i;

    if (r->answer == CHANGED) {
        task_fail(&talk->task, HIBLOOM_EBUSY, "others make, remove, replace or grow '%s' just now", r->name);
    } else if (r->answer <= TAKEN) {
        const uint32_t link = redis_key_of(r->filter, (uint32_t)(TAKEN - r->answer), &i)->number;
        key_at(key, r->name, link, count_of(r->filter, link) > 1, i);
        r->taken = i == 0 ? link : 0;
        if (r->taken == 0 && life_has_patience(&r->patience_ns)) { /* late bits are soon taken back */
            talk->task.pause_ms = LIFE_PAUSE_MS;
            talk_then(talk, NULL, ask);
            return;
        }
        task_fail(&talk->task, HIBLOOM_EMISMATCH, "'%s' is no key of a filter '%s': it is not replaced", key, r->name);
    }
}

static void ask(struct talk *talk, struct outbox *outbox)
{
    const struct replacement *r = (const struct replacement *)talk;
    struct commands *out = &outbox->commands;
    const size_t links = links_of(r->filter), old = links_of(r->old);
    size_t keys = 2 * (size_t)all_keys(r->filter) + 2 * (size_t)most_links(r);

    for (uint32_t i = 0; i < old; i++)
        keys += count_gone(r, i);
    (void)link_begin(&r->filter->first, outbox, 0, 0, KEY_NAME);
    script_start(out, SCRIPT_REPLACE, keys, 4 + 6 * links + 4 * old);
    write_links_keys(r, r->filter->handle->name, out);
    write_links_keys(r, r->name, out);
    write_places(r, out);
    write_gone(r, out);
    link_expect(out, &r->filter->first, 0, RECORD_IDENTITY);
    command_number(out, links);
    command_number(out, old);
    write_links(r, out);
    outbox_end(outbox);
    talk_then(talk, take_replaced, judge_replaced);
}

/* ---- May it be? ---------------------------------------------------------------------- */

/* A script works on one server, and in a cluster on one slot. There several keys of a name are in one slot if it has a
 * {tag}. */
static void check(struct talk *talk, struct outbox *outbox)
{
    const struct replacement *r = (const struct replacement *)talk;
    const char *from = r->filter->handle->name, *to = r->name;
    const bool together = (all_keys(r->filter) == 1 && all_keys(r->old) <= 1) ||
                          (keys_has_tag(from) && keys_has_tag(to));

    if (r->filter->first.server->clustered && !(together && keys_slot(from, strlen(from)) == keys_slot(to, strlen(to))))
        task_fail(&talk->task, HIBLOOM_ENOTSUP,
                  "'%s' and '%s' do not lie in one slot of the cluster with all their keys, so that no single step "
                  "can replace them: give both names the same {tag}",
                  from, to);
    else
        ask(talk, outbox);
}

void replace_begin(struct replacement *r, struct redis_filter *filter, const char *name, char **spare,
                   struct redis_filter *old)
{
    *r = (struct replacement){.filter = filter, .name = name, .spare = spare, .old = old};
    talk_begin(&r->talk, &filter->first, check);
    r->talk.task.adds = true; /* min_replicas: what replaces must not be forgotten alone */
}
