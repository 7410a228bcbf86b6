/* save, restore, merge, copy and compare: whole filters, between servers and
 * files. */
#include "output.h"
#include "report.h"
#include "session.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Files -------------------------------------------------------------------- */

int cmd_save(const struct request *r)
{
    struct session s;
    int result;

    if (!session_open(&s, r))
        return EXIT_TROUBLE;
    result = session_result(&s, hibloom_save(s.filter, r->operands[1]));
    session_close(&s);
    return result;
}

/* hibloom_spec_load has no words, but leaves errno. */
static bool load_spec(hibloom_spec *out, const char *path)
{
    const hibloom_status status = hibloom_spec_load(out, path);

    if (status != HIBLOOM_OK)
        complain("%s: %s", path, status == HIBLOOM_EIO ? strerror(errno) : hibloom_strerror(status));
    return status == HIBLOOM_OK;
}

/* A filter that is missing is made as the one in the file was; of a bare bitmap
 * the spec is said, as ever. */
int cmd_restore(const struct request *r)
{
    struct request as_saved = *r;
    struct session s;
    int result;

    if ((r->given & OPTION_BARE) == 0) {
        as_saved.has_spec = load_spec(&as_saved.spec, r->operands[1]);
        if (!as_saved.has_spec)
            return EXIT_TROUBLE;
    }
    if (!session_open(&s, &as_saved))
        return EXIT_TROUBLE;
    result = session_result(&s, hibloom_load(s.filter, r->operands[1]));
    session_close(&s);
    return result;
}

/* ---- Another filter ------------------------------------------------------------ */

/* A session without a filter yet: on the other server if the request names
 * one, else on the store of `s`. */
static bool connect_other(struct session *other, const struct session *s, const struct request *r, const char *name)
{
    hibloom_store *store = s->store;

    *other = (struct session){ .name = name, .store = store };
    if (r->other_uri == NULL)
        return true;
    if (session_result(other, hibloom_connect(&other->store, r->other_uri, &r->options)) == EXIT_YES)
        return true;
    session_close(other);
    return false;
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

/* All of them before any is merged: so a name that is wrong changes nothing. */
static int open_all(hibloom **filters, struct session *there, char **names, size_t n)
{
    int result = EXIT_YES;

    for (size_t i = 0; i < n && result == EXIT_YES; i++) {
        there->name = names[i];
        result = session_result(there, hibloom_open(&filters[i], there->store, names[i], NULL));
    }
    return result;
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
        result = session_result(into, hibloom_open(&into->filter, into->store, into->name, hibloom_spec_of(from[0])));
    for (size_t i = 0; i < n && result == EXIT_YES; i++)
        result = session_result(into, hibloom_merge(into->filter, from[i]));
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
        close_other(&there, &into);
    }
    session_close(&into);
    return result;
}

/* ---- copy ------------------------------------------------------------------------ */

static int create_copy(struct session *to, const hibloom_spec *spec)
{
    hibloom_status status = hibloom_open(&to->filter, to->store, to->name, NULL);

    if (status == HIBLOOM_OK) {
        complain("%s: is there already; merge would make a union of the two", to->name);
        return EXIT_TROUBLE;
    }
    if (status == HIBLOOM_ENOTFOUND)
        status = hibloom_open(&to->filter, to->store, to->name, spec);
    return session_result(to, status);
}

/* A part of a copy would say no to what the whole one has; so it does not stay. */
static int fill_copy(struct session *to, hibloom *from)
{
    const int result = session_result(to, hibloom_merge(to->filter, from));

    if (result != EXIT_YES && hibloom_drop(to->filter) != HIBLOOM_OK)
        complain("%s: may be there in part: drop it before you copy again", to->name);
    return result;
}

int cmd_copy(const struct request *r)
{
    struct session from, to;
    int result = EXIT_TROUBLE;

    if (!session_open(&from, r))
        return EXIT_TROUBLE;
    if (connect_other(&to, &from, r, r->operands[1])) {
        result = create_copy(&to, hibloom_spec_of(from.filter));
        if (result == EXIT_YES)
            result = fill_copy(&to, from.filter);
        close_other(&to, &from);
    }
    session_close(&from);
    return result;
}

/* ---- compare --------------------------------------------------------------------- */

static void put_comparison(const hibloom_comparison *c, bool json)
{
    struct report r = { .json = json };

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
    b = (struct session){ .name = r->operands[1], .store = a.store };
    result = session_result(&b, hibloom_open(&b.filter, b.store, b.name, NULL));
    if (result == EXIT_YES)
        result = session_result(&a, hibloom_compare(a.filter, b.filter, &comparison));
    if (result == EXIT_YES)
        put_comparison(&comparison, (r->given & OPTION_JSON) != 0);
    hibloom_close(b.filter);
    session_close(&a);
    return result;
}
