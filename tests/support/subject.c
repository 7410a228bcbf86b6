/* A filter with known contents, and every call on it. See subject.h. */
#include "subject.h"
#include "base/store.h"

#include <stdio.h>
#include <string.h>

/* 2^20 bits for some hundred items: with 4 hashes a false positive has a
 * chance below 10^-12, and the seeds make it the same in every run. */
const struct variant variants[VARIANTS] = {
    {"SETBIT, one key", "bits=1048576 hashes=4 seed=5eed", "setbit"},
    {"BITFIELD, one key", "bits=1048576 hashes=4 seed=5eed", "bitfield"},
    {"SETBIT, four keys", "bits=262144 hashes=4 layout=partitioned seed=5eed", "setbit"},
    {"BITFIELD, four keys", "bits=262144 hashes=4 layout=partitioned seed=5eed", "bitfield"},
    {"GETRANGE, blocked", "bits=1048576 hashes=4 layout=blocked seed=5eed", "setbit"},
    {"BITFIELD, three segments", "bits=1048576 hashes=4 segments=3 seed=5eed", "bitfield"},
};

enum { KNOWN = 40, ITEM_SIZE = 32, UNWRITTEN = 0xA5 };

struct items {
    hibloom_item item[KNOWN];
    char text[KNOWN][ITEM_SIZE];
    bool in[KNOWN];
    size_t n;
};

/* ---- What is in it ------------------------------------------------------------- */

static void append(struct items *items, bool in, unsigned number)
{
    char *text = items->text[items->n];

    items->in[items->n] = in;
    items->item[items->n].data = text;
    items->item[items->n].len = (size_t)snprintf(text, ITEM_SIZE, "%s-%u", in ? "in" : "out", number);
    items->n++;
}

/* In or not by the bits of a number that is like none of its own shifts, so
 * that answers that slipped by any number of places don't match. */
static bool is_in(unsigned number)
{
    return (0x6A09E667F3u >> number % KNOWN & 1) != 0;
}

/* All known items, those that are in, those that are in with new ones between, or new ones. */
enum choice { ALL, ONLY_IN, IN_AND_FRESH, ONLY_FRESH };

static void choose(struct items *items, enum choice choice, struct subject *subject)
{
    items->n = 0;
    for (unsigned i = 0; i < KNOWN; i++) {
        if (choice == ALL || (is_in(i) && choice != ONLY_FRESH))
            append(items, is_in(i), i);
        else if (choice != ONLY_IN)
            append(items, false, KNOWN + subject->fresh++);
    }
}

static void open_filter(struct subject *subject)
{
    struct items items;

    subject->filter = test_open(subject->store, subject->name, subject->variant->spec);
    choose(&items, ONLY_IN, subject);
    assert_ok(hibloom_add_many(subject->filter, items.item, items.n, NULL), subject->store);
    subject->maybe_empty = subject->maybe_removed = false;
}

void subject_open(struct subject *subject, hibloom_store *store, const struct variant *variant)
{
    *subject = (struct subject){.store = store, .variant = variant};
    test_name(subject->name);
    open_filter(subject);
}

void subject_close(struct subject *subject)
{
    hibloom_close(subject->filter);
    subject->filter = NULL;
}

static void subject_remove(struct subject *subject)
{
    assert_ok(hibloom_drop(subject->filter), subject->store);
    subject_close(subject);
}

void subject_check(struct subject *subject)
{
    struct items items;
    const bool in_parts = subject->filter->spec.segments > 1; /* of which some were cleared */
    bool found[KNOWN], none = true, lost = false;
    hibloom_status status;

    choose(&items, ALL, subject);
    status = hibloom_contains_many(subject->filter, items.item, items.n, found);
    if (status == HIBLOOM_ENOTFOUND && subject->maybe_removed) {
        subject_close(subject);
        open_filter(subject);
        status = hibloom_contains_many(subject->filter, items.item, items.n, found);
    }
    assert_ok(status, subject->store);
    for (size_t i = 0; i < items.n; i++)
        none = none && !found[i], lost = lost || found[i] < items.in[i];
    if (subject->maybe_empty && (none || (in_parts && lost))) {
        subject_close(subject);
        open_filter(subject);
        return;
    }
    assert_memory_equal(found, items.in, items.n);
    for (size_t i = 0; i < 3; i++) {
        assert_ok(hibloom_contains(subject->filter, items.item[i].data, items.item[i].len, found), subject->store);
        assert_int_equal(found[0], items.in[i]);
    }
    subject->maybe_empty = subject->maybe_removed = false;
}

void subject_begin(struct subject *subject, const char *uri, const struct variant *variant, const hibloom_setup *setup)
{
    subject_open(subject, test_connect(with_options(uri, "commands=%s", variant->commands), setup), variant);
}

void subject_end(struct subject *subject)
{
    subject_check(subject);
    subject_remove(subject);
    hibloom_store_free(subject->store);
}

/* ---- The calls ------------------------------------------------------------------ */

/* An answer that must not have been written is compared by its bytes: as a bool it may have no value. */
static void assert_unwritten(const void *answer, size_t size)
{
    const unsigned char *bytes = answer;

    for (size_t i = 0; i < size; i++)
        if (bytes[i] != UNWRITTEN)
            fail_msg("an answer was written although the call failed");
}

