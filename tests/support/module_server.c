/* A server with the module, played by a script. See module_server.h. */
#include "module_server.h"

#include <string.h>

void module_answer(struct module *module, const char *text)
{
    bytes_append(&module->answers[module->count++], text, strlen(text));
}

uint64_t module_answer_piece(struct module *module, const struct module_dump *dump, uint64_t at)
{
    uint64_t next;

    assert_true(module->count < MODULE_ANSWERS);
    module_dump_ask(dump, &module->answers[module->count++], at, &next, true);
    return next;
}

void module_answer_all(struct module *module, const struct module_dump *dump)
{
    for (uint64_t at = module_answer_piece(module, dump, 0); at - 1 < dump->bytes;)
        at = module_answer_piece(module, dump, at);
    (void)module_answer_piece(module, dump, 0);
}

void module_start(struct module *module)
{
    static const struct script_step welcome[] = {SCRIPT_WELCOME};
    struct script_step *step = module->script;

    memcpy(step, welcome, sizeof welcome);
    step += sizeof welcome / sizeof *welcome;
    for (unsigned i = 0; i < module->count; i++) {
        *step++ = (struct script_step)SCRIPT_READ(1);
        *step++ = (struct script_step){SCRIPT_DO_SEND, module->answers[i].data, module->answers[i].len, 0};
    }
    if (module->hangs_up) {
        *step++ = (struct script_step)SCRIPT_READ(1);
        *step++ = (struct script_step)SCRIPT_CLOSE;
    }
    *step = (struct script_step)SCRIPT_END;
    module->server = scripted_server_start(module->script);
    module->store = test_connect(
        with_options(scripted_server_uri(module->server), "%s", module->options != NULL ? module->options : ""),
        module->setup);
}

void module_stop(struct module *module)
{
    hibloom_store_free(module->store);
    scripted_server_stop(module->server);
    for (unsigned i = 0; i < MODULE_ANSWERS; i++)
        bytes_clear(&module->answers[i]);
}
