/* keys.c: which Redis keys a filter's name stands for. See keys.h. */
#include "redis/keys.h"
#include "base/number.h"
#include "redis/link.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdio.h>

/* The part of a key that decides the slot. */
static const char *find_tag(const char *key, size_t *len)
{
    const char *open = memchr(key, '{', *len);
    const char *close = open != NULL ? memchr(open, '}', *len - (size_t)(open - key)) : NULL;

    if (close == NULL || close == open + 1)
        return NULL;
    *len = (size_t)(close - open) - 1;
    return open + 1;
}

/* With a brace and no tag, no other key could be put into the name's slot. */
hibloom_status keys_check(const char *name)
{
    size_t len = strnlen(name, HIBLOOM_NAME_MAX + 1);

    if (len > HIBLOOM_NAME_MAX)
        return HIBLOOM_ERANGE;
    return len > 0 && (strpbrk(name, "{}") == NULL || find_tag(name, &len) != NULL) ? HIBLOOM_OK : HIBLOOM_EINVAL;
}

size_t keys_at(char out[KEYS_SIZE], const char *name, bool several, uint32_t i)
{
    size_t len = strlen(name);

    memcpy(out, name, len);
    if (several) {
        const size_t digits = number_digits(i);
        out[len] = ':';
        number_format(out + len + 1, i, digits);
        len += 1 + digits;
    }
    out[len] = '\0';
    return len;
}

/* Other libraries': before the name, behind it, then the number if there is one; the same of
 * what lies beside. Redisson puts no braces around a name that has a {tag}. */
static const struct form {
    const char *before, *behind;
    bool numbered;
    const char *beside_before, *beside_behind, *beside_behind_tag;
} forms[] = {
    [KEYS_PYREBLOOM] = {"", ".", true, NULL, NULL, NULL},
    [KEYS_RUEIDIS] = {"{", "}", false, "{", "}:c", NULL},
    [KEYS_REDISSON] = {"", "", false, "{", "}:config", ":config"},
    [KEYS_ORESTES] = {"", ":bits", false, NULL, NULL, NULL},
};

size_t keys_beside(char out[KEYS_SIZE], const struct link *link)
{
    const struct form *form = &forms[link->spec->keys];
    const bool tagged = form->beside_behind_tag != NULL && keys_has_tag(link_name(link, LINK_NAME));

    if (link->spec->keys == KEYS_OWN || form->beside_before == NULL)
        return 0;
    return (size_t)snprintf(out, KEYS_SIZE, "%s%s%s", tagged ? "" : form->beside_before, link_name(link, LINK_NAME),
                            tagged ? form->beside_behind_tag : form->beside_behind);
}

size_t keys_name(char out[KEYS_SIZE], const struct link *link, uint32_t i)
{
    const struct form *form = &forms[link->spec->keys];
    const char *name = link_name(link, LINK_NAME);

    if (link->spec->keys == KEYS_OWN) /* before the spec is known there is but one */
        return keys_at(out, name, link->spec->bits != 0 && spec_keys(link->spec) > 1, i);
    const int len = snprintf(out, KEYS_SIZE, "%s%s%s", form->before, name, form->behind);
    return (size_t)(form->numbered ? len + snprintf(out + len, KEYS_SIZE - (size_t)len, "%u", (unsigned)i) : len);
}

void keys_link(char out[LINK_NAME_SIZE], const char *name, uint32_t i)
{
    const size_t len = strlen(name), digits = number_digits(i);

    memcpy(out, name, len);
    memcpy(out + len, ":+", 2);
    number_format(out + len + 2, i, digits);
    out[len + 2 + digits] = '\0';
}

/* Names are C strings, so no caller can choose one with a zero byte. */
size_t keys_temporary(char out[KEYS_SIZE], const struct link *link, uint32_t i, char what, uint64_t number)
{
    char key[KEYS_SIZE];
    size_t len = keys_name(key, link, i), tag_len = len;
    const bool tagged = find_tag(key, &tag_len) != NULL;

    len = (size_t)snprintf(out, KEYS_SIZE, tagged ? "%s" : "{%s}", key);
    out[len++] = '\0';
    return len + (size_t)snprintf(out + len, KEYS_SIZE - len, "%c%016" PRIx64, what, number);
}

/* CRC16 XMODEM (polynomial 0x1021, from 0) modulo KEYS_SLOTS: Redis Cluster
 * specification, "Key distribution model". */
uint16_t keys_slot(const char *key, size_t len)
{
    size_t tag_len = len;
    const char *tag = find_tag(key, &tag_len);
    unsigned crc = 0;

    if (tag == NULL)
        tag = key;
    for (size_t i = 0; i < 2 * tag_len; i++) { /* half a byte at a time */
        const unsigned half = (unsigned char)tag[i / 2] >> (i % 2 == 0 ? 4 : 0);
        crc = crc << 4 ^ ((crc >> 12 ^ half) & 0xf) * 0x1021; /* 0x1021 shifted by 0 to 3: no bit is carried */
    }
    return (uint16_t)(crc % KEYS_SLOTS);
}
