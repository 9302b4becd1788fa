/**
 * @file uv.h
 * shardwheel on a libuv loop: one driven shard, whose callbacks run on the loop's thread.
 *
 *     struct sw_uv timers;
 *     sw_shard_attach(service, 0, SW_ATTACH_SHARED);     on the loop's thread; faster, not needed
 *     sw_uv_start(&timers, loop, service, 0);
 *     uv_run(loop, UV_RUN_DEFAULT);
 *     sw_uv_stop(&timers, NULL);                         and let the loop turn once more
 *     sw_service_free(service);
 *
 * The loop sleeps until the shard has something due. A timer that another thread starts wakes it
 * only if it is earlier than what the loop sleeps for. At most SW_UV_BUDGET callbacks run before
 * the loop's other handles have their turn; the rest follow in the next one.
 *
 * Ground rules: as with every handle of libuv, all calls are the loop thread's, and `sw_uv` stays
 * where it is until its close callback. While it is watched it keeps the loop alive; to change
 * that, `uv_unref((uv_handle_t *)&timers.handle)`. `handle.data` is the host's.
 */
#ifndef SHARDWHEEL_UV_H
#define SHARDWHEEL_UV_H

#include "../shardwheel.h"

#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SW_UV_BUDGET
/** At most so many callbacks in one turn of the loop; may be defined before this header. */
#define SW_UV_BUDGET 1024
#endif

/** A shard that is watched on a loop. */
struct sw_uv {
    uv_poll_t handle;    /**< libuv's; its `data` is the host's */
    sw_service *service; /**< whose shard it is */
    uint32_t shard;      /**< which */
    sw_status refused;   /**< why it is not watched any more; SW_OK: it is */
};

/** The loop's call. After a poll that worked, `timers` may be gone: a callback may have stopped it. */
static inline void sw_uv_readable(uv_poll_t *handle, int error, int events)
{
    struct sw_uv *timers = (struct sw_uv *)handle;
    (void)events;
    sw_status status = SW_SYSTEM;
    if (error == 0) status = sw_shard_poll(timers->service, timers->shard, SW_UV_BUDGET, NULL);
    /* Short of memory, it is tried again. Else nobody would poll, and the loop would spin. */
    if (status != SW_OK && status != SW_NO_MEMORY) {
        timers->refused = status;
        uv_poll_stop(handle);
    }
}

/**
 * Watches a driven shard on a loop.
 *
 * Returns 0, or an error of libuv; UV_EINVAL if the service has no such shard to be polled. After
 * an error there is nothing to be stopped.
 */
static inline int sw_uv_start(struct sw_uv *timers, uv_loop_t *loop, sw_service *service,
                              uint32_t shard)
{
    int fd = -1;
    timers->service = service;
    timers->shard = shard;
    timers->refused = SW_OK;
    if (sw_shard_fd(service, shard, &fd) != SW_OK) return UV_EINVAL;
    int error = uv_poll_init(loop, &timers->handle, fd);
    /* It fails only for a handle that is closing, and this one has just begun. */
    return error != 0 ? error : uv_poll_start(&timers->handle, UV_READABLE, sw_uv_readable);
}

/**
 * Ends the watch, also from inside a timer's callback. The shard's timers stay as they are.
 *
 * `closed`: called by the loop when `timers` may be freed; may be NULL. The service must not be
 * freed before this call.
 */
static inline void sw_uv_stop(struct sw_uv *timers, uv_close_cb closed)
{
    uv_close((uv_handle_t *)&timers->handle, closed);
}

#ifdef __cplusplus
}
#endif

#endif
