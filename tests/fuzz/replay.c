/* replay.c: runs a fuzz target on each file of a directory, without libFuzzer: so its corpus is a test with gcc and
 * under valgrind, too. Usage: TARGET DIRECTORY */
#include "fuzz.h"

#include <dirent.h>

static void replay(const char *directory, const char *name)
{
    char path[4096];
    uint8_t *bytes = NULL;
    size_t size = 0, room = 0;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    printf("%s\n", path); /* the last one is the one that failed */
    fflush(stdout);
    FILE *file = fopen(path, "rb");
    REQUIRE(file != NULL);
    do {
        room = 2 * room + 4096;
        bytes = realloc(bytes, room);
        REQUIRE(bytes != NULL);
        size += fread(bytes + size, 1, room - size, file);
    } while (size == room);
    REQUIRE(ferror(file) == 0);
    fclose(file);
    char *exact = fuzz_copy(bytes, size, 0);
    free(bytes);
    REQUIRE(LLVMFuzzerTestOneInput((uint8_t *)exact, size) == 0);
    free(exact);
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    unsigned files = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    const int n = scandir(argv[1], &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            replay(argv[1], entries[i]->d_name);
            files++;
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    printf("%u files\n", files);
    return files > 0 ? 0 : 1;
}
