/* attach.c: a bare bitmap is joined. See life.h.
 *
 * Nothing says that it is the one that is meant: there must be no filter of ours under
 * the name, it must not be longer than its spec allows, and where another library keeps a
 * config beside it, that must agree, or says how large it is. */
#include "redis/life.h"
#include "base/number.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <string.h>

/* A longer string was filled by another spec, by which other bits are asked for. One bit may lie
 * behind the bitmap: bloomfilter-rb makes room by bit number m + 1. */
static void attach_keys(struct talk *talk, struct outbox *outbox)
{
    struct link *link = talk->task.link;
    const uint64_t most = (spec_bitmap_bits(link->spec) + 1) / 8 + 1;

    if (life_ask_next_keys(life_of(talk), outbox)) {
        guard_ask_config(link, outbox, link->count);
        talk_then(talk, guard_take_before, attach_keys);
        return;
    }
    for (uint32_t i = 0; i < link->count; i++)
        if (link->keys[i].length > most)
            task_fail(&talk->task, HIBLOOM_EMISMATCH,
                      "'%s' has %" PRIu64 " bytes, and a bitmap of this spec at most %" PRIu64
                      ": give the numbers that it was filled with",
                      link_key(link, i, KEY_NAME), link->keys[i].length, most);
}

/* A config says how large the bitmap is. */
static void take_config(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct spec *spec = talk->task.link->spec;
    uint64_t number = 0;

    if (reply->type == REDIS_REPLY_NIL)
        guard_fail_config(&talk->task, false, "");
    else if (reply->type == REDIS_REPLY_ERROR && refusal_of(reply->text) == REFUSAL_WRONGTYPE)
        guard_fail_config(&talk->task, true, "is no hash");
    else if (!task_expect(&talk->task, reply, REDIS_REPLY_STRING, 0))
        return;
    else if (number_parse(reply->text, strlen(reply->text), index == 0 ? UINT32_MAX - 1u : HIBLOOM_HASHES_MAX,
                          &number) != HIBLOOM_OK ||
             number == 0)
        guard_fail_config(&talk->task, true,
                          index == 0 ? "says no size of 1 to 4294967294" : "says no hashIterations of 1 to 128");
    else if (index == 0)
        spec->bits = number;
    else
        spec->hashes = (uint32_t)number;
}

static void attach_sized(struct talk *talk, struct outbox *outbox)
{
    link_open(&talk->task, talk->task.link->spec);
    if (!task_has_failed(&talk->task))
        attach_keys(talk, outbox);
}

/* A filter of the name may lie where this bitmap has no key. */
void life_attach(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    if (life_has_filter(life, PLACE_ALONE) || life_has_filter(life, PLACE_ROOT)) {
        task_fail(&talk->task, HIBLOOM_EMISMATCH, "'%s' is no bare bitmap but a filter with a spec: open it",
                  link_name(talk->task.link, LINK_NAME));
    } else if (spec_is_unsized(talk->task.link->spec)) {
        guard_ask_config(talk->task.link, outbox, 0);
        talk_then(talk, take_config, attach_sized);
    } else {
        attach_sized(talk, outbox);
    }
}
