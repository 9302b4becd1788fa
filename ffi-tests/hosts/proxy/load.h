/*
 * The proxy's load: clients of several kinds, and the origin behind the proxy, on one thread.
 *
 * load.c starts the proxy and all else, and judges; client.c is what clients do; origin.c answers
 * requests. Who waits on this thread's loop begins with a `struct ready`. What is to be done later
 * is a timer on the thread's own driven shard.
 */
#ifndef LOAD_H
#define LOAD_H

#include "net.h"

struct ready {
    void (*ready)(struct ready *self, uint32_t events);
};

/* What a client does, and what must become of it: see the table in client.c. */
enum behaviour {
    SILENT, SLOW, HOLE, STALL, QUIET, BUSY, DRIP, BULK, LEAVES_ASKING, LEAVES_READING, RESETS,
    REST,
    BEHAVIOURS
};

struct client {
    struct ready ready;
    enum behaviour behaviour;
    unsigned id;
    int fd;               /* -1: over */
    sw_timer pace;        /* its next step */
    uint64_t asked;       /* the clock just before its last request */
    uint64_t given_at;    /* and just before the origin last sent something for it */
    uint64_t given;       /* bytes that the origin has sent for it */
    uint64_t got;         /* bytes of responses */
    uint64_t waits_since; /* the proxy cannot have begun to wait for it earlier */
    uint64_t heard_at;    /* the clock when it heard the last words */
    unsigned steps;
    bool left;            /* it was done, and has said so */
    bool refused;         /* the proxy closed the connection */
    size_t words_length;
    char words[LINE];     /* the proxy's last ones */
};

struct load {
    sw_service *service;
    int epoll;
    uint64_t timeout_ns;
    uint16_t proxy_port;
    struct client *clients;
    unsigned count, open, connecting;
    unsigned most_open;
    uint64_t slowest; /* how late this thread has been for a step, at the worst */
};

extern struct load load;

extern const char *const behaviour_names[BEHAVIOURS];

void watch(int fd, struct ready *ready, int how, uint32_t events);
/* Notes how late a step is. */
void note_late(const sw_expiry *expiry);

/* Begins to listen for the proxy's connections; answers the port. At most `most` will come. */
uint16_t origin_begin(unsigned most);
void origin_end(void);

void client_begin(unsigned id, enum behaviour behaviour);
/* The last words that it must hear; NULL: none. */
const char *client_expects(enum behaviour behaviour);

#endif
