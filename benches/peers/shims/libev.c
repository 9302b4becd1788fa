#include "peer.h"
#include <ev.h>
#include <stdlib.h>

struct peer {
    struct ev_loop *loop;
    ev_timer *nodes;
    ev_timer ticker;
    peer_tick tick;
    peer_fired fired;
    void *arg;
};

static void on_timer(struct ev_loop *loop, ev_timer *node, int events) {
    struct peer *peer = ev_userdata(loop);
    (void)events;
    if (peer->fired) peer->fired(peer->arg, (size_t)(node - peer->nodes));
}

static void on_tick(struct ev_loop *loop, ev_timer *node, int events) {
    struct peer *peer = ev_userdata(loop);
    (void)node, (void)events;
    if (!peer->tick(peer->arg)) ev_break(loop, EVBREAK_ALL);
}

static void *make(size_t slots, int flags) {
    struct peer *peer = calloc(1, sizeof *peer);
    (void)flags;
    peer->loop = ev_loop_new(EVFLAG_AUTO);
    peer->nodes = calloc(slots, sizeof *peer->nodes);
    ev_set_userdata(peer->loop, peer);
    return peer;
}

static void start(void *of, size_t slot, uint64_t delay_ns) {
    struct peer *peer = of;
    ev_timer_init(&peer->nodes[slot], on_timer, (double)delay_ns * 1e-9, 0.);
    ev_timer_start(peer->loop, &peer->nodes[slot]);
}

static void cancel(void *of, size_t slot) {
    struct peer *peer = of;
    ev_timer_stop(peer->loop, &peer->nodes[slot]);
}

static void push_out(void *of, size_t slot, uint64_t delay_ns) {
    struct peer *peer = of;
    peer->nodes[slot].repeat = (double)delay_ns * 1e-9;
    ev_timer_again(peer->loop, &peer->nodes[slot]);
}

static void turn(void *of) {
    struct peer *peer = of;
    ev_run(peer->loop, EVRUN_NOWAIT);
}

static void inside(void *of, void (*body)(void *arg), void *arg) {
    (void)of;
    body(arg); /* The loop's time is cached outside of callbacks, too. */
}

static void run(void *of, peer_tick tick, peer_fired fired, void *arg) {
    struct peer *peer = of;
    peer->tick = tick, peer->fired = fired, peer->arg = arg;
    if (tick) {
        ev_timer_init(&peer->ticker, on_tick, 0.001, 0.001);
        ev_timer_start(peer->loop, &peer->ticker);
    }
    ev_run(peer->loop, 0);
}

const struct peer_api peer_libev = {make, NULL, start, cancel, push_out, turn, inside, run};
