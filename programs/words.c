/* The library's words advise calls of C, such as hibloom_repair. A user of the command cannot call these. So this
 * replaces the advice by options and commands. tests/structure/words.py shows that the library still says each phrase.
 * It also shows that no call of C is left. */
#include "words.h"

#include <string.h>

/* The first one that fits wins. */
static const struct {
    const char *of_library, *of_command;
} phrases[] = {
    {"; hibloom_reopen can make a new one", ""},
    {"; open it with a spec to make one", ""},
    {" If it was lost, attach it again", ""},
    {"attach it again", "run the command again"},
    {"call hibloom_reopen, then add again what you had added", "run the command again"},
    {"call hibloom_reopen", "run the command again"},
    {"but a filter with a spec: open it", "but a filter with a spec: leave out --bare"},
    {", or join it with hibloom_attach", ""},
    {"join it with hibloom_attach (--bare)", "join it with --bare"},
    {"open one with the text of hibloom_file_spec", "restore it under another name"},
    {"; make one like the other with hibloom_open_like", ""},
    {"hibloom_repair", "hibloom repair"},
    {"hibloom_drop; without a handle hibloom_drop_by_name", "hibloom drop"},
    {"open it with a new handle", "run the command again"},
    {"this handle", "this command"},
    {"the file descriptor", "standard output"},
};

const char *words_of_command(char out[WORDS_SIZE], const char *words)
{
    const size_t n = sizeof phrases / sizeof *phrases;
    size_t len = 0, i;

    while (*words != '\0' && len + 1 < WORDS_SIZE) {
        for (i = 0; i < n && strncmp(words, phrases[i].of_library, strlen(phrases[i].of_library)) != 0; i++)
            ;
        if (i == n) {
            out[len++] = *words++;
            continue;
        }
        words += strlen(phrases[i].of_library);
        for (const char *own = phrases[i].of_command; *own != '\0' && len + 1 < WORDS_SIZE;)
            out[len++] = *own++;
    }
    out[len] = '\0';
    return out;
}
