/* save, restore, merge, copy, import and compare: whole filters, in files and on other
 * servers. */
#include "aside.h"
#include "input.h"
#include "output.h"
#include "report.h"
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files -------------------------------------------------------------------- */

static bool write_whole(int fd, const char *bytes, size_t len)
{
    ssize_t put;

    for (; len > 0; len -= put > 0 ? (size_t)put : 0, bytes += put > 0 ? put : 0) {
        put = write(fd, bytes, len);
        if (put < 0 && errno != EINTR)
            return false;
    }
    return true;
}

static bool is_stream(const struct request *r)
{
    return strcmp(r->operands[1], "-") == 0;
}

int cmd_save(const struct request *r)
{
    struct session s;
    int result;

    if (is_stream(r) && isatty(STDOUT_FILENO)) {
        complain("save: standard output is a terminal; redirect it, or give a FILE");
        return EXIT_TROUBLE;
    }
    if (!session_open(&s, r))
        return EXIT_TROUBLE;
    result = session_result(&s, is_stream(r) ? hibloom_save_fd(s.filter, STDOUT_FILENO)
                                             : hibloom_save(s.filter, r->operands[1]));
    session_close(&s);
    return result;
}

/* A file is read twice, and a stream only once. So it is kept in a file without a name, in $TMPDIR, which becomes
 * standard input. False after a complaint. */
static bool keep_stream(void)
{
    const char *dir = getenv("TMPDIR");
    char path[4096], *bytes = NULL;
    ssize_t got = -1;

    snprintf(path, sizeof path, "%s/hibloom-XXXXXX", dir != NULL && dir[0] != '\0' ? dir : "/tmp");
    const int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0 && unlink(path) == 0 && (bytes = malloc(INPUT_READ_MAX)) != NULL)
        while ((got = input_read(bytes, INPUT_READ_MAX)) > 0 && write_whole(file, bytes, (size_t)got))
            ;
    const bool kept = got == 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO;
    if (!kept)
        complain("restore: standard input could not be kept in a file: %s", strerror(errno));
    free(bytes);
    if (file >= 0)
        close(file);
    return kept;
}

enum file_kind { FILE_OF_HIBLOOM, FILE_EMPTY, FILE_OF_REDIS, FILE_MAY_BE_DUMP, FILE_OTHER };

/* By its first bytes. A pipe is not opened again: that would wait for a writer. */
static enum file_kind kind_of_file(const char *path)
{
    static const char saved[] = INPUT_SAVED_FILE, redis[] = "REDIS0", digits[] = "0123456789";
    char bytes[32] = "";
    struct stat st;
    FILE *file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rbe") : NULL;
    const size_t len = file != NULL ? fread(bytes, 1, sizeof bytes - 1, file) : 0;

    if (file != NULL)
        fclose(file);
    if (len >= sizeof saved - 1 && memcmp(bytes, saved, sizeof saved - 1) == 0)
        return FILE_OF_HIBLOOM;
    if (len >= sizeof redis - 1 && memcmp(bytes, redis, sizeof redis - 1) == 0)
        return FILE_OF_REDIS;
    if (strspn(bytes, digits) > 0 && bytes[strspn(bytes, digits)] == '\n')
        return FILE_MAY_BE_DUMP;
    return len == 0 ? FILE_EMPTY : FILE_OTHER;
}

/* No file of hibloom save. Files of other kinds have another way in. */
static void refuse_file(const char *path)
{
    const enum file_kind kind = kind_of_file(path);

    complain("%s: is not a hibloom file: %s", path,
             kind == FILE_EMPTY ? "it is empty" : "hibloom save did not write it");
    if (kind == FILE_OF_REDIS)
        complain(
            "hint: it is a dump of a whole Redis server: start one with it, and hibloom copy takes filters from that");
    else if (kind == FILE_MAY_BE_DUMP)
        complain("hint: if it is what redis-cli prints of BF.SCANDUMP: hibloom import NAME --redisbloom-file %s", path);
}

