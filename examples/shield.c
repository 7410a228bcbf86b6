/* A filter in front of a database. Most requests are for what does not exist. The filter knows that, and only the other
 * requests become queries.
 *
 *     cc -o shield shield.c $(pkg-config --cflags --libs hibloom sqlite3)
 *     sqlite3 shop.db 'CREATE TABLE goods(id TEXT PRIMARY KEY, name TEXT)'
 *     sqlite3 shop.db 'SELECT id FROM goods' > ids && hibloom load goods -n 1M -p 0.01 --replace < ids
 *     ./shield 'redis://127.0.0.1?connect_timeout=500ms&command_timeout=500ms' goods shop.db < requests
 *
 * A request is a line. To "ID" the answer is its name, or "none"; "ID<TAB>NAME" stores it. The last line says how many
 * queries the filter saved. Three rules keep the answers right:
 *
 *   reading  Only a "no" of the filter counts. Without a filter, or without its answer, the database answers: a shield
 *            that is down costs time, and no answers.
 *   storing  First into the filter, then into the database. So the filter has all that the database has. A process
 *            that dies in between leaves a wrong "maybe", which is harmless.
 *   rebuilding  From the SELECT to the end of the load nobody stores. The new filter would lack that, and say "none". */
#define _POSIX_C_SOURCE 200809L /* for getline. NOLINT: POSIX has the name */
#include <hibloom/hibloom.h>
#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shield {
    hibloom_store *store;
    hibloom *filter; /* NULL: there was none yet */
    const char *name;
    sqlite3_stmt *find, *store_row;
    bool forgot; /* its server may have lost what was stored */
    unsigned long asked, queries;
};

/* Calls it on the filter that is there now: after a rebuild that is another one. */
static hibloom_status on_filter(struct shield *s, const char *id, bool *found)
{
    hibloom_status status = s->filter != NULL ? HIBLOOM_OK : hibloom_open(&s->filter, s->store, s->name, NULL);

    for (int i = 0; status == HIBLOOM_OK; i++) {
        status = found != NULL ? hibloom_contains(s->filter, id, strlen(id), found)
                               : hibloom_add(s->filter, id, strlen(id), NULL);
        if (status < HIBLOOM_ENOTFOUND || i == 2)
            break;
        s->forgot = s->forgot || status == HIBLOOM_ELOST;
        status = hibloom_reopen(s->filter);
    }
    return status;
}

static void warn(const struct shield *s, const char *what, hibloom_status status)
{
    fprintf(stderr, "shield: %s: %s: %s\n", what, hibloom_strerror(status), hibloom_store_error(s->store));
}

static bool find(struct shield *s, const char *id)
{
    bool found = true;
    hibloom_status status = on_filter(s, id, &found);

    if (s->forgot) /* until it is filled again, and this program is started again */
        status = HIBLOOM_ELOST;
    s->asked++;
    if (status != HIBLOOM_OK)
        warn(s, "without the filter", status);
    else if (!found)
        return puts("none") >= 0;
    s->queries++;
    sqlite3_bind_text(s->find, 1, id, -1, SQLITE_STATIC);
    const int step = sqlite3_step(s->find);
    if (step == SQLITE_ROW || step == SQLITE_DONE)
        puts(step == SQLITE_ROW ? (const char *)sqlite3_column_text(s->find, 0) : "none");
    sqlite3_reset(s->find);
    return step == SQLITE_ROW || step == SQLITE_DONE;
}

static bool store(struct shield *s, const char *id, const char *name)
{
    const hibloom_status status = on_filter(s, id, NULL);

    if (status != HIBLOOM_OK && status != HIBLOOM_ENOTFOUND) { /* else the filter would say "no" to it */
        warn(s, "not stored", status);
        return true;
    }
    sqlite3_bind_text(s->store_row, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_text(s->store_row, 2, name, -1, SQLITE_STATIC);
    const int step = sqlite3_step(s->store_row);
    sqlite3_reset(s->store_row);
    return step == SQLITE_DONE;
}

static bool serve(struct shield *s)
{
    char *line = NULL;
    size_t room = 0;
    bool good = true;

    setvbuf(stdout, NULL, _IOLBF, 0); /* somebody waits for the answer */
    while (good && getline(&line, &room, stdin) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        char *tab = strchr(line, '\t');
        if (tab != NULL)
            *tab = '\0';
        good = tab != NULL ? store(s, line, tab + 1) : find(s, line);
    }
    free(line);
    return good;
}

int main(int argc, char **argv)
{
    struct shield s = {.name = argc > 2 ? argv[2] : ""};
    sqlite3 *db = NULL;

    if (argc != 4) {
        fprintf(stderr, "usage: %s URI NAME DATABASE < requests\n", argv[0]);
        return EXIT_FAILURE;
    }
    const hibloom_status status = hibloom_connect(&s.store, argv[1], NULL);
    if (status != HIBLOOM_OK)
        warn(&s, "no connection", status);
    const bool good = status == HIBLOOM_OK && sqlite3_open_v2(argv[3], &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
                      sqlite3_prepare_v2(db, "SELECT name FROM goods WHERE id = ?", -1, &s.find, NULL) == SQLITE_OK &&
                      sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO goods VALUES(?, ?)", -1, &s.store_row, NULL) ==
                          SQLITE_OK &&
                      serve(&s);
    if (!good && db != NULL)
        fprintf(stderr, "shield: %s: %s\n", argv[3], sqlite3_errmsg(db));
    fprintf(stderr, "%lu asked for, %lu queries, %lu saved\n", s.asked, s.queries, s.asked - s.queries);
    sqlite3_finalize(s.find);
    sqlite3_finalize(s.store_row);
    sqlite3_close(db);
    hibloom_close(s.filter);
    hibloom_store_free(s.store);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
