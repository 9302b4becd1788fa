/*
 * The origin: answers each request as its word says. "get": at once; "drip": a byte at a time;
 * "stall": all but the last byte.
 *
 * What it sends, and when, it notes with the client: when that has arrived there, the proxy's idle
 * or keep-alive time-out cannot have begun earlier.
 */
#define _GNU_SOURCE

#include "load.h"

#include <sys/epoll.h>

struct visit {
    struct ready ready;
    int fd;
    struct client *client;
    uint64_t left;
    sw_timer drip;
};

static struct visit *visits;
static unsigned visited, most_visits;
static struct ready door;
static int listener;

static void leave(struct visit *visit)
{
    /* There may be none, or none any more. */
    sw_timer_cancel(load.service, visit->drip);
    close(visit->fd);
    visit->fd = -1;
}

/* Sends at most so much; answers whether the peer takes more. */
static bool give(struct visit *visit, uint64_t most)
{
    static char text[65536];
    memset(text, 'x', sizeof text);
    size_t length = most < sizeof text ? (size_t)most : sizeof text;
    visit->client->given_at = now_ns();
    ssize_t sent = send(visit->fd, text, length, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    visit->left -= (uint64_t)sent;
    visit->client->given += (uint64_t)sent;
    return true;
}

static void drip(void *ctx, const sw_expiry *expiry)
{
    struct visit *visit = ctx;
    note_late(expiry);
    give(visit, 1);
    if (visit->left == 0) sw_timer_cancel(load.service, visit->drip);
}

static void begin(struct visit *visit, char *line)
{
    char word[LINE];
    unsigned long long bytes;
    unsigned id;
    CHECK(sscanf(line, "%47s %llu %u", word, &bytes, &id) == 3);
    CHECK(id < load.count);
    visit->client = &load.clients[id];
    visit->left = bytes;
    if (strcmp(word, "drip") == 0) {
        OK(sw_timer_start_every(load.service, load.timeout_ns / 5, drip, visit, &visit->drip));
        return;
    }
    if (strcmp(word, "stall") == 0) visit->left -= 1;
    watch(visit->fd, &visit->ready, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
}

static void visit_ready(struct ready *self, uint32_t events)
{
    struct visit *visit = (struct visit *)self;
    if (visit->fd < 0) return;
    if ((events & ~(uint32_t)EPOLLOUT) != 0) {
        char line[LINE];
        ssize_t got = recv(visit->fd, line, sizeof line - 1, 0);
        if (got <= 0) {
            leave(visit);
            return;
        }
        line[got] = '\0';
        begin(visit, line);
        return;
    }
    while (visit->left > 0 && give(visit, visit->left)) continue;
    if (visit->left == 0) watch(visit->fd, &visit->ready, EPOLL_CTL_MOD, EPOLLIN);
}

static void door_ready(struct ready *self, uint32_t events)
{
    (void)self;
    (void)events;
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            CHECK(errno == EAGAIN || errno == ECONNABORTED);
            return;
        }
        CHECK(visited < most_visits);
        struct visit *visit = &visits[visited++];
        visit->ready.ready = visit_ready;
        visit->fd = fd;
        watch(fd, &visit->ready, EPOLL_CTL_ADD, EPOLLIN);
    }
}

uint16_t origin_begin(unsigned most)
{
    uint16_t port = 0;
    visits = calloc(most, sizeof *visits);
    CHECK(visits != NULL);
    most_visits = most;
    listener = listen_at(&port, BACKLOG);
    door.ready = door_ready;
    watch(listener, &door, EPOLL_CTL_ADD, EPOLLIN);
    return port;
}

void origin_end(void)
{
    for (unsigned i = 0; i < visited; i++) {
        if (visits[i].fd >= 0) leave(&visits[i]);
    }
    close(listener);
    free(visits);
}
