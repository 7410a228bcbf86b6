/* The words of a spec. The library says and takes specs as texts. The command needs few of their values. */
#include "spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r\n";

const char *spec_value(const char *spec, const char *name)
{
    const size_t len = strlen(name);

    for (const char *at = spec + strspn(spec, blanks); *at != '\0'; at += strspn(at, blanks)) {
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return at + len + 1;
        at += strcspn(at, blanks);
    }
    return NULL;
}

uint64_t spec_number(const char *spec, const char *name)
{
    const char *value = spec_value(spec, name);

    return value != NULL ? strtoull(value, NULL, 10) : 0;
}

char *spec_with(char out[SPEC_SIZE], const char *spec, const char *name, const char *value)
{
    const char *there = spec_value(spec, name), *rest = there != NULL ? there + strcspn(there, blanks) : "";
    int before = there != NULL ? (int)(there - spec) - (int)strlen(name) - 1 : (int)strlen(spec);

    rest += strspn(rest, blanks);
    while (*rest == '\0' && before > 0 && strchr(blanks, spec[before - 1]) != NULL)
        before--;
    if (value != NULL)
        snprintf(out, SPEC_SIZE, "%.*s%s %s=%.*s", before, spec, rest, name, (int)strcspn(value, blanks), value);
    else
        snprintf(out, SPEC_SIZE, "%.*s%s", before, spec, rest);
    return out;
}

bool spec_differs_in_seed_only(const char *a, const char *b)
{
    char plain_a[SPEC_SIZE], plain_b[SPEC_SIZE];

    return strcmp(spec_with(plain_a, a, "seed", NULL), spec_with(plain_b, b, "seed", NULL)) == 0;
}

bool spec_wants_seed(const char *spec)
{
    const char *hash = spec_value(spec, "hash");

    return spec_value(spec, "seed") == NULL && (strncmp(hash, "xxh3", 4) == 0 || strncmp(hash, "siphash", 7) == 0);
}

const char *spec_kind(const char *spec)
{
    return spec_value(spec, "counters") != NULL ? "counting"
           : spec_value(spec, "growth") != NULL ? "growing"
           : spec_value(spec, "window") != NULL ? "window"
                                                : "plain";
}

uint64_t spec_filters(const char *spec)
{
    return spec_number(spec, "slices") + 1;
}

bool spec_has_empty_excluded(const char *spec)
{
    return spec_value(spec, "empty") != NULL;
}
