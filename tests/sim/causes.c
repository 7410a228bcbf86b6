/* causes.c: what excuses a status, and a delay. See names.h. */
#include "sim/names.h"

#define ONLY_ASKS (1u << VERB_LOOK | 1u << VERB_SAVE | 1u << VERB_LIST | 1u << VERB_INFO | 1u << VERB_COMPARE)

/* Alone, without the root: a removal of several keys says so in their root first. Of one key, late bits may hit the tail.
 * By a clock that steps a maker of keys may take others for older ones (docs/format.md, 9). */
static bool some_key_may_go(int name)
{
    return caused(CAUSE_KEYS, 1) || caused(CAUSE_LOSS, 1) || caused(CAUSE_REFUSAL, 1) || caused(CAUSE_CLOCK, 1) ||
           was_expired(name) || commands_may_be_late() || !has_several_keys(name) || kind_of(name)->bare ||
           (names[name].did & 1u << VERB_REPLACE) != 0; /* it takes the keys of before one by one */
}

/* Those for a larger filter hide one, and their undo stands still meanwhile. */
static bool larger_bits_may_stand(void)
{
    return world.plan->sizes != 0 && world_had(FAULT_MEET);
}

/* A removal that finds nothing any more: it has carried itself out, and got no answer. That is OK (hibloom_drop). */
static bool has_removed_it(const struct call *c)
{
    const bool expired = c->expiry_ms != 0 && c->expiry_ms * 1000 <= clock_of(c->name);

    return ((c->verb == VERB_DROP && c->handle != 0) || c->verb == VERB_DELETE) && c->removes_alone &&
           c->raw_at_begin == 0 && c->handle_met && !expired && !caused(CAUSE_KEYS, c->begun_us) &&
           !caused(CAUSE_LOSS, c->begun_us) && !was_expired(c->name) && !world.stale[c->client] &&
           !world.misled[c->client] && !commands_may_be_late() && !larger_bits_may_stand();
}

/* All clients want the same filter, and neither a stranger nor late bits can have left something else under its name. */
static bool finds_no_other(const struct call *c)
{
    return !kind_of(c->name)->bare && world.plan->sizes == 0 && (world.had & FAULT(STRANGER, PAUSE)) == 0 &&
           !names[c->name].unclean && !world.undo_lost && !caused(CAUSE_DENIAL, 1) && !caused(CAUSE_KILL, 1) &&
           !caused(CAUSE_CONNECTION, 1) && !caused(CAUSE_RESTART, 1) && !commands_may_be_late() &&
           !items_under_way(c, c->name, 1u << VERB_ADD | 1u << VERB_ADD_NEW); /* bits of one that stands still stay */
}

