/* A server with RedisBloom's module, played by a script: it lets a client in, and answers what then comes with
 * what it was given. */
#ifndef HIBLOOM_TEST_MODULE_SERVER_H
#define HIBLOOM_TEST_MODULE_SERVER_H

#include "module_dump.h"
#include "scripted_server.h"

enum { MODULE_ANSWERS = 8 };

struct module {
    struct bytes answers[MODULE_ANSWERS];
    unsigned count;
    struct script_step script[2 * MODULE_ANSWERS + 6];
    bool hangs_up;       /* behind them */
    const char *options; /* behind the URI; NULL: none */
    const hibloom_setup *setup;
    struct scripted_server *server;
    hibloom_store *store;
};

void module_answer(struct module *, const char *text);
uint64_t module_answer_piece(struct module *, const struct module_dump *, uint64_t at);

/* All that is asked for a dump. */
void module_answer_all(struct module *, const struct module_dump *);

void module_start(struct module *);
void module_stop(struct module *);

#endif