static void assert_answers(hibloom_status status, const bool *answers, const struct items *items, bool meaning_in)
{
    if (status != HIBLOOM_OK)
        assert_unwritten(answers, items->n * sizeof *answers);
    for (size_t i = 0; status == HIBLOOM_OK && i < items->n; i++)
        if (answers[i] != (items->in[i] == meaning_in))
            fail_msg("OK, but the answer on item %s is wrong", items->text[i]);
}

static hibloom_status add(struct subject *subject)
{
    return hibloom_add(subject->filter, "in-0", 4, NULL);
}

/* A call that answers, of one item or of all that are chosen. */
static hibloom_status ask(struct subject *subject, enum choice choice, bool adds, bool many)
{
    struct items items;
    bool answers[KNOWN];
    hibloom_status status;

    memset(answers, UNWRITTEN, sizeof answers);
    choose(&items, choice, subject);
    if (many) {
        status = (adds ? hibloom_add_many : hibloom_contains_many)(subject->filter, items.item, items.n, answers);
    } else {
        items.n = 1;
        status = (adds ? hibloom_add : hibloom_contains)(subject->filter, items.item[0].data, items.item[0].len,
                                                         answers);
    }
    assert_answers(status, answers, &items, !adds);
    return status;
}

static hibloom_status add_is_new(struct subject *subject)
{
    return ask(subject, ONLY_FRESH, true, false);
}

static hibloom_status contains_what_is_in(struct subject *subject)
{
    return ask(subject, ONLY_IN, false, false);
}

static hibloom_status add_many(struct subject *subject)
{
    struct items items;

    choose(&items, ONLY_IN, subject);
    return hibloom_add_many(subject->filter, items.item, items.n, NULL);
}

static hibloom_status add_many_is_new(struct subject *subject)
{
    return ask(subject, IN_AND_FRESH, true, true);
}

static hibloom_status contains_many(struct subject *subject)
{
    return ask(subject, ALL, false, true);
}

static hibloom_status get_info(struct subject *subject)
{
    hibloom_info info;
    hibloom_status status;

    memset(&info, UNWRITTEN, sizeof info);
    status = hibloom_get_info(subject->filter, &info, sizeof info);
    if (status == HIBLOOM_OK)
        assert_true(info.bits_set > 0 && info.fill > 0 && info.bytes >= 131072 && info.keys >= 1);
    else /* but for its size, which the call itself sets */
        assert_unwritten(&info.bits_set, sizeof info - offsetof(hibloom_info, bits_set));
    return status;
}

static hibloom_status clear(struct subject *subject)
{
    subject->maybe_empty = true;
    return hibloom_clear(subject->filter);
}

static hibloom_status drop(struct subject *subject)
{
    subject->maybe_removed = true;
    return hibloom_drop(subject->filter);
}

static hibloom_status expire(struct subject *subject)
{
    return hibloom_expire(subject->filter, 3600000);
}

static hibloom_status open_again(struct subject *subject)
{
    hibloom *const unwritten = (hibloom *)(void *)subject, *again = unwritten;
    hibloom_status status = hibloom_open(&again, subject->store, subject->name, NULL);

    if (status == HIBLOOM_OK)
        hibloom_close(again);
    else
        assert_ptr_equal(again, unwritten);
    return status;
}

static hibloom_status remove_by_name(struct subject *subject)
{
    subject->maybe_removed = true;
    return hibloom_drop_by_name(subject->store, subject->name);
}

/* Of a filter that is whole; so it is the same after it. */
static hibloom_status repair_by_name(struct subject *subject)
{
    return hibloom_repair(subject->store, subject->name);
}

const struct call calls[CALLS] = {
    {.name = "add", .run = add, .adds = true, .on_handle = true},
    {.name = "add, is_new asked for", .run = add_is_new, .adds = true, .on_handle = true},
    {.name = "contains", .run = contains_what_is_in, .reads_only = true, .on_handle = true},
    {.name = "add_many", .run = add_many, .adds = true, .on_handle = true},
    {.name = "add_many, is_new asked for", .run = add_many_is_new, .adds = true, .on_handle = true},
    {.name = "contains_many", .run = contains_many, .reads_only = true, .on_handle = true},
    {.name = "get_info", .run = get_info, .reads_only = true, .on_handle = true},
    {.name = "clear", .run = clear, .on_handle = true, .undoes = true},
    {.name = "drop", .run = drop, .on_handle = true, .undoes = true},
    {.name = "expire", .run = expire, .on_handle = true},
    {.name = "open", .run = open_again, .reads_only = true},
    {.name = "remove", .run = remove_by_name, .undoes = true},
    {.name = "repair", .run = repair_by_name, .reads_only = true},
};

const struct call *call_named(const char *name)
{
    for (int i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    fail_msg("no call is named \"%s\"", name);
    return NULL;
}

void subject_assert_words(const struct subject *subject, const struct call *call, hibloom_status status,
                          hibloom_status expected, const char *words)
{
    const char *said = hibloom_store_error(subject->store), *key = strstr(said, subject->name);

    if (status != expected || strstr(said, words) == NULL || key == NULL || key[-1] != '\'')
        fail_msg("%s, %s: %s: \"%s\", not %s with the key and \"%s\"", subject->variant->name, call->name,
                 hibloom_strerror(status), said, hibloom_strerror(expected), words);
}