/* hibloom_file_spec has no words, but leaves errno: EINVAL where it is no regular file. */
static bool read_spec(char spec[SPEC_SIZE], const char *path)
{
    const hibloom_status status = hibloom_file_spec(path, spec, SPEC_SIZE);

    if (status == HIBLOOM_EIO)
        complain("%s: %s", path, errno == EINVAL ? "is not a regular file, and is read twice" : strerror(errno));
    else if (status == HIBLOOM_ECORRUPT && kind_of_file(path) == FILE_OF_HIBLOOM)
        complain("%s: is a damaged hibloom file: it was cut short or altered", path);
    else if (status == HIBLOOM_ECORRUPT)
        refuse_file(path);
    else if (status == HIBLOOM_ENOTSUP)
        complain("%s: a newer hibloom wrote it", path);
    else if (status != HIBLOOM_OK)
        complain("%s: %s", path, hibloom_strerror(status));
    return status == HIBLOOM_OK;
}

/* Says so if two filters that do not match differ in their seeds only. */
static void hint_at_seeds(const char *name, const char *spec, const char *other, const char *other_spec)
{
    if (spec_differs_in_seed_only(spec, other_spec))
        complain("hint: '%s' and '%s' have different seeds: the same item sets other bits in each. A filter made with "
                 "hibloom copy has the seed of its original.",
                 name, other);
}

/* The same for a filter that could not be opened with the other's spec. False: it is none. */
static bool hint_at_stored_seed(const struct session *s, const char *other, const char *other_spec)
{
    hibloom *filter = NULL;

    if (hibloom_open(&filter, s->store, s->name, NULL) == HIBLOOM_OK)
        hint_at_seeds(s->name, hibloom_spec_of(filter), other, other_spec);
    const bool is_filter = filter != NULL;
    hibloom_close(filter);
    return is_filter;
}

static bool refuse_window(const char *name, const hibloom *filter, const char *words)
{
    const bool is_window = spec_value(hibloom_spec_of(filter), "window") != NULL;

    if (is_window)
        complain("%s: a sliding window is not %s", name, words);
    return is_window;
}

/* The same for one that could not be opened with another's spec. */
static bool refuse_stored_window(const struct session *s, hibloom_status status, const char *words)
{
    hibloom *filter = NULL;
    const bool refused = status == HIBLOOM_EMISMATCH && hibloom_open(&filter, s->store, s->name, NULL) == HIBLOOM_OK &&
                         refuse_window(s->name, filter, words);

    hibloom_close(filter);
    return refused;
}

/* What the command has made and could not fill is removed: it would say "no" to items that are elsewhere. */
static void remove_unfilled(const struct session *s)
{
    if (s->filter != NULL && hibloom_created(s->filter) && hibloom_drop(s->filter) != HIBLOOM_OK)
        complain("%s: may be incomplete: drop it before you do this again", s->name);
}

/* A filter draws a seed, so it never fits a bitmap that was attached without one. */
static bool refuse_unseeded(const struct request *r, const char *path, const char *spec)
{
    const bool refused = (r->given & OPTION_BARE) == 0 && spec_wants_seed(spec);

    if (refused)
        complain("%s: has the bits of a bare bitmap without a seed: restore it with --bare -s SPEC", path);
    return refused;
}

/* With --replace: a filter of the file's bits alone takes the place of the present one. */
static int restore_aside(struct session *s, const struct request *r, const char *path, const char *spec)
{
    char aside[ASIDE_SIZE];
    hibloom_status status;

    if (aside_refuses(r, spec) || !aside_name(s->name, aside))
        return EXIT_TROUBLE;
    status = aside_open(s, aside, spec);
    if (status == HIBLOOM_OK)
        status = hibloom_restore(s->filter, path);
    return aside_end(s, aside, status);
}

/* A filter that is missing is created with the spec of the file. For a bare
 * bitmap the user gives the spec, as always. */
static int restore(struct session *s, const struct request *r, const char *path, const struct request *as_saved)
{
    const bool bare = (r->given & OPTION_BARE) != 0;
    hibloom_status status = session_open_filter(s, bare ? r : as_saved);

    if (status == HIBLOOM_OK)
        status = hibloom_restore(s->filter, path);
    else if (refuse_stored_window(s, status, "restored, since a file has no clock"))
        return EXIT_TROUBLE;
    if (session_result(s, status) == EXIT_TROUBLE && status == HIBLOOM_EMISMATCH && !bare &&
        hint_at_stored_seed(s, r->operands[1], as_saved->spec))
        complain("hint: restore it under another name; or, to have in %s what the file has and nothing else, hibloom "
                 "restore %s %s --replace",
                 s->name, s->name, r->operands[1]);
    if (status == HIBLOOM_OK)
        return EXIT_YES;
    remove_unfilled(s);
    return EXIT_TROUBLE;
}

