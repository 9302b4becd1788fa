#include "peer.h"
#include <stdlib.h>
#include <uv.h>

struct peer {
    uv_loop_t loop;
    uv_timer_t *nodes;
    uv_timer_t ticker;
    peer_tick tick;
    peer_fired fired;
    void *arg;
};

static uint64_t after(uint64_t delay_ns) {
    return (delay_ns + 999999) / 1000000; /* libuv counts milliseconds. */
}

static void on_timer(uv_timer_t *node) {
    struct peer *peer = (struct peer *)node->loop->data;
    if (peer->fired) peer->fired(peer->arg, (size_t)(node - peer->nodes));
}

static void on_tick(uv_timer_t *node) {
    struct peer *peer = (struct peer *)node->loop->data;
    if (!peer->tick(peer->arg)) uv_stop(&peer->loop);
}

static void *make(size_t slots, int flags) {
    struct peer *peer = calloc(1, sizeof *peer);
    size_t slot;
    (void)flags;
    uv_loop_init(&peer->loop);
    peer->loop.data = peer;
    peer->nodes = calloc(slots, sizeof *peer->nodes);
    for (slot = 0; slot < slots; slot++) uv_timer_init(&peer->loop, &peer->nodes[slot]);
    return peer;
}

static void start(void *of, size_t slot, uint64_t delay_ns) {
    uv_timer_start(&((struct peer *)of)->nodes[slot], on_timer, after(delay_ns), 0);
}

static void cancel(void *of, size_t slot) {
    uv_timer_stop(&((struct peer *)of)->nodes[slot]);
}

static void turn(void *of) {
    uv_run(&((struct peer *)of)->loop, UV_RUN_NOWAIT);
}

static void inside(void *of, void (*body)(void *arg), void *arg) {
    (void)of;
    body(arg); /* The loop's time is cached outside of callbacks, too. */
}

static void run(void *of, peer_tick tick, peer_fired fired, void *arg) {
    struct peer *peer = of;
    peer->tick = tick, peer->fired = fired, peer->arg = arg;
    if (tick) {
        uv_timer_init(&peer->loop, &peer->ticker);
        uv_timer_start(&peer->ticker, on_tick, 1, 1);
    }
    uv_run(&peer->loop, UV_RUN_DEFAULT);
}

/* To start a timer anew is libuv's way of pushing it out. */
const struct peer_api peer_libuv = {make, NULL, start, cancel, start, turn, inside, run};
