/* greeting.c: the questions who a server is, and what the answers tell. See greeting.h. */
#include "net/routes/greeting.h"
#include "base/number.h"

#include <string.h>

/* If a step is wanted, it is the next one. */
static bool takes(struct greeting *g, enum greeting_step step, bool wanted)
{
    if (wanted)
        g->step[g->count++] = step;
    return wanted;
}

void greeting_write(struct greeting *g, struct commands *out, const struct store_settings *s, enum node_role role)
{
    const struct store_options *o = &s->options;
    const bool behind_sentinel = s->uri.kind == URI_SENTINEL;

    *g = (struct greeting){.role = role};
    if (takes(g, GREETING_AUTH, o->password != NULL)) {
        command_start(out, o->user != NULL ? 3 : 2, "AUTH");
        if (o->user != NULL)
            command_text(out, o->user);
        command_text(out, o->password);
    }
    if (takes(g, GREETING_SELECT, o->db != 0 && role != NODE_SENTINEL)) {
        command_start(out, 2, "SELECT");
        command_number(out, o->db);
    }
    if (takes(g, GREETING_NAME, o->client_name != NULL)) {
        command_start(out, 3, "CLIENT");
        command_text(out, "SETNAME");
        command_text(out, o->client_name);
    }
    if (takes(g, GREETING_READONLY, role == NODE_REPLICA && !behind_sentinel && o->read_from_replicas))
        command_start(out, 1, "READONLY");
    if (takes(g, GREETING_ROLE, role == NODE_PRIMARY && behind_sentinel))
        command_start(out, 1, "ROLE");
    if (takes(g, GREETING_INFO, true))
        command_start(out, 1, "INFO");
}

void greeting_write_again(struct greeting *g, struct commands *out)
{
    const bool knows_id = g->knows_id || g->run.id[0] != '\0';

    *g = (struct greeting){.step = {GREETING_INFO}, .count = 1, .role = g->role, .again = true, .knows_id = knows_id};
    command_start(out, knows_id ? 2 : 1, "INFO");
    if (knows_id)
        command_text(out, "replication");
}

/* "...\r\nrun_id:0f3e...\r\n..." */
static void read_id(const redisReply *info, const char *name, char id[RUN_ID_SIZE])
{
    const char *at = strstr(info->str, name);
    const size_t len = at != NULL ? strspn(at + strlen(name), "0123456789abcdef") : 0;

    if (len == RUN_ID_SIZE - 1) {
        memcpy(id, at + strlen(name), len);
        id[len] = '\0';
    }
}

static void read_info(struct greeting *g, const redisReply *info)
{
    static const char uptime[] = "\nuptime_in_seconds:";
    const char *found = strstr(info->str, uptime), *digits = found != NULL ? found + sizeof uptime - 1 : "";
    struct server_run *run = &g->run;
    char older[RUN_ID_SIZE] = "";

    read_id(info, "\nrun_id:", run->id);
    read_id(info, "\nmaster_replid:", run->history);
    read_id(info, "\nmaster_replid2:", older);
    run->replica = strstr(info->str, "\nrole:slave") != NULL;
    run->branched = strspn(older, "0") < strlen(older);
    if (number_parse(digits, strspn(digits, "0123456789"), UINT64_MAX, &g->uptime_s) != HIBLOOM_OK)
        g->uptime_s = UINT64_MAX;
}

static bool differ(const char *one, const char *other)
{
    return one[0] != '\0' && other[0] != '\0' && strcmp(one, other) != 0;
}

bool run_is_another(const struct server_run *before, const struct server_run *now)
{
    const bool demoted = now->replica && !before->replica && before->history[0] != '\0';

    return differ(before->id, now->id) || demoted ||
           ((now->replica || now->branched) && differ(before->history, now->history));
}

bool run_is_in_step(const struct server_run *primary, const struct server_run *replica)
{
    return !differ(primary->history, replica->history) && (replica->replica || replica->history[0] == '\0');
}

/* A server that takes over begins a history. */
bool run_goes_on(const struct server_run *before, const struct server_run *now)
{
    return before->history[0] != '\0' && strcmp(before->history, now->history) == 0 && strcmp(before->id, now->id) == 0;
}

void run_note(struct server_run *run, const struct server_run *now)
{
    if (now->id[0] != '\0')
        strcpy(run->id, now->id);
    if (now->history[0] == '\0')
        return;
    strcpy(run->history, now->history);
    run->replica = now->replica;
}

static bool is_master(const redisReply *role)
{
    return role->type == REDIS_REPLY_ARRAY && role->elements > 0 && role->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(role->element[0]->str, "master") == 0;
}

/* Some users must not ask, and proxies are no server themselves: they go without. If a password is missing, the call itself
 * gets that error. But in protected mode the server hangs up behind these words. */
static bool may_be_refused(enum greeting_step step, const char *words)
{
    const bool optional = step == GREETING_NAME || step == GREETING_ROLE || step == GREETING_INFO;

    return optional && strncmp(words, "DENIED ", 7) != 0 && refusal_status(refusal_of(words)) != HIBLOOM_EUNAVAILABLE;
}

hibloom_status greeting_take(struct greeting *g, const struct store_settings *s, uint32_t i, const redisReply *reply,
                             struct error *error)
{
    const enum greeting_step step = g->step[i];

    if (reply->type == REDIS_REPLY_ERROR) {
        if (step == GREETING_AUTH ? g->role == NODE_SENTINEL : may_be_refused(step, reply->str))
            return HIBLOOM_OK;
        return settings_explain(s, reply->str, error);
    }
    if (step == GREETING_INFO && reply->type == REDIS_REPLY_STRING)
        read_info(g, reply);
    if ((step == GREETING_ROLE && !is_master(reply)) ||
        (step == GREETING_INFO && g->role == NODE_PRIMARY && g->run.replica && s->uri.kind == URI_SENTINEL))
        return error_set(error, HIBLOOM_EUNAVAILABLE, "it is no longer a master");
    if (step < GREETING_ROLE && reply->type != REDIS_REPLY_STATUS)
        return error_set(error, HIBLOOM_EPROTO, "the server's answer is not of the kind that was asked for");
    return HIBLOOM_OK;
}
