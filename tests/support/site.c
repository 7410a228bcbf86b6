/* A web site on loopback, for a crawler. See site.h. */
#include "site.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

struct visit {
    struct site *site;
    int fd;
};

static void give_up(const char *what)
{
    perror(what);
    exit(99);
}

static void put(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

static void answer(int fd, const char *status, const char *header, const char *body)
{
    char all[8192];
    const int n = snprintf(all, sizeof all, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n\r\n%s", status, strlen(body),
                           header, body);

    if (n < 0 || (size_t)n >= sizeof all)
        give_up("an answer is too long");
    put(fd, all, (size_t)n);
}

/* A link to page i, in one of the ways to write it. */
static int write_link(const struct site *site, char *out, size_t size, int i, int way)
{
    switch (way % 8) {
    case 0: return snprintf(out, size, "<a href=\"/p/%d\">x</a>", i);
    case 1: return snprintf(out, size, "<a href='%d'>x</a>", i); /* pages are beside each other */
    case 2: return snprintf(out, size, "<A HREF=http://127.0.0.1:%d/p/%d>x</A>", site->port, i);
    case 3: return snprintf(out, size, "<a href=\"../p/./%d#part\">x<a>", i);
    case 4: return snprintf(out, size, "<a title=t href=\"/r/%d\">x</a>", i);
    case 5: return snprintf(out, size, "<p><div><a href=\"//127.0.0.1:%d/q/../p/%d\">x", site->port, i);
    case 6: return snprintf(out, size, "<a href=\"HTTP://127.0.0.1:%d/p/%d#\">x</a>", site->port, i);
    default: return snprintf(out, size, "<a href=\" /p/%d \">x</a>", i);
    }
}

/* Each page is the child of two others, so that one that is missed hides no part of the site. */
static void send_page(const struct site *site, int fd, int i)
{
    const int links[] = {2 * i + 1,
                         2 * i + 2,
                         (2 * i + 1 + site->pages / 2) % site->pages,
                         i * 7919 + 13,
                         i / 2,
                         (2 * i + 2 + site->pages / 3) % site->pages,
                         i,
                         i * 104729 + 5};
    char body[4096] = "<html><body><a>none</a><a href=\"mailto:a@b\">m</a><a href='javascript:x()'>j</a>"
                      "<a href=http://other.example.org/p/1>o</a><a href='http://[bad'>b</a>";
    size_t len = strlen(body);

    for (size_t k = 0; k < sizeof links / sizeof *links; k++)
        len += (size_t)write_link(site, body + len, sizeof body - len,
                                  (int)((unsigned)links[k] % (unsigned)site->pages), i + (int)k);
    if (i < 10)
        snprintf(body + len, sizeof body - len,
                 "<a href=/trap/0>t</a><a href=/loop/a>l</a><a href=/endless>e</a><a href=/image>i</a>");
    answer(fd, "200 OK", "Content-Type: text/html; charset=utf-8", body);
}

static void send_endless(int fd)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<a href=/p/1>x</a>";
    char bytes[65536];

    put(fd, head, sizeof head - 1);
    memset(bytes, ' ', sizeof bytes);
    while (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        continue;
}

/* Answers a path; false: the connection ends with it. */
static bool serve(struct site *site, int fd, const char *path)
{
    char text[128];
    int i;

    if (sscanf(path, "/p/%d", &i) == 1 && i >= 0 && i < site->pages) {
        site->page[i]++;
        site->fetched++;
        send_page(site, fd, i);
    } else if (sscanf(path, "/r/%d", &i) == 1 && i >= 0 && i < site->pages) {
        site->redirect[i]++;
        snprintf(text, sizeof text, "Location: ../p/%d", i);
        answer(fd, "302 Found", text, "");
    } else if (sscanf(path, "/trap/%d", &i) == 1 && i >= 0 && i < SITE_TRAPS_MAX) {
        site->trap[i]++;
        snprintf(text, sizeof text, "<a href=%d>on</a>", i + 1);
        answer(fd, "200 OK", "Content-Type: text/html", text);
    } else if (strcmp(path, "/loop/a") == 0 || strcmp(path, "/loop/b") == 0) {
        site->loop[path[6] - 'a']++;
        answer(fd, "301 Moved Permanently", path[6] == 'a' ? "Location: /loop/b" : "Location: /loop/a", "");
    } else if (strcmp(path, "/endless") == 0) {
        site->endless++;
        send_endless(fd);
        return false;
    } else if (strcmp(path, "/image") == 0) {
        site->image++;
        answer(fd, "200 OK", "Content-Type: image/png", "<a href=/unknown>no link</a>");
    } else {
        site->unknown++;
        answer(fd, "404 Not Found", "Content-Type: text/html", "");
    }
    return true;
}

static void *visit(void *data)
{
    struct visit own = *(struct visit *)data;
    char request[4096], path[1024];
    size_t len = 0;
    ssize_t n;

    free(data);
    while ((n = recv(own.fd, request + len, sizeof request - 1 - len, 0)) > 0) {
        len += (size_t)n;
        request[len] = '\0';
        if (strstr(request, "\r\n\r\n") == NULL)
            continue;
        len = 0; /* nobody sends the next one before this is answered */
        if (sscanf(request, "GET %1023s HTTP/1.1", path) != 1 || !serve(own.site, own.fd, path))
            break;
    }
    close(own.fd);
    return NULL;
}

static void *listen_on(void *data)
{
    struct site *site = data;
    pthread_t thread;

    for (int fd; (fd = accept(site->listener, NULL, NULL)) >= 0;) {
        struct visit *own = malloc(sizeof *own);
        if (own == NULL)
            give_up("malloc");
        *own = (struct visit){site, fd};
        site->connections++;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (pthread_create(&thread, NULL, visit, own) != 0)
            give_up("pthread_create");
        pthread_detach(thread);
    }
    return NULL;
}

struct site *site_start(int pages)
{
    struct site *site = calloc(1, sizeof *site);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    pthread_t thread;

    if (site == NULL)
        give_up("calloc");
    site->pages = pages;
    site->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (site->listener < 0 || bind(site->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(site->listener, 64) != 0 || getsockname(site->listener, (struct sockaddr *)&address, &len) != 0)
        give_up("site");
    site->port = ntohs(address.sin_port);
    if (pthread_create(&thread, NULL, listen_on, site) != 0)
        give_up("pthread_create");
    pthread_detach(thread);
    return site;
}
