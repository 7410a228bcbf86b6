/* The URLs of the test data. See urls.h. */
#include "urls.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4 << 20, LINES = 100000 };

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *const *urls_all(size_t *n)
{
    static char text[BYTES], *urls[LINES];
    static size_t distinct;

    if (distinct == 0) {
        FILE *file = fopen("tests/data/homepages.txt", "r");
        char *rest = text;
        size_t lines = 0;
        assert_non_null(file);
        assert_true(fread(text, 1, sizeof text - 1, file) < sizeof text - 1);
        fclose(file);
        while (rest != NULL && *rest != '\0') {
            assert_true(lines < LINES);
            urls[lines++] = strsep(&rest, "\n");
        }
        qsort(urls, lines, sizeof *urls, compare);
        for (size_t i = 0; i < lines; i++)
            if (i == 0 || strcmp(urls[i], urls[distinct - 1]) != 0)
                urls[distinct++] = urls[i];
    }
    *n = distinct;
    return (const char *const *)urls;
}