bool has_cause(const struct call *c, hibloom_status status)
{
    const uint64_t since = c->begun_us - 10000000; /* of calls before, too: a connection, a half-done step */
    const struct client_settings *s = &world.plan->client[c->client];
    const struct kind *kind = kind_of(c->name);
    /* Who has lost the master needs Sentinels, whose faults are no cause for others. */
    const bool left = world.left_us[c->client] >= since || world.left_us[c->client] > c->answered_us /* for longer */ ||
                      world.starved_us[c->client] >= since ||
                      (c->from != 0 && !c->from_own); /* it connects to its source */
    const bool connection = (left && world.plan->topology == SENTINEL) || caused(CAUSE_CONNECTION, since) ||
                            caused(CAUSE_RESTART, since);
    const bool busy =
        connection || caused(CAUSE_REFUSAL, since) ||
        /* their scripts name several keys, and wait until a slot has moved; many items may go by a merge */
        ((c->verb == VERB_MERGE || c->verb == VERB_LOAD || c->verb == VERB_REPLACE || kind->partitioned ||
          c->times > 1) &&
         caused(CAUSE_SLOTS, since));
    const bool life = names[c->name].hurt || caused(CAUSE_KEYS, 1) || caused(CAUSE_LOSS, 1) ||
                      (needs_handle(c->verb) && c->handle != oracle_root(c->name)); /* replaced, or it is not known */
    /* A server that was lost, and has given a slot away, may have restarted before. So may one that a map has not named. */
    const bool lost = caused(CAUSE_RESTART, 1) ||
                      (caused(CAUSE_SLOTS, 1) && (caused(CAUSE_CONNECTION, 1) || world.left_us[c->client] != 0 ||
                                                  world.plan->spare > 0 || world.plan->holes));
    const bool others = life || c->raw_at_begin != 0 || caused(CAUSE_KILL, 1) || connection; /* have begun something */
    const struct filter_seen *seen = &names[c->name].seen;
    const bool goes = seen->links > 0 && seen->link[0].root.state == 'x'; /* it is being removed */
    const bool is_whole = c->alone && c->raw_at_begin == (int)seen->status && c->handle != 0 &&
                          c->verb != VERB_REPLACE && c->verb != VERB_IMPORT &&
                          !merges_here(c) /* else by its other name */ &&
                          (goes || (seen->status == 0 && !names[c->name].unclean)) && !world.stale[c->client];

    if (loses_handle(status) && shares(c) && (!c->alone || names[c->name].unclean))
        return true; /* another one has put it there */
    switch (status) {
    case HIBLOOM_EIO: return connection;
    case HIBLOOM_ENOMEM: /* another call may have met it: on a loop; or before this one, whose pause an answer ends */
        return world.starved_us[c->client] >= (s->loop ? 1 : since) &&
               (s->loop || world.plan->topology != STANDALONE || world.starved_us[c->client] >= c->answered_us);
    case HIBLOOM_ETIMEDOUT:
        /* Of pairs, a server that stands still delays nothing that is for others, but for a map. */
        if (c->by_pairs && !s->loop && world.plan->topology == CLUSTER && !has_several_keys(c->name) &&
            !strstr(c->text, "cluster:") && !kind->growing && s->from_replicas == 0 && world.faults == c->faults + 1 &&
            world.had == FAULT(SLOW) && !world_stood(root_key(c->name), c->begun_us))
            return false;
        /* Who stood still once finds the answers that came meanwhile. Where sizes differ each piece takes long. */
        if (busy || s->deadline_ms == 0)
            return busy && ((world.plan->sizes != 0 && world.plan->pieces != 0) || s->deadline_ms != 0 ||
                            (world.had & ~FAULT(PAUSE, PIECES)) != 0 || world.struck[c->client] > c->struck + 1);
        return (s->deadline_ms < 600 && world_had(FAULT_STRANGER)) /* looked at for 250 ms, by a replace twice */ ||
               world.plan->topology != SENTINEL || s->loop || c->times != 1 || kind->growing ||
               (s->min_replicas > 0 && (world_had(FAULT_LAG) || world.plan->lag_us > 1000 * s->replicas_ms)) ||
               (world.plan->latency_us > 300 && s->deadline_ms < 3000) || world_had(FAULT_PIECES);
    case HIBLOOM_EUNAVAILABLE:
        if ((strstr(c->text, "MASTERDOWN") != NULL && c->verb == VERB_LOOK && s->deadline_ms == 0 &&
             !caused(CAUSE_LOSS, 1) /* the primary answers for a replica that refuses (docs/cluster.md) */) ||
            (strstr(c->text, "replicas with the write:") != NULL && world.few_us[c->client] < c->begun_us &&
             (c->from == 0 || c->from_own) /* else it is of another store, and the words are not */ &&
             !(c->by_pairs && s->loop) /* another part may be canceled: then they are of before */))
            return false;
        if (strstr(c->text, "is whole now") != NULL && /* late bits hid it, or a denial its growth */
            (world.plan->sizes != 0 || caused(CAUSE_KEYS, c->begun_us) || caused(CAUSE_DENIAL, since)))
            return true;
        return busy || (s->min_replicas > 0 && (kind->growing || (1u << c->verb & ONLY_ASKS) == 0)) ||
               (caused(CAUSE_DENIAL, since) && caused(CAUSE_SLOTS, since)) ||    /* ASKING is denied */
               (c->verb == VERB_LIST && (lost || caused(CAUSE_SLOTS, since))) || /* it may have missed keys */
               (world.plan->topology == CLUSTER && caused(CAUSE_LOSS, since)) || /* a key is put back */
               (caused(CAUSE_SLOTS, 1) && (caused(CAUSE_KEYS, 1) || caused(CAUSE_CLOCK, 1)));
    case HIBLOOM_ESERVER: return caused(CAUSE_REFUSAL, since) && (caused(CAUSE_KEYS, 1) || caused(CAUSE_RESTART, 1));
    case HIBLOOM_EDENIED: return caused(CAUSE_NEED, since);
    case HIBLOOM_ENOTFOUND:
        if (c->verb == VERB_OPEN && !kind->bare /* its text has a size, so it makes one */)
            return false;
        /* A removal that failed arrives now: on a loop; or of the other filter. */
        if (names[c->name].unclean && ((s->loop && somebody_may_remove(c->name)) || merges_here(c)))
            return true;
        return !has_removed_it(c) &&
               (life || (c->verb == VERB_LOOK && kind->bare) || c->raw_at_begin != 0 || larger_bits_may_stand());
    case HIBLOOM_EMISMATCH:
        if (c->verb == VERB_REPLACE && strstr(c->text, "is no key of a filter") != NULL &&
            strstr(c->text, ":+") == NULL && net_now_us() < c->begun_us + 250000)
            return false; /* late bits in its way are waited for (hibloom_replace) */
        if (c->only_new)  /* it makes the first one that there is */
            return c->raw_at_begin != HIBLOOM_ENOTFOUND || !c->alone || commands_may_be_late() ||
                   somebody_may_remove(c->name) || caused(CAUSE_KEYS, 1) || world_had(FAULT_RESTART) ||
                   world.stale[c->client]; /* one comes back from a dump */
        if (c->verb == VERB_OPEN && finds_no_other(c))
            return world.faults - c->faults >= 5; /* it begins ten times, and a loss may cost two of these */
        /* The name of what replaces, or is merged, may have late bits, or what a merge left of a filter before. */
        return life || c->raw_at_begin != 0 || world.plan->sizes != 0 || (c->verb == VERB_REPLACE && others) ||
               (merges_here(c) && (commands_may_be_late() || (world.had & FAULT(CUT_INSIDE, SLOW, MEET)) != 0 ||
                                   somebody_may_remove(c->name)));
    case HIBLOOM_ECORRUPT: /* a removal that was cut may have taken a link of which no root tells yet; or a key, if it is full */
        return ((life || caused(CAUSE_CLOCK, 1)) && some_key_may_go(c->name) &&
                /* what a stranger left may stand where its filter was, which had another number of keys */
                !(is_whole && c->handle_gone && !(world.plan->sizes != 0 && world_had(FAULT_STRANGER)) &&
                  !(kind->growing && caused(CAUSE_LOSS, 1)) /* its links outlive its first one */)) ||
               ((kind->growing || kind->window || caused(CAUSE_REFUSAL, 1)) && !is_whole &&
                (names[c->name].did & (1u << VERB_DROP | 1u << VERB_DELETE)) != 0);
    case HIBLOOM_EBUSY: /* of a window: it tries 20 times, each as a period has passed, or a slice was cleared */
        if (kind->window && world.plan->topology != CLUSTER && c->verb <= VERB_LOOK && c->verb != VERB_OPEN && !life &&
            c->raw_at_begin == 0)
            return world.plan->latency_us == FAR_US || world.faults - c->faults >= 10 ||
                   net_now_us() - c->begun_us > 10000000;
        /* Where the clocks of its servers differ each try rests for up to 0.1 s. */
        if (kind->window && world.plan->topology == CLUSTER && is_add(c) && !life && c->raw_at_begin == 0)
            return world.faults - c->faults >= 10 || net_now_us() - c->begun_us > 1000000;
        /* Else it is cleared again and again. */
        if (!kind->window && !kind->growing && (is_add(c) || c->verb == VERB_LOOK || c->verb == VERB_REMOVE))
            return !c->alone;
        return others || (kind->growing && !c->alone) || kind->window ||
               (c->reopens && (c->beside || world.plan->names > 1 /* a merge from it */)) /* async.h */;
    case HIBLOOM_ELOST: return lost && !s->accept_restarts;
    /* A server that has forgotten the filter, or had it deleted, gets it back between two answers of a pipeline. */
    case HIBLOOM_EPROTO:
        return caused(CAUSE_RESTART, since) + caused(CAUSE_KEYS, since) + caused(CAUSE_LOSS, since) >= 2;
    case HIBLOOM_ENOTSUP:
        return (c->verb > VERB_LOOK || (kind->partitioned && c->verb == VERB_ADD_NEW)) &&
               (kind->window || kind->growing || kind->bare || kind->partitioned || kind->counting ||
                c->verb == VERB_REPLACE);
    case HIBLOOM_ERANGE: return kind->growing && is_add(c);
    case HIBLOOM_ECANCELED: return c->canceled;
    default: return false;
    }
}

