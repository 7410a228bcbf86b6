/* script.c: EVAL of the simulated server, on LuaJIT: `redis`, what goes in and out, and errors as servers word them.
 *
 * One Lua state serves all nodes of the process, so a script must leave nothing in it: globals are closed, and
 * math.random is taken out. Each text is compiled once. Garbage is collected when there is much of it. */
#include "sim/commands.h"

#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <lualib.h>
#include <stdlib.h>

enum { GARBAGE_KB = 512 };

static struct node *node; /* of the script that runs */
static struct session inner;

/* An error is a table with "CODE words". */
/* clang-format off */
static const char prelude[] =
    "local number = tonumber\n" /* in Redis it ends at a zero byte */
    "function tonumber(text, ...)\n"
    "  local value = number(text, ...)\n"
    "  if value == nil and type(text) == 'string' then value = number(text:match('^%Z*'), ...) end\n"
    "  return value\n"
    "end\n"
    "function redis.error_reply(text)\n"
    "  return {err = text}\n"
    "end\n"
    "function redis.replicate_commands() return true end\n"
    "math.random, math.randomseed, dofile, loadfile, print, newproxy, pcall = nil\n"
    "setmetatable(_G, {\n"
    "  __index = function(_, name)\n"
    "    error(\"Script attempted to access nonexistent global variable '\" .. tostring(name) .. \"'\", 2)\n"
    "  end,\n"
    "  __newindex = function() error('Attempt to modify a readonly table', 2) end\n"
    "})\n";
/* clang-format on */

/* ---- Errors ----------------------------------------------------------------------------------- */

static int push_error(lua_State *lua, const char *text)
{
    const bool coded = text[0] == '-';

    lua_createtable(lua, 0, 3);
    lua_pushstring(lua, coded && strchr(text, ' ') != NULL ? "" : "ERR ");
    lua_pushlstring(lua, text + coded, strcspn(text, "\r\n") - coded);
    lua_concat(lua, 2);
    lua_setfield(lua, -2, "err");
    return 1;
}

/* ---- redis.call ------------------------------------------------------------------------------- */

/* The arguments on the stack, which stay there. Versions write fractions differently, so there are none. */
static const struct blob *read_arguments(lua_State *lua, size_t count)
{
    static struct blob *argv;
    static char(*numbers)[NUMBER_LEN];
    static size_t room;

    if (count > room) {
        room = count * 2;
        argv = resized(argv, room * sizeof *argv);
        numbers = resized(numbers, room * sizeof *numbers);
    }
    for (size_t i = 0; i < count; i++) {
        const int at = (int)i + 1, type = lua_type(lua, at);
        const double number = type == LUA_TNUMBER ? lua_tonumber(lua, at) : 0; /* which takes texts, too */
        must(type == LUA_TSTRING || (type == LUA_TNUMBER && number == (double)(long long)number));
        if (type == LUA_TNUMBER)
            argv[i] = write_int(numbers[i] + NUMBER_LEN, (long long)number);
        else
            argv[i].bytes = lua_tolstring(lua, at, &argv[i].len);
    }
    return argv;
}

/* Pushes the value at `at`, and returns what is behind it. */
static const char *push_reply(lua_State *lua, const char *at)
{
    const char type = *at, *end = strchr(at, '\r');
    const long long number = type == '+' || type == '-' ? 0 : strtoll(at + 1, NULL, 10);

    luaL_checkstack(lua, 4, "a reply");
    if (type == ':') {
        lua_pushnumber(lua, (double)number);
    } else if (type == '-') {
        push_error(lua, at);
    } else if (type == '+') {
        lua_createtable(lua, 0, 1);
        lua_pushlstring(lua, at + 1, (size_t)(end - at - 1));
        lua_setfield(lua, -2, "ok");
    } else if (number < 0) {
        lua_pushboolean(lua, 0);
    } else if (type == '$') {
        lua_pushlstring(lua, end + 2, (size_t)number);
        return end + 2 + number + 2;
    } else { /* '*' */
        lua_createtable(lua, (int)number, 0);
        for (int i = 1; i <= number; i++) {
            end = push_reply(lua, end + 2) - 2;
            lua_rawseti(lua, -2, i);
        }
    }
    return end + 2;
}

/* redis.call, and redis.pcall, which does not throw. */
static int call(lua_State *lua)
{
    const bool throws = lua_toboolean(lua, lua_upvalueindex(1));
    static struct buffer reply;
    const size_t argc = (size_t)lua_gettop(lua);
    const struct blob *argv = read_arguments(lua, argc);

    reply.len = 0;
    const char *error = node_call(node, &inner, argc, argv, &reply);
    if (error != NULL) {
        push_error(lua, error);
        return throws ? lua_error(lua) : 1;
    }
    buffer_put(&reply, "", 1);
    lua_settop(lua, 0);
    push_reply(lua, reply.bytes);
    return throws && reply.bytes[0] == '-' ? lua_error(lua) : 1;
}

/* ---- The rest of `redis` that is not in Lua --------------------------------------------------- */

