/* Certificates for the tests of TLS, made by the openssl command: good ones, and those that a client must refuse. They
 * are made anew for each program, as one kept with the tests would expire. Keys are EC, which are made at once. */
#ifndef HIBLOOM_TEST_CERTIFICATES_H
#define HIBLOOM_TEST_CERTIFICATES_H

/* Paths of PEM files. */
struct certificate {
    char *cert, *key;
    char *ca; /* whose signature it has */
};

struct certificates {
    char *dir;    /* where all of them are */
    char *ca;     /* the authority that all but `unknown` are signed by */
    char *ca_dir; /* a directory with it, named by its hash, as cacertdir wants it */
    char *unknown_ca;
    struct certificate server;     /* for 127.0.0.1 and localhost */
    struct certificate wrong_name; /* for wrong.example only */
    struct certificate expired;    /* as `server`; over since 2021 */
    struct certificate unknown;    /* as `server`; signed by unknown_ca */
    struct certificate client;     /* for a client to show */
};

/* Makes them all in a temporary directory; ends the program where openssl fails. */
struct certificates *certificates_make(void);

/* Removes and frees them; accepts NULL. Not before the servers that use them are stopped. */
void certificates_remove(struct certificates *certificates);

#endif
