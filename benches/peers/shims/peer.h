/*
 * What a C library's timers look like to the workloads: timers named by slots, delays in
 * nanoseconds. One thread at a time, unless the peer was made for several.
 */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>
#include <stdint.h>

enum { PEER_THREADS = 1, PEER_PRECISE = 2 };

/* Told of a timer that fires while `run` runs. */
typedef void (*peer_fired)(void *arg, size_t slot);
/* Called by `run` once a millisecond; 0 ends the run. */
typedef int (*peer_tick)(void *arg);

struct peer_api {
    /* A loop, and nodes for so many timers. */
    void *(*make)(size_t slots, int flags);
    /* More nodes on the same loop, for another thread; NULL where that is not possible. */
    void *(*share)(void *peer, size_t slots);
    void (*start)(void *peer, size_t slot, uint64_t delay_ns);
    void (*cancel)(void *peer, size_t slot);
    void (*push_out)(void *peer, size_t slot, uint64_t delay_ns);
    /* One pass of the loop, without waiting. */
    void (*turn)(void *peer);
    /* Runs `body` inside a callback of the loop. */
    void (*inside)(void *peer, void (*body)(void *arg), void *arg);
    /* Runs the loop; for ever if there is no tick. */
    void (*run)(void *peer, peer_tick tick, peer_fired fired, void *arg);
};

#endif
