/* tls.c: TLS on a hiredis context. See tls.h. */
#include "net/drivers/tls.h"

bool tls_is_on(const redisContext *context)
{
#if HIREDIS_MAJOR >= 1
    return context->privctx != NULL; /* hiredis_ssl's */
#else
    return false;
#endif
}

#ifdef HIBLOOM_TLS

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* ---- Words ---------------------------------------------------------------------------- */

void tls_forget(void)
{
    ERR_clear_error();
}

const char *tls_words(void)
{
    const unsigned long code = ERR_peek_error(); /* the first: the others follow from it */

    if (ERR_SYSTEM_ERROR(code))
        return strerror(ERR_GET_REASON(code));
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
        return "wrong version number: this port speaks no TLS; the URI begins with redis then, not with rediss";
    return code != 0 ? ERR_reason_error_string(code) : NULL;
}

static hibloom_status fail_file(struct error *error, const char *option, const char *path, const char *words)
{
    return error_set(error, HIBLOOM_EIO, "%s (%s): %s", option, path, words != NULL ? words : "it cannot be used");
}

/* ---- What to trust, and what to show ---------------------------------------------------- */

/* A library does not ask at the terminal. */
static int give_no_password(char *buf, int size, int writes, void *asked)
{
    *(bool *)asked = true;
    return -1;
}

/* OpenSSL looks into it only once it meets a certificate. */
static bool is_directory(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static hibloom_status load_pair(SSL_CTX *context, const char *cert, const char *key, struct error *error)
{
    hibloom_status status = HIBLOOM_OK;
    bool asked = false;

    SSL_CTX_set_default_passwd_cb(context, give_no_password);
    SSL_CTX_set_default_passwd_cb_userdata(context, &asked);
    if (SSL_CTX_use_certificate_chain_file(context, cert) != 1)
        status = fail_file(error, "cert", cert, tls_words());
    else if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        status = fail_file(error, "key", key, asked ? "it has a password: a key without one is needed" : tls_words());
    SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
    return status;
}

static hibloom_status load_files(SSL_CTX *context, const struct store_options *o, struct error *error)
{
    if (o->tls_cacert == NULL && o->tls_cacertdir == NULL && SSL_CTX_set_default_verify_paths(context) != 1)
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    if (o->tls_cacert != NULL && SSL_CTX_load_verify_file(context, o->tls_cacert) != 1)
        return fail_file(error, "cacert", o->tls_cacert, tls_words());
    if (o->tls_cacertdir != NULL && !is_directory(o->tls_cacertdir))
        return fail_file(error, "cacertdir", o->tls_cacertdir, strerror(errno));
    if (o->tls_cacertdir != NULL && SSL_CTX_load_verify_dir(context, o->tls_cacertdir) != 1)
        return fail_file(error, "cacertdir", o->tls_cacertdir, tls_words());
    return o->tls_cert != NULL ? load_pair(context, o->tls_cert, o->tls_key, error) : HIBLOOM_OK;
}

/* No name at all would verify none. SNI is for names only (RFC 6066). */
static bool set_name(SSL *ssl, const char *name)
{
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (name[0] == '\0' || X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1)
        return name[0] != '\0';
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static hibloom_status make(SSL **out, const struct store_settings *s, const char *host, struct error *error)
{
    const char *name = s->options.tls_sni != NULL ? s->options.tls_sni : host;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    if (context == NULL || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        SSL_CTX_free(context);
        return error_set(error, HIBLOOM_ENOMEM, "out of memory");
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);     /* replies say where they end */
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER); /* more is put behind what waits */
    hibloom_status status = load_files(context, &s->options, error);
    *out = status == HIBLOOM_OK ? SSL_new(context) : NULL;
    SSL_CTX_free(context); /* it lives on in what was made of it */
    if (status == HIBLOOM_OK && *out == NULL)
        status = error_set(error, HIBLOOM_ENOMEM, "out of memory");
    if (status == HIBLOOM_OK && !set_name(*out, name))
        status = error_set(error, HIBLOOM_EIO, "\"%s\" is no host name that a certificate could be verified for", name);
    return status;
}

/* ---- The handshake ------------------------------------------------------------------------ */

static hibloom_status fail_handshake(const SSL *ssl, int saved, struct error *error)
{
    const long verified = SSL_get_verify_result(ssl);
    const bool refused = verified != X509_V_OK;
    const char *words = refused ? X509_verify_cert_error_string(verified) : tls_words();

    if (words == NULL)
        words = saved != 0 ? strerror(saved) : "the server closed the connection";
    ERR_clear_error(); /* or the caller's next call of OpenSSL finds it */
    (void)error_set(error, HIBLOOM_EIO, "TLS: %s%s", refused ? "the server's certificate is not accepted: " : "",
                    words);
    error->for_good = refused;
    return HIBLOOM_EIO;
}

hibloom_status tls_begin(redisContext *context, const struct store_settings *s, const char *host, SSL **ssl,
                         struct error *error)
{
    const redisContextFuncs *const funcs = context->funcs;

    ERR_clear_error();
    *ssl = NULL;
    hibloom_status status = make(ssl, s, host, error);
    errno = 0;
    if (status == HIBLOOM_OK && redisInitiateSSL(context, *ssl) != REDIS_OK)
        status = fail_handshake(*ssl, errno, error);
    if (status != HIBLOOM_OK) { /* hiredis has not taken it, but would go on to read by it from an event loop */
        context->funcs = funcs;
        SSL_free(*ssl);
        *ssl = NULL;
        ERR_clear_error();
    }
    return status;
}

hibloom_status tls_step(SSL *ssl, short *events, struct error *error)
{
    ERR_clear_error();
    errno = 0;
    const int result = SSL_do_handshake(ssl), saved = errno;
    *events = 0;
    if (result == 1)
        return HIBLOOM_OK;
    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ: *events = POLLIN; return HIBLOOM_OK;
    case SSL_ERROR_WANT_WRITE: *events = POLLOUT; return HIBLOOM_OK;
    default: return fail_handshake(ssl, saved, error);
    }
}

#else

hibloom_status tls_begin(redisContext *context, const struct store_settings *s, const char *host, struct ssl_st **ssl,
                         struct error *error)
{
    return HIBLOOM_ENOTSUP;
}

hibloom_status tls_step(struct ssl_st *ssl, short *events, struct error *error)
{
    return HIBLOOM_ENOTSUP;
}

void tls_forget(void)
{
}

const char *tls_words(void)
{
    return NULL;
}

#endif
