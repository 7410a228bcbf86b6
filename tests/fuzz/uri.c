/* Fuzz target: a store's URI, with its options. */
#include "fuzz.h"
#include "net/settings.h"

#include <sys/un.h>

#define SHOWN "5ec4e7s"
#define SECRET "_" SHOWN /* begins with what no scheme has in it */

static bool is_given(const char *text)
{
    return text != NULL && *text != '\0';
}

static void require_hosts(const struct uri *uri)
{
    REQUIRE(uri->hosts != NULL && uri->host_count >= 1 && uri->host_count <= URI_HOSTS_MAX);
    REQUIRE(uri->kind != URI_TCP || uri->host_count == 1);
    for (unsigned i = 0; i < uri->host_count; i++)
        REQUIRE(is_given(uri->hosts[i].name) && uri->hosts[i].port >= 1 && uri->hosts[i].port <= UINT16_MAX);
}

static void require_options(const struct store_settings *s)
{
    const struct store_options *o = &s->options;
    const char *const given[] = {o->tls_cacert, o->tls_cacertdir, o->tls_cert, o->tls_key, o->tls_sni};

    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        REQUIRE(given[i] == NULL || ((s->uri.tls || s->uri.kind == URI_MEMORY) && *given[i] != '\0'));
    REQUIRE((o->tls_cert == NULL) == (o->tls_key == NULL));
    REQUIRE(o->user == NULL || o->password != NULL);
    REQUIRE(o->db <= INT32_MAX && (o->db == 0 || s->uri.kind != URI_CLUSTER));
    REQUIRE(o->connect_timeout_ms > 0 && o->connect_timeout_ms < INT32_MAX);
    REQUIRE(o->command_timeout_ms > 0 && o->command_timeout_ms < INT32_MAX);
    REQUIRE(o->min_replicas == 0 || (o->replicas_ms > 0 && o->replicas_ms < o->command_timeout_ms));
    REQUIRE(o->in_flight > 0);
}

static void require_sound(const struct uri *uri)
{
    switch (uri->kind) {
    case URI_MEMORY: REQUIRE(!uri->tls && uri->hosts == NULL && uri->path == NULL); break;
    case URI_UNIX:
        REQUIRE(!uri->tls && uri->path[0] == '/');
        REQUIRE(strlen(uri->path) < sizeof((struct sockaddr_un *)0)->sun_path);
        break;
    case URI_TCP: require_hosts(uri); break;
    case URI_CLUSTER: require_hosts(uri); break;
    case URI_SENTINEL:
        require_hosts(uri);
        REQUIRE(is_given(uri->master));
        break;
    default: fuzz_fail("a kind of uri.h", __FILE__, __LINE__);
    }
    REQUIRE((uri->kind == URI_SENTINEL) == (uri->master != NULL));
    REQUIRE(uri->user == NULL || uri->password != NULL);
}

/* The words repeat nothing but a scheme: neither what stands for a '~' of the
 * text, wherever that is, nor anything that cannot be printed. */
static void require_secret_kept(const char *text)
{
    struct store_settings *settings;
    struct error error = {0};
    const size_t room = strlen(text) * strlen(SECRET) + 1;
    char *planted = malloc(room);
    size_t len = 0;

    REQUIRE(planted != NULL);
    for (; *text != '\0'; text++)
        len += (size_t)snprintf(planted + len, room - len, *text == '~' ? SECRET : "%c", *text);
    planted[len] = '\0';
    if (settings_make(&settings, false, planted, NULL, &error) == HIBLOOM_OK) {
        settings_free(settings);
    } else {
        REQUIRE(strstr(error.words, SHOWN) == NULL);
        for (const char *c = error.words; *c != '\0'; c++)
            REQUIRE(*c >= ' ' && *c <= '~');
    }
    free(planted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size, 1);
    struct store_settings *settings;
    struct error error = {0};
    const hibloom_status status = settings_make(&settings, false, text, NULL, &error);

    if (status == HIBLOOM_OK) {
        require_sound(&settings->uri);
        require_options(settings);
        settings_free(settings);
    } else {
        REQUIRE(status == HIBLOOM_EINVAL || status == HIBLOOM_ERANGE || status == HIBLOOM_ENOTSUP);
        REQUIRE(error.words[0] != '\0');
    }
    if (strstr(text, SHOWN) == NULL) /* a fuzzer finds that out, and makes a scheme of it */
        require_secret_kept(text);
    free(text);
    return 0;
}
