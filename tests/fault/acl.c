/* The lines of ACL SETUSER that docs/access.md gives: each lets a user do what it is for, in every layout and with both
 * encodings; what it is not for is denied, and has harmed nothing; and none of its words can be left out. */
#include "support/acl_lines.h"
#include "support/served.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "base/store.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "seen"
#define BARE NAME ":bare" /* whose keys the same patterns cover */
#define OTHER NAME ":other"

/* ---- The lines ----------------------------------------------------------------- */

enum { READS = 1, ADDS = 2, MERGES = 4, MAKES = 8, APPLIES = 256 };
static const struct level {
    const char *name, *line;
    int is;
} levels[] = {{"an application", APPLYING, APPLIES},
              {"reading", READING, READS},
              {"adding", ADDING, ADDS},
              {"merging", MERGING, MERGES},
              {"making and removing", MAKING, MAKES}};

enum { LEVELS = sizeof levels / sizeof *levels };
static const struct variant {
    const char *spec, *commands;
} variants[] = {
    {"bits=65536 hashes=4 seed=5eed", "setbit"},
    {"bits=65536 hashes=4 seed=5eed", "bitfield"},
    {"bits=65536 hashes=4 segments=3 seed=5eed", "setbit"},
    {"bits=65536 hashes=4 segments=3 seed=5eed", "bitfield"},
    {"bits=16384 hashes=4 layout=partitioned seed=5eed", "setbit"},
    {"bits=16384 hashes=4 layout=partitioned seed=5eed", "bitfield"},
    {"bits=65536 hashes=4 layout=blocked seed=5eed", "setbit"},
    {"bits=65536 hashes=4 layout=blocked seed=5eed", "bitfield"},
    {"bits=65536 hashes=4 layout=blocked segments=3 seed=5eed", "setbit"},
    {"bits=65536 hashes=4 layout=blocked segments=3 seed=5eed", "bitfield"},
    {"bits=65536 hashes=4 segments=3 counters=4 seed=5eed", "setbit"},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* ---- What is worked on ------------------------------------------------------------ */

enum { ITEMS = 20 };
static hibloom_item in[ITEMS], fresh[ITEMS]; /* those that the filter has, and that it has not */
static char texts[2 * ITEMS][16];
static char *directory, *saved, *file; /* a filter with the fresh ones */
static hibloom_store *all;             /* of who may do everything */

struct work {
    const struct variant *variant;
    hibloom_store *store; /* the user's */
    hibloom *filter;      /* the user's handle; NULL: not opened */
    struct spec spec;
};

static bool has_keys(const struct work *work) /* more than one */
{
    return work->spec.segments > 1 || work->spec.layout == LAYOUT_PARTITIONED;
}

/* By who may do everything. */
static hibloom *fill(const char *name, const struct work *work, const hibloom_item *items, bool bare)
{
    hibloom *filter = bare ? test_attach(all, name, work->variant->spec) : test_open(all, name, work->variant->spec);

    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), all);
    return filter;
}

static void assert_holds(const hibloom_item *items, bool expected)
{
    hibloom *filter = NULL;
    bool found[ITEMS];

    assert_ok(hibloom_open(&filter, all, NAME, NULL), all);
    assert_ok(hibloom_contains_many(filter, items, ITEMS, found), all);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(found[i], expected);
    hibloom_close(filter);
}

/* ---- What comes before, done by who may; what the user tries; what must then be so ---- */

static hibloom_status look_up(struct work *work)
{
    bool found[ITEMS];
    const hibloom_status status = hibloom_contains_many(work->filter, in, ITEMS, found);

    for (int i = 0; status == HIBLOOM_OK && i < ITEMS; i++)
        assert_true(found[i]);
    return status;
}

static void fill_bare(struct work *work)
{
    hibloom_close(fill(BARE, work, in, true));
}

static hibloom_status attach(struct work *work)
{
    return hibloom_attach(&work->filter, work->store, BARE, test_text(&work->spec));
}

static hibloom_status look_up_bare(struct work *work)
{
    const hibloom_status status = attach(work);

    return status == HIBLOOM_OK ? look_up(work) : status;
}

static hibloom_status count(struct work *work)
{
    hibloom_info info;
    const hibloom_status status = hibloom_get_info(work->filter, &info, sizeof info);

    if (status == HIBLOOM_OK)
        assert_true(info.bits_set > ITEMS && info.ttl_ms == -1);
    return status;
}