int cmd_restore(const struct request *r)
{
    const char *path = is_stream(r) ? "/dev/stdin" : r->operands[1];
    struct request as_saved = *r;
    struct session s;
    int result;

    if ((is_stream(r) && !keep_stream()) || !read_spec(as_saved.spec, path) ||
        refuse_unseeded(r, path, as_saved.spec) || !session_connect(&s, r))
        return EXIT_TROUBLE;
    as_saved.has_spec = true;
    result = session_finish(&s, (r->given & OPTION_REPLACE) != 0 ? restore_aside(&s, r, path, as_saved.spec)
                                                                 : restore(&s, r, path, &as_saved));
    session_close(&s);
    return result;
}

/* ---- Another filter ------------------------------------------------------------ */

/* A session without a filter yet. It is on the other server if the request names one, else on
 * the store of `s`. */
static bool connect_other(struct session *other, const struct session *s, const struct request *r, const char *name)
{
    *other = (struct session){.store = s->store, .in_redis = s->in_redis, .bare = s->bare};
    other->restarts = s->restarts;
    if (r->other_uri != NULL && !session_connect_to(other, r->other_uri, r))
        return false;
    other->name = name;
    return true;
}

static void close_other(struct session *other, const struct session *s)
{
    if (other->store == s->store) {
        hibloom_close(other->filter);
        other->filter = NULL;
    } else {
        session_close(other);
    }
}

/* ---- merge ----------------------------------------------------------------------- */

#define NOT_MERGED "merged, since no other filter shares its clock"

/* Opens all of them before any is merged, so that a wrong name or spec changes
 * nothing. */
static int open_all(hibloom **filters, struct session *there, char **names, size_t n)
{
    int result = EXIT_YES;

    for (size_t i = 0; i < n && result == EXIT_YES; i++) {
        there->name = names[i];
        result = session_result(there, hibloom_open(&filters[i], there->store, names[i], NULL));
        if (result == EXIT_YES && refuse_window(names[i], filters[i], NOT_MERGED))
            result = EXIT_TROUBLE;
        if (result == EXIT_YES && strcmp(hibloom_secret_spec_of(filters[0]), hibloom_secret_spec_of(filters[i])) != 0) {
            complain("%s: %s: its spec or its seed differs from that of '%s'", names[i],
                     hibloom_strerror(HIBLOOM_EMISMATCH), names[0]);
            hint_at_seeds(names[0], hibloom_spec_of(filters[0]), names[i], hibloom_spec_of(filters[i]));
            result = EXIT_TROUBLE;
        }
    }
    return result;
}

static int merge_into(struct session *into, hibloom *const *from, const char *first, size_t n)
{
    hibloom_status status = hibloom_open_like(&into->filter, into->store, into->name, from[0]);

    if (refuse_stored_window(into, status, NOT_MERGED))
        return EXIT_TROUBLE;
    if (session_result(into, status) == EXIT_TROUBLE) {
        if (status == HIBLOOM_EMISMATCH) {
            complain("hint: the text is the spec of '%s': %s", first, hibloom_spec_of(from[0]));
            hint_at_stored_seed(into, first, hibloom_spec_of(from[0]));
        }
        return EXIT_TROUBLE;
    }
    for (size_t i = 0; i < n && status == HIBLOOM_OK; i++)
        status = hibloom_merge(into->filter, from[i]);
    if (session_result(into, status) == EXIT_YES)
        return EXIT_YES;
    remove_unfilled(into);
    return EXIT_TROUBLE;
}

static int merge_all(struct session *into, struct session *there, char **names, size_t n)
{
    hibloom **from = calloc(n, sizeof *from);
    int result;

    if (from == NULL) {
        complain("%s", strerror(ENOMEM));
        return EXIT_TROUBLE;
    }
    result = open_all(from, there, names, n);
    if (result == EXIT_YES)
        result = merge_into(into, from, names[0], n);
    for (size_t i = 0; i < n; i++)
        hibloom_close(from[i]);
    free(from);
    return result;
}

int cmd_merge(const struct request *r)
{
    struct session into, there;
    int result = EXIT_TROUBLE;

    if (!session_connect(&into, r))
        return EXIT_TROUBLE;
    if (connect_other(&there, &into, r, r->operands[1])) {
        result = merge_all(&into, &there, r->operands + 1, r->n_operands - 1);
        result = session_finish(&there, session_finish(&into, result));
        close_other(&there, &into);
    }
    session_close(&into);
    return result;
}

/* ---- copy ------------------------------------------------------------------------ */