/* Retries count from a failure, so each fault begins them again, and a lack of replicas from before the call may. A deadline
 * is one for the whole call. Bits are taken back behind it, in a time of their own (hibloom_store_deadline). */
uint64_t bound_ms(const struct call *c)
{
    const struct client_settings *s = &world.plan->client[c->client];
    const uint64_t most_ms = s->connect_ms > s->timeout_ms ? s->connect_ms : s->timeout_ms;
    const uint64_t deadline_ms = world.healed || (c->from != 0 && !c->from_own) ? 0 : s->deadline_ms; /* without one */
    const uint64_t held_ms = (world.held_us - c->held_us) / 1000;
    /* On a loop a WAIT for other calls comes before its answers. A filter that is nearly full takes items one by one. */
    const uint64_t items = c->verb == VERB_FILL ? FILL / 4 : (uint64_t)__builtin_popcount(c->items);
    const uint64_t steps = 20 + 2 * c->times * items;
    const uint64_t failures = 1 + world.faults - c->faults + (s->min_replicas > 0);
    const uint64_t waits_ms = s->loop && s->min_replicas > 0 ? steps * s->replicas_ms : 0;
    const uint64_t paused_ms = (world.paused_us[c->client] - c->paused_us) / 1000;

    /* The library makes several exchanges for it, each with the deadline anew, or the client makes several calls. */
    if (deadline_ms != 0 && c->verb >= VERB_REPLACE && c->verb <= VERB_IMPORT)
        return 4 * (deadline_ms + s->timeout_ms) + held_ms + 100;
    /* Whatever servers do. On a loop a younger one that takes bits back may be before it. Look-ups take none back. */
    const bool shares = s->loop && (c->beside || world.plan->names > 1 || c->verb == VERB_FILL);
    if (deadline_ms != 0)
        return deadline_ms + (c->by_pairs || shares ? 3 : c->verb != VERB_LOOK) * s->timeout_ms + paused_ms + 100;
    return failures * (s->retry_ms + 2 * most_ms) + 4 * most_ms + held_ms + waits_ms + 2000 +
           (s->loop ? paused_ms : 0) +
           /* clients that make keys against each other take many round trips, and so do many items one by one */
           (2 + steps / 64) * world.plan->latency_us;
}