static hibloom_status save(struct work *work)
{
    return hibloom_save(work->filter, saved);
}

static hibloom_status add_one(struct work *work)
{
    return hibloom_add(work->filter, in[0].data, in[0].len, NULL);
}

static hibloom_status add_many(struct work *work)
{
    return hibloom_add_many(work->filter, fresh, ITEMS, NULL);
}

static void assert_added(struct work *work)
{
    assert_holds(fresh, true);
}

static hibloom_status add_is_new(struct work *work)
{
    bool is_new[ITEMS];
    const hibloom_status status = hibloom_add_many(work->filter, fresh, ITEMS, is_new);

    for (int i = 0; status == HIBLOOM_OK && i < ITEMS; i++)
        assert_true(is_new[i]);
    return status;
}

static hibloom_status add_to_bare(struct work *work)
{
    const hibloom_status status = attach(work);

    return status == HIBLOOM_OK ? add_many(work) : status;
}

static hibloom_status remove_one(struct work *work)
{
    return hibloom_remove(work->filter, in[0].data, in[0].len, NULL);
}

static void write_file(struct work *work)
{
    hibloom *other = fill(OTHER, work, fresh, false);

    assert_ok(hibloom_save(other, file), all);
    assert_dropped(other, all);
}

static hibloom_status load(struct work *work)
{
    return hibloom_restore(work->filter, file);
}

static void fill_other(struct work *work)
{
    hibloom_close(fill(OTHER, work, fresh, false));
}

static hibloom_status merge(struct work *work)
{
    hibloom *other = NULL;
    hibloom_status status = hibloom_open(&other, work->store, OTHER, NULL);

    if (status == HIBLOOM_OK)
        status = hibloom_merge(work->filter, other);
    hibloom_close(other);
    return status;
}

/* Of an add that was late, and was taken back, zeros may be left. */
static void leave_late_zeros(struct work *work)
{
    test_command(redis, "FLUSHALL");
    test_command(redis, "SETBIT %s 100 0", has_keys(work) ? NAME ":1" : NAME);
}

static hibloom_status create(struct work *work)
{
    return hibloom_open(&work->filter, work->store, NAME, test_text(&work->spec));
}

static void assert_empty(struct work *work)
{
    assert_holds(in, false);
}

static hibloom_status clear(struct work *work)
{
    return hibloom_clear(work->filter);
}

static void make_mortal(struct work *work)
{
    hibloom *filter = test_open(all, NAME, work->variant->spec);

    assert_ok(hibloom_expire(filter, 3600000), all);
    hibloom_close(filter);
}

static hibloom_status drop(struct work *work)
{
    return hibloom_drop(work->filter);
}

static hibloom_status delete_it(struct work *work)
{
    return hibloom_drop_by_name(work->store, NAME);
}

static void assert_gone(struct work *work)
{
    assert_int_equal(test_command(redis, "DBSIZE"), 0);
}

static hibloom_status expire(struct work *work)
{
    return hibloom_expire(work->filter, 3600000);
}

static void assert_mortal(struct work *work)
{
    assert_true(test_command(redis, "PTTL %s", has_keys(work) ? NAME ":0" : NAME) > 0);
}

static hibloom_status expire_never(struct work *work)
{
    return hibloom_expire(work->filter, 0);
}

static void assert_immortal(struct work *work)
{
    assert_int_equal(test_command(redis, "PTTL %s", has_keys(work) ? NAME ":0" : NAME), -1);
}

static void lose_key(struct work *work)
{
    test_command(redis, "DEL " NAME ":1");
}

static hibloom_status repair(struct work *work)
{
    return hibloom_repair(work->store, NAME);
}

static void assert_repaired(struct work *work)
{
    assert_int_equal(test_command(redis, "EXISTS " NAME ":1"), 1);
}

enum { PUTS = ADDS | MERGES | APPLIES, LOOKS = READS | PUTS };
enum {
    BY_NAME = 16, /* or opened by the call itself */
    OF_BITS = 32, /* where a GETRANGE reads them, who makes may, too */
    OF_SEVERAL = 64,
    OF_COUNTERS = 128
};

