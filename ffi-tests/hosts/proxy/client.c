/*
 * What clients do, step by step, and what they hear. T is the proxy's time-out.
 *
 *     silent          asks nothing                             ends by the request time-out
 *     slow            asks, a byte each T/6, for longer than T ends by the request time-out
 *     hole            asks for an origin that never accepts    ends by the connect time-out
 *     stall           gets all but the last byte               ends by the idle time-out
 *     quiet           gets a response, asks no more            ends by the keep-alive time-out
 *     busy            asks six times, each T/4 after a response, and leaves
 *     drip            gets eight bytes, one each T/5, and leaves
 *     bulk            gets much and reads it in parts, each T/5, and leaves
 *     leaves-asking   leaves in the middle of its request, after T/2
 *     leaves-reading  leaves in the middle of a response, after T/2
 *     resets          resets the connection in the middle of its request, at once
 *     rest            is silent, and there when the proxy is told to stop
 *
 * Those that leave must hear of no time-out, though they stay longer than T.
 */
#define _GNU_SOURCE

#include "load.h"

#include <sys/epoll.h>

enum { REQUESTS = 6, PARTS = 6 };

static const uint64_t PART = 2 << 20;

const char *const behaviour_names[BEHAVIOURS] = {
    "silent", "slow", "hole", "stall", "quiet", "busy",
    "drip", "bulk", "leaves-asking", "leaves-reading", "resets", "rest",
};

const char *client_expects(enum behaviour behaviour)
{
    switch (behaviour) {
    case SILENT:
    case SLOW: return "!request\n";
    case HOLE: return "!connect\n";
    case STALL: return "!idle\n";
    case QUIET: return "!keep-alive\n";
    default: return NULL;
    }
}

static void step(void *ctx, const sw_expiry *expiry);

static void after(struct client *client, uint64_t delay_ns)
{
    OK(sw_timer_start(load.service, delay_ns, step, client, &client->pace));
}

static void every(struct client *client, uint64_t period_ns)
{
    OK(sw_timer_start_every(load.service, period_ns, step, client, &client->pace));
}

static void over(struct client *client)
{
    /* There may be none, or none any more. */
    sw_timer_cancel(load.service, client->pace);
    close(client->fd);
    client->fd = -1;
    load.open -= 1;
}

/* Says that it is done, and listens until the proxy has closed, too: so it does not miss the last
 * words of a time-out that was faster. */
static void leave(struct client *client)
{
    sw_timer_cancel(load.service, client->pace);
    client->left = true;
    CHECK(shutdown(client->fd, SHUT_WR) == 0 || errno == ENOTCONN);
}

/* Text for the proxy, who may have closed the connection; that is heard elsewhere. */
static void say(struct client *client, const char *text, size_t length)
{
    ssize_t sent = send(client->fd, text, length, MSG_NOSIGNAL);
    CHECK(sent == (ssize_t)length || errno == EPIPE || errno == ECONNRESET);
}

static void ask(struct client *client, const char *word, unsigned long long bytes)
{
    char line[LINE];
    int length = snprintf(line, sizeof line, "%s %llu %u\n", word, bytes, client->id);
    client->asked = now_ns();
    say(client, line, (size_t)length);
}

static void hear(struct client *client, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (client->words_length > 0 || text[i] == '!') {
            if (client->words_length == 0) client->heard_at = now_ns();
            CHECK(client->words_length < LINE - 1);
            client->words[client->words_length++] = text[i];
        } else {
            CHECK(text[i] == 'x');
            client->got += 1;
        }
    }
    /* All that the origin gave has gone through the proxy, which moved its time-out for the last
     * of it. */
    if (client->got > 0 && client->got == client->given && client->words_length == 0)
        client->waits_since = client->given_at;
}

static void response_goes_on(struct client *client)
{
    if (client->behaviour == BUSY && client->got == client->steps) {
        if (client->steps == REQUESTS)
            leave(client);
        else
            after(client, load.timeout_ns / 4);
    } else if (client->behaviour == DRIP && client->got == 8) {
        leave(client);
    } else if (client->behaviour == BULK && client->got == PARTS * PART) {
        leave(client);
    } else if (client->behaviour == BULK && client->got >= client->steps * PART) {
        watch(client->fd, &client->ready, EPOLL_CTL_MOD, 0); /* until the next step */
    }
}

static void listen_to(struct client *client)
{
    char text[65536];
    ssize_t got = recv(client->fd, text, sizeof text, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0) {
        hear(client, text, (size_t)got);
        if (!client->left) response_goes_on(client);
    } else {
        client->refused = true;
        over(client);
    }
}

/* Is gone without waiting for anything, if the proxy has not been faster. */
static void reset(struct client *client)
{
    const struct linger none = {1, 0};
    listen_to(client);
    if (client->fd < 0 || client->words_length > 0) return;
    CHECK(setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none) == 0);
    client->left = true;
    over(client);
}

static void connected(struct client *client)
{
    uint64_t timeout = load.timeout_ns;
    load.connecting -= 1;
    watch(client->fd, &client->ready, EPOLL_CTL_MOD, EPOLLIN);
    switch (client->behaviour) {
    case SLOW: every(client, timeout / 6); break;
    case HOLE: ask(client, "hole", 1); break;
    case STALL: ask(client, "stall", 5); break;
    case QUIET: ask(client, "get", 5); break;
    case BUSY: after(client, 0); break;
    case DRIP: ask(client, "drip", 8); break;
    case BULK:
        keep_short(client->fd, SO_RCVBUF);
        ask(client, "get", PARTS * PART);
        watch(client->fd, &client->ready, EPOLL_CTL_MOD, 0);
        every(client, timeout / 5);
        break;
    case LEAVES_ASKING:
        say(client, "ge", 2);
        after(client, timeout / 2);
        break;
    case LEAVES_READING:
        ask(client, "drip", 1000);
        after(client, timeout / 2);
        break;
    case RESETS:
        say(client, "ge", 2);
        reset(client);
        break;
    default: break;
    }
}

static void step(void *ctx, const sw_expiry *expiry)
{
    struct client *client = ctx;
    note_late(expiry);
    client->steps += 1;
    switch (client->behaviour) {
    case SLOW: say(client, "g", 1); break;
    case BUSY: ask(client, "get", 1); break;
    case BULK: watch(client->fd, &client->ready, EPOLL_CTL_MOD, EPOLLIN); break;
    default: leave(client); break;
    }
}

static void client_ready(struct ready *self, uint32_t events)
{
    struct client *client = (struct client *)self;
    if (client->fd < 0) return;
    if ((events & EPOLLOUT) != 0) {
        int error = 0;
        socklen_t length = sizeof error;
        CHECK(getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0);
        EQUAL((unsigned)error, 0);
        connected(client);
    } else {
        listen_to(client);
    }
}

void client_begin(unsigned id, enum behaviour behaviour)
{
    struct client *client = &load.clients[id];
    client->ready.ready = client_ready;
    client->behaviour = behaviour;
    client->id = id;
    client->waits_since = now_ns();
    client->fd = connect_to(1 + id % 8, load.proxy_port);
    CHECK(client->fd >= 0);
    load.open += 1;
    if (load.open > load.most_open) load.most_open = load.open;
    load.connecting += 1;
    watch(client->fd, &client->ready, EPOLL_CTL_ADD, EPOLLOUT);
}
