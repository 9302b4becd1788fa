/*
 * A TCP proxy with four time-outs for each connection, on one driven shard for each worker.
 *
 * proxy.c has the workers, their loops and the end; session.c what happens to one connection.
 *
 * Ground rules: a session belongs to the worker that accepted it, and so do its timers: they are
 * started on the worker's own shard, pushed out and cancelled by the worker, and fire inside its
 * `sw_shard_poll`. So nothing of a session is locked. Two things are read by others, at the end:
 * `timer` and `used`. A stale handle does no harm, and sessions stay where they are as long as
 * the proxy runs.
 */
#ifndef PROXY_H
#define PROXY_H

#include "net.h"

#include <pthread.h>
#include <stdatomic.h>

enum kind { REQUEST, CONNECT, IDLE, KEEP_ALIVE, KINDS };

enum { CHUNK = 65536 };

extern const char *const kind_names[KINDS];

/* The timers of one kind: each that is started fires, or is cancelled by its worker or another. */
struct account {
    uint64_t started;
    uint64_t pushed;
    uint64_t fired;
    uint64_t cancelled;
    uint64_t unsaid; /* fired, but the client did not take the last words */
};

struct session {
    struct worker *worker;
    struct session *next; /* among the free, or those closed in this turn of the loop */
    _Atomic sw_timer timer;
    bool armed;
    enum kind kind; /* what it waits for, which is what its timer is for */
    int client;     /* -1: closed */
    int origin;     /* -1: not connected */
    uint64_t since; /* the clock just before the timer was started or pushed out */
    uint64_t left;  /* bytes of the response that are to come */
    char *held;     /* what the client does not take yet; NULL: nothing */
    size_t held_from, held_to;
    size_t line_length;
    char line[LINE];
};

struct worker {
    sw_service *service;
    uint32_t shard;
    uint64_t timeout_ns;
    uint16_t origin_port, hole_port;
    struct worker *neighbour;
    pthread_t thread;
    int epoll, listener, shard_fd, wake;
    struct session *sessions;
    size_t slots;
    _Atomic size_t used; /* slots that have ever been used */
    struct session *vacant, *closed;

    struct account accounts[KINDS];
    uint64_t accepted;
    uint64_t timed_out, gone, failed, shut_down; /* how sessions ended */
    uint64_t withdrawn;                          /* timers of the neighbour's, cancelled here */
    uint64_t early, stray;                       /* must be 0 */
    uint64_t held;                               /* how often a client did not take all */
    char buffer[CHUNK];
};

/* Set when the proxy is to end; from then on a timer may have been withdrawn by another worker. */
extern atomic_bool stopping;

void session_begin(struct worker *worker, int client);
void session_client_ready(struct session *session, uint32_t events);
void session_origin_ready(struct session *session, uint32_t events);
/* Closes it; `count` is the way it ended. */
void session_end(struct session *session, uint64_t *count);

#endif
