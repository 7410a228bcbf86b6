/* A temporary directory for a socket, a log and what else a server of the tests needs, because a path of its own is
 * what keeps test programs that run side by side apart. */
#ifndef HIBLOOM_TEST_TEMP_DIR_H
#define HIBLOOM_TEST_TEMP_DIR_H

/* Makes one under $TMPDIR, else /tmp; its path, never NULL: the program ends
 * where there is none to be had. What a failed test leaves is removed at exit. */
char *temp_dir_make(void);

/* "dir/file" in memory of its own. */
char *temp_dir_path(const char *dir, const char *file);

/* Removes it with all that is in it, and frees the path; accepts NULL. */
void temp_dir_remove(char *dir);

#endif
