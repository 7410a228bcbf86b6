/* Certificates by the openssl command. See certificates.h. */
#include "certificates.h"

#include "temp_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* `openssl ca` is the one command that sets the dates in OpenSSL 3.0 as well
 * as in 3.5. What it says matters only if it fails. */
static const char script[] =
    "set -e; exec >log 2>&1\n"
    "cat >conf <<'END'\n"
    "[req]\n"
    "distinguished_name = name\n"
    "[name]\n"
    "[authority]\n"
    "basicConstraints = critical, CA:TRUE\n"
    "subjectKeyIdentifier = hash\n"
    "keyUsage = critical, keyCertSign, cRLSign\n"
    "[ca]\n"
    "default_ca = files\n"
    "[files]\n"
    "new_certs_dir = issued\n"
    "database = index\n"
    "rand_serial = yes\n"
    "default_md = sha256\n"
    "policy = policy\n"
    "copy_extensions = copy\n"
    "[policy]\n"
    "commonName = supplied\n"
    "END\n"
    "mkdir issued ca-dir; : >index; echo unique_subject = no >index.attr\n"
    "new_key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config conf'\n"
    "authority() {\n" /* NAME */
    "    openssl req -x509 $new_key -extensions authority -days 3650 -subj \"/CN=$1\" -keyout $1.key -out $1.crt\n"
    "}\n"
    "certificate() {\n" /* NAME, AUTHORITY, LAST DAY, WHOM IT IS FOR */
    "    openssl req -new $new_key -subj \"/CN=$1\" -addext subjectAltName=$4 -keyout $1.key -out $1.csr\n"
    "    openssl ca -batch -notext -config conf -cert $2.crt -keyfile $2.key -startdate 20200101000000Z \\\n"
    "        -enddate $3 -in $1.csr -out $1.crt\n"
    "}\n"
    "authority ca; authority unknown-ca\n"
    "cp ca.crt ca-dir/$(openssl x509 -in ca.crt -noout -hash).0\n"
    "here=IP:127.0.0.1,DNS:localhost\n"
    "certificate server ca 20491231235959Z $here\n"
    "certificate wrong-name ca 20491231235959Z DNS:wrong.example\n"
    "certificate expired ca 20210101000000Z $here\n"
    "certificate unknown unknown-ca 20491231235959Z $here\n"
    "certificate client ca 20491231235959Z DNS:client\n";

static void run_script(const char *dir)
{
    const pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        if (chdir(dir) == 0)
            execlp("sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        char *path = temp_dir_path(dir, "log");
        FILE *log = fopen(path, "r");

        fprintf(stderr, "The certificates of the tests cannot be made; openssl:\n");
        for (int byte; log != NULL && (byte = getc(log)) != EOF;)
            putc(byte, stderr);
        exit(EXIT_FAILURE);
    }
}

static struct certificate named(const char *dir, const char *cert, const char *key, const char *ca)
{
    return (struct certificate){temp_dir_path(dir, cert), temp_dir_path(dir, key), temp_dir_path(dir, ca)};
}

struct certificates *certificates_make(void)
{
    struct certificates *made = malloc(sizeof *made);
    char *dir = temp_dir_make();

    if (made == NULL)
        abort();
    run_script(dir);
    *made = (struct certificates){
        .dir = dir,
        .ca = temp_dir_path(dir, "ca.crt"),
        .ca_dir = temp_dir_path(dir, "ca-dir"),
        .unknown_ca = temp_dir_path(dir, "unknown-ca.crt"),
        .server = named(dir, "server.crt", "server.key", "ca.crt"),
        .wrong_name = named(dir, "wrong-name.crt", "wrong-name.key", "ca.crt"),
        .expired = named(dir, "expired.crt", "expired.key", "ca.crt"),
        .unknown = named(dir, "unknown.crt", "unknown.key", "unknown-ca.crt"),
        .client = named(dir, "client.crt", "client.key", "ca.crt"),
    };
    return made;
}

static void forget(struct certificate *certificate)
{
    free(certificate->cert);
    free(certificate->key);
    free(certificate->ca);
}

void certificates_remove(struct certificates *certificates)
{
    if (certificates == NULL)
        return;
    forget(&certificates->server);
    forget(&certificates->wrong_name);
    forget(&certificates->expired);
    forget(&certificates->unknown);
    forget(&certificates->client);
    free(certificates->ca);
    free(certificates->ca_dir);
    free(certificates->unknown_ca);
    temp_dir_remove(certificates->dir);
    free(certificates);
}
