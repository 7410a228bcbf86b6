/* Is this uid one of ours? Looks uids up in the bitmap "uids", which a PHP program fills.
 *
 *     cc -o uids uids.c $(pkg-config --cflags --libs hibloom hiredis)
 *     ./uids HOST PORT UID...
 *
 * It shows how to use a bitmap of another program, on a hiredis connection that the service has already. */
#include <hibloom/hibloom.h>
#include <hiredis/hiredis.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    hibloom_store *store = NULL;
    hibloom *uids = NULL;

    if (argc < 4) {
        fprintf(stderr, "usage: %s HOST PORT UID...\n", argv[0]);
        return EXIT_FAILURE;
    }
    redisContext *context = redisConnect(argv[1], atoi(argv[2])); /* NOLINT(cert-err34-c): to port 0 it fails */
    if (context == NULL || context->err != 0) {
        fprintf(stderr, "%s:%s: %s\n", argv[1], argv[2], context != NULL ? context->errstr : "out of memory");
        redisFree(context);
        return EXIT_FAILURE;
    }
    hibloom_status status = hibloom_borrow(&store, context, NULL);
    if (status == HIBLOOM_OK)
        status = hibloom_attach(&uids, store, "uids", "php-uids");
    for (int i = 3; status == HIBLOOM_OK && i < argc; i++) {
        bool found;
        status = hibloom_contains(uids, argv[i], strlen(argv[i]), &found);
        if (status == HIBLOOM_OK)
            printf("%s: %s\n", argv[i], found ? "probably one of ours" : "not one of ours");
    }
    if (status != HIBLOOM_OK)
        fprintf(stderr, "uids: %s: %s\n", hibloom_strerror(status), hibloom_store_error(store));
    hibloom_close(uids);
    hibloom_store_free(store);
    redisFree(context);
    return status == HIBLOOM_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