static int create_copy(struct session *to, const hibloom *from)
{
    hibloom_status status = hibloom_open(&to->filter, to->store, to->name, NULL);

    if (status == HIBLOOM_OK) {
        complain("%s: is there already; hibloom merge adds the items of one filter to another", to->name);
        return EXIT_TROUBLE;
    }
    if (status == HIBLOOM_ENOTFOUND)
        status = hibloom_open_like(&to->filter, to->store, to->name, from);
    return session_result(to, status);
}

static int fill_copy(struct session *to, const struct session *from)
{
    const int merged = session_result(to, hibloom_merge(to->filter, from->filter));
    const int result = session_finish(from, session_finish(to, merged));

    if (result != EXIT_YES)
        remove_unfilled(to);
    return result;
}

int cmd_copy(const struct request *r)
{
    struct session from, to;
    int result = EXIT_TROUBLE;

    if (!session_open(&from, r))
        return EXIT_TROUBLE;
    if (connect_other(&to, &from, r, r->operands[1])) {
        result = create_copy(&to, from.filter);
        if (result == EXIT_YES)
            result = fill_copy(&to, &from);
        close_other(&to, &from);
    }
    session_close(&from);
    return result;
}

/* ---- import ---------------------------------------------------------------------- */

static int import_key(struct session *into, const struct request *r, const char *name)
{
    struct session from;
    int result = EXIT_TROUBLE;

    if (connect_other(&from, into, r, r->source)) {
        result = session_result(into, hibloom_import(&into->filter, into->store, name, from.store, r->source));
        close_other(&from, into);
    }
    return result;
}

static int import_file(struct session *into, const struct request *r, const char *name)
{
    const hibloom_status status = hibloom_import_file(&into->filter, into->store, name, r->source);
    const int result = session_result(into, status);

    if (status == HIBLOOM_ECORRUPT && kind_of_file(r->source) == FILE_OF_HIBLOOM)
        complain("hint: hibloom save wrote it: hibloom restore %s %s", into->name, r->source);
    return result;
}

int cmd_import(const struct request *r)
{
    const bool by_key = (r->given & OPTION_REDISBLOOM) != 0, by_file = (r->given & OPTION_REDISBLOOM_FILE) != 0;
    const bool replaces = (r->given & OPTION_REPLACE) != 0;
    char aside[ASIDE_SIZE];
    struct session s;
    int result;

    if (by_key == by_file || (by_file && r->other_uri != NULL)) {
        complain("import: give --redisbloom KEY, and --from URI if it is on another server; or --redisbloom-file FILE");
        return EXIT_TROUBLE;
    }
    if ((replaces && !aside_name(r->operands[0], aside)) || !session_connect(&s, r))
        return EXIT_TROUBLE;
    result = (by_key ? import_key : import_file)(&s, r, replaces ? aside : s.name);
    if (replaces && result == EXIT_YES) /* a whole filter has no time to live, until now */
        result = aside_end(&s, aside, aside_set_time(&s));
    result = session_finish(&s, result);
    session_close(&s);
    return result;
}

/* ---- compare --------------------------------------------------------------------- */

static void put_comparison(const hibloom_comparison *c, bool json)
{
    struct report r = {.json = json};

    report_items(&r, "union_items", c->union_items, "infinite");
    report_items(&r, "intersection_items", c->intersection_items, "unknown");
    if (isnan(c->similarity))
        report_null(&r, "similarity", "unknown");
    else
        report_real(&r, "similarity", c->similarity);
    report_end(&r);
}

int cmd_compare(const struct request *r)
{
    struct session a, b;
    hibloom_comparison comparison;
    int result;

    if (!session_open(&a, r))
        return EXIT_TROUBLE;
    b = (struct session){.name = r->operands[1], .store = a.store, .in_redis = a.in_redis, .bare = a.bare};
    result = session_result(&b, hibloom_open(&b.filter, b.store, b.name, NULL));
    if (result == EXIT_YES) {
        const hibloom_status status = hibloom_compare(a.filter, b.filter, &comparison, sizeof comparison);
        result = session_result(&a, status);
        if (status == HIBLOOM_OK)
            put_comparison(&comparison, (r->given & OPTION_JSON) != 0);
        else if (status == HIBLOOM_EMISMATCH)
            hint_at_seeds(a.name, hibloom_spec_of(a.filter), b.name, hibloom_spec_of(b.filter));
    }
    hibloom_close(b.filter);
    session_close(&a);
    return result;
}
