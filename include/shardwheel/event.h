/**
 * @file event.h
 * shardwheel on a libevent base: one driven shard, whose callbacks run on the base's thread.
 *
 *     struct sw_event_shard timers;
 *     sw_shard_attach(service, 0, SW_ATTACH_SHARED);     on the base's thread; faster, not needed
 *     sw_event_start(&timers, base, service, 0);
 *     event_base_dispatch(base);
 *     sw_event_stop(&timers);
 *     sw_service_free(service);
 *
 * The base sleeps until the shard has something due. A timer that another thread starts wakes it
 * only if it is earlier than what the base sleeps for. At most SW_EVENT_BUDGET callbacks run before
 * the base's other events have their turn; the rest follow in the next one.
 *
 * Ground rules: all calls are the base's thread's, and `sw_event_shard` stays where it is until it
 * is stopped. While it is watched it keeps the base's loop going.
 */
#ifndef SHARDWHEEL_EVENT_H
#define SHARDWHEEL_EVENT_H

#include "../shardwheel.h"

#include <event2/event.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SW_EVENT_BUDGET
/** At most so many callbacks in one turn of the base; may be defined before this header. */
#define SW_EVENT_BUDGET 1024
#endif

/** A shard that is watched on a base. */
struct sw_event_shard {
    struct event *event; /**< libevent's */
    sw_service *service; /**< whose shard it is */
    uint32_t shard;      /**< which */
    sw_status refused;   /**< why it is not watched any more; SW_OK: it is */
};

/** The base's call. After a poll that worked, `arg` may be gone: a callback may have stopped it. */
static inline void sw_event_readable(evutil_socket_t fd, short events, void *arg)
{
    struct sw_event_shard *timers = (struct sw_event_shard *)arg;
    (void)fd;
    (void)events;
    sw_status status = sw_shard_poll(timers->service, timers->shard, SW_EVENT_BUDGET, NULL);
    /* Short of memory, it is tried again. Else nobody would poll, and the loop would spin. */
    if (status != SW_OK && status != SW_NO_MEMORY) {
        timers->refused = status;
        event_del(timers->event);
    }
}

/**
 * Watches a driven shard on a base.
 *
 * Returns 0; -1 if the service has no such shard to be polled or libevent refuses, and then there
 * is nothing to be stopped.
 */
static inline int sw_event_start(struct sw_event_shard *timers, struct event_base *base,
                                 sw_service *service, uint32_t shard)
{
    int fd = -1;
    timers->service = service;
    timers->shard = shard;
    timers->refused = SW_OK;
    timers->event = NULL;
    if (sw_shard_fd(service, shard, &fd) != SW_OK) return -1;
    timers->event = event_new(base, fd, EV_READ | EV_PERSIST, sw_event_readable, timers);
    if (timers->event == NULL) return -1;
    if (event_add(timers->event, NULL) == 0) return 0;
    event_free(timers->event);
    return -1;
}

/**
 * Ends the watch, also from inside a timer's callback. The shard's timers stay as they are. The
 * service must not be freed before this call.
 */
static inline void sw_event_stop(struct sw_event_shard *timers)
{
    event_free(timers->event);
    timers->event = NULL;
}

#ifdef __cplusplus
}
#endif

#endif