static int acl_check_cmd(lua_State *lua)
{
    const size_t argc = (size_t)lua_gettop(lua);

    lua_pushboolean(lua, node_may(node, argc, read_arguments(lua, argc)));
    return 1;
}

static lua_State *new_state(void)
{
    static const lua_CFunction libraries[] = {luaopen_base, luaopen_table, luaopen_string, luaopen_math, luaopen_bit};
    static const luaL_Reg functions[] = {{"acl_check_cmd", acl_check_cmd}, {NULL, NULL}};
    lua_State *lua = luaL_newstate();

    for (size_t i = 0; lua != NULL && i < sizeof libraries / sizeof *libraries; i++) {
        lua_pushcfunction(lua, libraries[i]);
        lua_call(lua, 0, 0);
    }
    if (lua == NULL)
        abort();
    luaL_register(lua, "redis", functions);
    for (int throws = 0; throws < 2; throws++) {
        lua_pushboolean(lua, throws);
        lua_pushcclosure(lua, call, 1);
        lua_setfield(lua, -2, throws ? "call" : "pcall");
    }
    if (luaL_loadbuffer(lua, prelude, sizeof prelude - 1, "@prelude") != 0 || lua_pcall(lua, 0, 0, 0) != 0) {
        fprintf(stderr, "%s\n", lua_tostring(lua, -1));
        abort();
    }
    lua_settop(lua, 0);
    lua_gc(lua, LUA_GCSTOP, 0);
    return lua;
}

/* ---- The reply -------------------------------------------------------------------------------- */

/* Of the table on the top of the stack: {err=}, {ok=}. */
static bool put_marked(struct run *run, lua_State *lua, const char *field, char type)
{
    lua_pushstring(lua, field);
    lua_rawget(lua, -2);
    const char *text = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
    lua_pop(lua, 1);
    return text != NULL && put_line(run, type, text);
}

/* Takes the value on the top of the stack. */
static void put_lua(struct run *run, lua_State *lua)
{
    const int type = lua_type(lua, -1);
    const double number = lua_tonumber(lua, -1);
    struct blob text;

    if (type == LUA_TSTRING) {
        text.bytes = lua_tolstring(lua, -1, &text.len);
        put_bulk(run, text);
    } else if (type == LUA_TNUMBER) {
        put_int(run, number >= -0x1p63 && number < 0x1p63 ? (long long)number : LLONG_MIN);
    } else {
        must(type == LUA_TTABLE && (put_marked(run, lua, "err", '-') || put_marked(run, lua, "ok", '+')));
    }
    lua_pop(lua, 1);
}

/* Takes the error on the top of the stack. Its words end as Redis has them, but the script and the line are left open:
 * LuaJIT does not know the line behind a tail call. */
static void put_failure(struct run *run, lua_State *lua)
{
    const char *const code = lua_istable(lua, -1) ? "" : "ERR ";

    if (lua_istable(lua, -1))
        lua_getfield(lua, -1, "err");
    put_line(run, '-', lua_pushfstring(lua, "%s%s script: 0, on @user_script:0.", code, lua_tostring(lua, -1)));
}

/* ---- EVAL ------------------------------------------------------------------------------------- */

/* Pushes the function, which is kept under its text; false: it cannot be compiled, and that was answered. */
static bool push_script(struct run *run, lua_State *lua, struct blob text)
{
    lua_pushlstring(lua, text.bytes, text.len);
    lua_pushvalue(lua, -1);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    if (!lua_isnil(lua, -1))
        return true;
    if (luaL_loadbuffer(lua, text.bytes, text.len, "@user_script") != 0)
        return fail(run, "Error compiling script (new function): %s", lua_tostring(lua, -1));
    lua_pushvalue(lua, -3);
    lua_pushvalue(lua, -2);
    lua_rawset(lua, LUA_REGISTRYINDEX);
    return true;
}

static void set_array(lua_State *lua, const char *name, const struct blob *values, size_t count)
{
    lua_pushstring(lua, name);
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(lua, values[i].bytes, values[i].len);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_rawset(lua, LUA_GLOBALSINDEX);
}

bool run_eval(struct run *run)
{
    static lua_State *lua;
    const size_t keys = (size_t)int_at(run, 2);

    must(keys <= run->argc - 3);
    lua = lua != NULL ? lua : new_state();
    if (push_script(run, lua, run->argv[1])) {
        node = run->node;
        node->in_script = true;
        node->wrote = false;
        inner = *run->session;
        set_array(lua, "KEYS", run->argv + 3, keys);
        set_array(lua, "ARGV", run->argv + 3 + keys, run->argc - 3 - keys);
        if (lua_pcall(lua, 0, 1, 0) != 0)
            put_failure(run, lua);
        else
            put_lua(run, lua);
        node->in_script = false;
    }
    lua_settop(lua, 0);
    if (lua_gc(lua, LUA_GCCOUNT, 0) > GARBAGE_KB) {
        lua_gc(lua, LUA_GCCOLLECT, 0);
        lua_gc(lua, LUA_GCSTOP, 0); /* a collection starts it again */
    }
    return true;
}
