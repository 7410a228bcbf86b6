/* Files that the tests write and look at. See files.h. */
#include "files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* A new file each time: one that is overwritten ext4 writes to the disk when it is closed. */
void write_file(const char *path, const void *bytes, size_t len)
{
    remove(path);
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static unsigned char *contents_of(const char *file_path, size_t *len)
{
    FILE *file = fopen(file_path, "rb");

    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *len = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*len + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *len, file), *len);
    fclose(file);
    return bytes;
}

void assert_file(const char *path, const void *bytes, size_t len)
{
    size_t found_len;
    unsigned char *found = contents_of(path, &found_len);

    assert_int_equal(found_len, len);
    assert_memory_equal(found, bytes, len);
    free(found);
}

unsigned files_in(const char *directory)
{
    DIR *opened = opendir(directory);
    unsigned count = 0;

    assert_non_null(opened);
    while (readdir(opened) != NULL)
        count++;
    closedir(opened);
    return count - 2; /* . and .. */
}
