/* The library's words, as the command says them. See words.c. */
#ifndef HIBLOOM_PROGRAM_WORDS_H
#define HIBLOOM_PROGRAM_WORDS_H

#define WORDS_SIZE 2048

/* Returns out. */
const char *words_of_command(char out[WORDS_SIZE], const char *words);

#endif
