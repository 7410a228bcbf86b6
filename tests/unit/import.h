/* What the tests of imports from files share: a file, a store in memory, and what it is to be refused. */
#ifndef HIBLOOM_TEST_UNIT_IMPORT_H
#define HIBLOOM_TEST_UNIT_IMPORT_H

#include "support/files.h"
#include "support/module_dump.h"
#include "support/temp_dir.h"

#include <stdlib.h>
#include <string.h>

static hibloom_store *store;
static char *dir, *path;

static inline int set_up(void **state)
{
    assert_ok(hibloom_connect(&store, "memory:", NULL), NULL);
    dir = temp_dir_make();
    path = temp_dir_path(dir, "dump");
    return 0;
}

static inline int tear_down(void **state)
{
    hibloom_store_free(store);
    free(path);
    temp_dir_remove(dir);
    return 0;
}

static inline bool count_name(const char *name, void *count)
{
    (void)name;
    ++*(unsigned *)count;
    return true;
}

static inline unsigned filters_there(void)
{
    unsigned count = 0;

    assert_ok(hibloom_list(store, NULL, count_name, &count), store);
    return count;
}

/* The file is refused, in words that name it, and leaves no filter under any name. */
static inline void assert_refused(hibloom_status expected, const char *words)
{
    const unsigned before = filters_there();
    hibloom *filter = NULL;

    assert_status(hibloom_import_file(&filter, store, "refused", path), expected, store);
    assert_null(filter);
    if (strstr(hibloom_store_error(store), words) == NULL || strstr(hibloom_store_error(store), path) == NULL)
        fail_msg("\"%s\" has not \"%s\"", hibloom_store_error(store), words);
    assert_int_equal(filters_there(), before);
}

/* A number in a dump's header, and what is said of it. */
struct altered {
    unsigned at;
    uint64_t value;
    unsigned bytes;
    hibloom_status status;
    const char *words;
};

/* Dumps that `make` makes are refused, each with one number altered. */
static inline void assert_altered_refused(const struct altered *altered, size_t n, void make(struct module_dump *dump))
{
    for (size_t i = 0; i < n; i++) {
        struct module_dump dump;

        make(&dump);
        module_dump_set(&dump, altered[i].at, altered[i].value, altered[i].bytes);
        module_dump_write(&dump, path);
        assert_refused(altered[i].status, altered[i].words);
        module_dump_free(&dump);
    }
}

/* Nor is any part of its file, nor a longer one. */
static inline void assert_refused_cut_or_longer(const struct module_dump *dump)
{
    struct bytes bytes = {0};

    module_dump_print(dump, &bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        write_file(path, bytes.data, len);
        assert_refused(HIBLOOM_ECORRUPT, "");
    }
    bytes_append(&bytes, "\n", 1);
    write_file(path, bytes.data, bytes.len);
    assert_refused(HIBLOOM_ECORRUPT, "goes on");
    bytes_clear(&bytes);
}

#endif