static const struct job {
    const char *name;
    void (*prepare)(struct work *);
    hibloom_status (*run)(struct work *);
    void (*check)(struct work *);
    int traits; /* and the levels at which it works */
} jobs[] = {
    {"look up", NULL, look_up, NULL, LOOKS | OF_BITS},
    {"look up in a bare bitmap", fill_bare, look_up_bare, NULL, LOOKS | OF_BITS | BY_NAME},
    {"info", NULL, count, NULL, LOOKS | MAKES},
    {"save", NULL, save, NULL, LOOKS | MAKES},
    {"add", NULL, add_one, NULL, PUTS},
    {"add many", NULL, add_many, assert_added, PUTS},
    {"add many, is_new", NULL, add_is_new, assert_added, PUTS},
    {"add to a bare bitmap", fill_bare, add_to_bare, NULL, PUTS | BY_NAME},
    {"remove", NULL, remove_one, NULL, PUTS | OF_COUNTERS},
    {"load", write_file, load, assert_added, MERGES},
    {"merge", fill_other, merge, assert_added, MERGES},
    {"create", leave_late_zeros, create, assert_empty, MAKES | APPLIES | BY_NAME},
    {"clear", NULL, clear, assert_empty, MAKES},
    {"clear, with a time to live", make_mortal, clear, assert_empty, MAKES},
    {"drop", NULL, drop, assert_gone, MAKES},
    {"delete", NULL, delete_it, assert_gone, MAKES | BY_NAME},
    {"expire", NULL, expire, assert_mortal, MAKES},
    {"expire never", make_mortal, expire_never, assert_immortal, MAKES},
    {"repair", lose_key, repair, assert_repaired, MAKES | BY_NAME | OF_SEVERAL},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* ---- A user who may do what a line says ------------------------------------------------ */

static void grant(const char *line)
{
    char command[1024];

    snprintf(command, sizeof command, "ACL SETUSER app reset on >secret %s", line);
    test_command(redis, command);
}

static hibloom_store *connect_user(const char *commands)
{
    char uri[96];

    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d?commands=%s", redis_server_port(server), commands);
    return test_connect(uri, NULL);
}

/* Of a command the server says its name, of one in a script that there is one (the
 * administrator finds it in ACL LOG), and of a key that it is one. */
static void assert_denied(const char *who, const struct job *job, const struct work *work, hibloom_status status)
{
    const char *said = hibloom_store_error(work->store);
    const bool named = strstr(said, "no permissions to run the '") != NULL ||
                       strstr(said, "no permissions to access one of the keys") != NULL ||
                       strstr(said, "No permissions to access a key") != NULL;
    const bool in_script = strstr(said, "The user executing the script can't") != NULL ||
                           strstr(said, "ACL failure in script") != NULL;

    if (status != HIBLOOM_EDENIED || !(named || in_script) || strstr(said, "'" NAME) == NULL ||
        strstr(said, "ask for that permission (ACL SETUSER)") == NULL)
        fail_msg("%s, %s, %s: %s: \"%s\", not denied in words that say what to ask for", who, work->variant->spec,
                 job->name, hibloom_strerror(status), said);
}

/* Whether the user could; if not, it was denied. */
static bool try_job(const char *who, const struct job *job, const struct variant *variant, bool may_harm)
{
    struct work work = {.variant = variant, .spec = test_spec(variant->spec)};

    test_command(redis, "FLUSHALL");
    hibloom_close(fill(NAME, &work, in, false));
    if (job->prepare != NULL)
        job->prepare(&work);
    const long long before = served_digest();
    work.store = connect_user(variant->commands);
    hibloom_status status = HIBLOOM_OK;
    if ((job->traits & BY_NAME) == 0)
        status = hibloom_open(&work.filter, work.store, NAME, NULL);
    if (status == HIBLOOM_OK)
        status = job->run(&work);
    if (status == HIBLOOM_OK && job->check != NULL)
        job->check(&work);
    if (status != HIBLOOM_OK)
        assert_denied(who, job, &work, status);
    if (status != HIBLOOM_OK && !may_harm && served_digest() != before)
        fail_msg("%s, %s, %s: was denied, and has changed something", who, variant->spec, job->name);
    hibloom_close(work.filter);
    hibloom_store_free(work.store);
    return status == HIBLOOM_OK;
}

static bool applies(const struct job *job, const struct variant *variant)
{
    const bool counts = strstr(variant->spec, "counters") != NULL, segments = strstr(variant->spec, "segments") != NULL;
    const bool several = segments || strstr(variant->spec, "partitioned") != NULL;

    return (several || (job->traits & OF_SEVERAL) == 0) &&
           (counts ? job->prepare != fill_bare : (job->traits & OF_COUNTERS) == 0);
}

static bool works(const struct job *job, const struct level *level, const struct variant *variant)
{
    const bool by_getrange = (job->traits & OF_BITS) != 0 && strstr(variant->spec, "blocked") != NULL;

    return (job->traits & level->is) != 0 || (level->is == MAKES && by_getrange) ||
           (level->is == APPLIES && (job->run == clear || job->run == repair)); /* they take the words of "create" */
}

/* ---- The tests ------------------------------------------------------------------------- */

static void each_line_allows_what_it_is_for_and_what_is_above_is_denied(void **state)
{
    for (int l = 0; l < LEVELS; l++) {
        grant(levels[l].line);
        for (int v = 0; v < VARIANTS; v++)
            for (int j = 0; j < JOBS; j++)
                if (applies(&jobs[j], &variants[v]) &&
                    try_job(levels[l].name, &jobs[j], &variants[v], false) != works(&jobs[j], &levels[l], &variants[v]))
                    fail_msg("%s, %s: %s is %s", levels[l].name, variants[v].spec, jobs[j].name,
                             works(&jobs[j], &levels[l], &variants[v]) ? "denied" : "allowed");
    }
}

/* The n-th word of a line, from 0; NULL: there are fewer. `without`: the others. */
static char *split(const char *line, size_t n, char *without)
{
    const char *word = line;

    for (; n > 0 && word != NULL; n--)
        if ((word = *word == '(' ? NULL : strchr(word, ' ')) != NULL)
            word++;
    if (word == NULL)
        return NULL;
    const size_t len = *word == '(' ? strlen(word) : strcspn(word, " "); /* a selector is one word */
    sprintf(without, "%.*s%s", (int)(word - line), line, word[len] == ' ' ? word + len + 1 : "");
    return strndup(word, len);
}

static bool is_missed(const struct level *level, const char *word)
{
    for (int j = JOBS - 1; j >= 0; j--) /* what takes most comes last */
        for (int v = 0; v < VARIANTS; v++)
            if ((jobs[j].traits & level->is) != 0 && applies(&jobs[j], &variants[v]) &&
                !try_job(word, &jobs[j], &variants[v], true))
                return true;
    return false;
}

static void no_word_of_a_line_can_be_left_out(void **state)
{
    for (int l = 0; l < LEVELS; l++) {
        char without[512], *word;
        for (size_t n = 0; (word = split(levels[l].line, n, without)) != NULL; n++) {
            grant(without);
            if (!is_missed(&levels[l], word))
                fail_msg("%s: all works without %s", levels[l].name, word);
            free(word);
        }
    }
}

/* A script names it as if it were written, so its bits are read and sent. */
static void what_may_only_be_read_is_merged(void **state)
{
    struct work work = {.variant = &variants[2], .spec = test_spec(variants[2].spec)};

    test_command(redis, "FLUSHALL");
    hibloom_close(fill(NAME, &work, in, false));
    hibloom_close(fill("next", &work, fresh, false));
    test_command(redis, "ACL SETUSER app reset on >secret " MERGING " %%R~next %%R~next:*");
    work.store = connect_user("setbit");
    work.filter = test_open(work.store, NAME, NULL);
    hibloom *next = test_open(work.store, "next", NULL);
    assert_ok(hibloom_merge(work.filter, next), work.store);
    hibloom_close(next);
    test_close(work.filter, work.store);
    assert_holds(in, true);
    assert_holds(fresh, true);
}

static int set_up(void **state)
{
    const int result = served_set_up(state);

    directory = temp_dir_make();
    file = temp_dir_path(directory, "filter");
    saved = temp_dir_path(directory, "saved");
    all = test_connect(redis_server_uri(server), NULL);
    for (int i = 0; i < 2 * ITEMS; i++) {
        const size_t len = (size_t)snprintf(texts[i], sizeof texts[i], "item-%d", i);
        *(i < ITEMS ? &in[i] : &fresh[i - ITEMS]) = (hibloom_item){texts[i], len};
    }
    return result;
}

static int tear_down(void **state)
{
    hibloom_store_free(all);
    free(file);
    free(saved);
    temp_dir_remove(directory);
    return served_tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_allows_what_it_is_for_and_what_is_above_is_denied),
        cmocka_unit_test(no_word_of_a_line_can_be_left_out),
        cmocka_unit_test(what_may_only_be_read_is_merged),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
