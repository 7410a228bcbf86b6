/* What a filter should hold. See mirror.h. */
#include "mirror.h"
#include "dialogue.h"
#include "base/store.h"
#include "spec/positions.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void few_make(struct few *few, char first)
{
    for (unsigned i = 0; i < FEW; i++)
        few->items[i] = (hibloom_item){few->text[i],
                                       (size_t)snprintf(few->text[i], sizeof few->text[i], "%c%u", first, i)};
}

static size_t bytes_of_key(const struct spec *spec)
{
    return (size_t)((spec->bits + spec->segments - 1) / spec->segments + 7) / 8;
}

void mirror_make(struct mirror *mirror, const struct dialogue *dialogue, const char *name)
{
    *mirror = (struct mirror){.dialogue = dialogue, .name = name, .spec = test_spec(dialogue->spec)};
    mirror->spec.segments += mirror->spec.segments == 0;
    assert_true(mirror->spec.segments <= MIRROR_KEYS_MAX);
    for (unsigned key = 0; key < mirror->spec.segments; key++) {
        mirror->bits[key] = calloc(1, bytes_of_key(&mirror->spec));
        assert_non_null(mirror->bits[key]);
    }
}

void mirror_free(struct mirror *mirror)
{
    for (unsigned key = 0; key < mirror->spec.segments; key++)
        free(mirror->bits[key]);
}

void mirror_add(struct mirror *mirror, const struct few *few)
{
    struct position positions[HIBLOOM_HASHES_MAX];

    for (unsigned i = 0; i < FEW; i++) {
        assert_ok(positions_of(&mirror->spec, few->items[i].data, few->items[i].len, positions), NULL);
        for (unsigned k = 0; k < mirror->spec.hashes; k++)
            mirror->bits[positions[k].key][positions[k].bit / 8] |= (unsigned char)(0x80 >> positions[k].bit % 8);
    }
}

void mirror_clear(struct mirror *mirror)
{
    for (unsigned key = 0; key < mirror->spec.segments; key++)
        memset(mirror->bits[key], 0, bytes_of_key(&mirror->spec));
}

uint64_t mirror_count(const struct mirror *mirror)
{
    uint64_t n = 0;

    for (unsigned key = 0; key < mirror->spec.segments; key++)
        for (size_t i = 0; i < bytes_of_key(&mirror->spec); i++)
            n += (unsigned)__builtin_popcount(mirror->bits[key][i]);
    return n;
}

/* Of a cluster's nodes the one that has the key's slot answers. */
static redisReply *ask_servers(const struct dialogue *d, const char *key, size_t last)
{
    for (int i = 0; i < d->server_count; i++) {
        redisReply *reply = redisCommand(d->servers[i], "GETRANGE %s 0 %llu", key, (unsigned long long)last);
        if (reply != NULL && reply->type == REDIS_REPLY_STRING)
            return reply;
        freeReplyObject(reply);
    }
    fail_msg("%s, place %llu: no server has the slot of '%s'", d->what, (unsigned long long)d->place, key);
    return NULL;
}

void mirror_assert(const struct mirror *mirror, const char *after)
{
    const struct dialogue *d = mirror->dialogue;
    const size_t bytes = bytes_of_key(&mirror->spec);

    for (unsigned key = 0; key < mirror->spec.segments; key++) {
        char name[64];
        snprintf(name, sizeof name, mirror->spec.segments > 1 ? "%s:%u" : "%s", mirror->name, key);
        redisReply *reply = ask_servers(d, name, bytes - 1);
        if (reply->len != bytes || memcmp(reply->str, mirror->bits[key], bytes) != 0)
            fail_msg("%s, place %llu: after %s, '%s' has other bits than it should", d->what,
                     (unsigned long long)d->place, after, name);
        freeReplyObject(reply);
    }
}

void assert_no_key(const struct dialogue *d)
{
    for (int i = 0; i < d->server_count; i++) {
        redisReply *keys = redisCommand(d->servers[i], "KEYS *");
        for (size_t k = 0; k < keys->elements; k++) /* a temporary one, of a call that failed, ends by itself */
            if (test_command(d->servers[i], "PTTL %b", keys->element[k]->str, keys->element[k]->len) == -1)
                fail_msg("%s, place %llu: a key is left over", d->what, (unsigned long long)d->place);
        freeReplyObject(keys);
    }
}

void assert_said(const struct dialogue *d, bool so, const char *what)
{
    if (!so)
        fail_msg("%s, place %llu: not so: %s", d->what, (unsigned long long)d->place, what);
}
