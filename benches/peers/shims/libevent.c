#include "peer.h"
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <stdlib.h>

struct peer {
    struct event_base *base;
    struct event *nodes;
    struct event ticker;
    peer_tick tick;
    peer_fired fired;
    void *arg;
    void (*body)(void *arg);
    int is_inside;
};

/* The loop that `run` runs; there is one in a process. */
static struct peer *running;

static struct timeval after(uint64_t delay_ns) {
    uint64_t us = (delay_ns + 999) / 1000; /* libevent counts microseconds. */
    struct timeval delay = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
    return delay;
}

static void on_timer(evutil_socket_t fd, short what, void *node) {
    (void)fd, (void)what;
    if (running && running->fired) {
        running->fired(running->arg, (size_t)((struct event *)node - running->nodes));
    }
}

static void on_tick(evutil_socket_t fd, short what, void *of) {
    struct peer *peer = of;
    (void)fd, (void)what;
    if (!peer->tick(peer->arg)) event_base_loopbreak(peer->base);
}

static void on_inside(evutil_socket_t fd, short what, void *of) {
    struct peer *peer = of;
    (void)fd, (void)what;
    peer->is_inside = 1;
    peer->body(peer->arg);
    peer->is_inside = 0;
    event_base_loopbreak(peer->base);
}

static void *on_base(struct event_base *base, size_t slots) {
    struct peer *peer = calloc(1, sizeof *peer);
    peer->base = base;
    peer->nodes = calloc(slots, sizeof *peer->nodes);
    return peer;
}

static void *make(size_t slots, int flags) {
    struct event_config *config;
    struct event_base *base;
    if (flags & PEER_THREADS) evthread_use_pthreads();
    config = event_config_new();
    if (flags & PEER_PRECISE) event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    base = event_base_new_with_config(config);
    event_config_free(config);
    return on_base(base, slots);
}

static void *share(void *of, size_t slots) {
    return on_base(((struct peer *)of)->base, slots);
}

static void start(void *of, size_t slot, uint64_t delay_ns) {
    struct peer *peer = of;
    struct timeval delay = after(delay_ns);
    evtimer_assign(&peer->nodes[slot], peer->base, on_timer, &peer->nodes[slot]);
    event_add(&peer->nodes[slot], &delay);
}

static void cancel(void *of, size_t slot) {
    event_del(&((struct peer *)of)->nodes[slot]);
}

static void push_out(void *of, size_t slot, uint64_t delay_ns) {
    struct timeval delay = after(delay_ns);
    event_add(&((struct peer *)of)->nodes[slot], &delay);
}

static void turn(void *of) {
    struct peer *peer = of;
    if (peer->is_inside) {
        event_base_update_cache_time(peer->base); /* A loop cannot run inside itself. */
    } else {
        event_base_loop(peer->base, EVLOOP_NONBLOCK);
    }
}

static void inside(void *of, void (*body)(void *arg), void *arg) {
    struct peer *peer = of;
    struct timeval now = {0, 0};
    peer->body = body, peer->arg = arg;
    evtimer_assign(&peer->ticker, peer->base, on_inside, peer);
    event_add(&peer->ticker, &now);
    event_base_dispatch(peer->base);
}

static void run(void *of, peer_tick tick, peer_fired fired, void *arg) {
    struct peer *peer = of;
    struct timeval ms = {0, 1000};
    peer->tick = tick, peer->fired = fired, peer->arg = arg;
    running = peer;
    if (tick) {
        event_assign(&peer->ticker, peer->base, -1, EV_PERSIST, on_tick, peer);
        event_add(&peer->ticker, &ms);
    }
    event_base_loop(peer->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

const struct peer_api peer_libevent = {make, share, start, cancel, push_out, turn, inside, run};
