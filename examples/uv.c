/*
 * Timeouts on a libuv loop: a heartbeat, and a session that ends when it has been idle for too long.
 *
 *     cc examples/uv.c $(pkg-config --cflags --libs shardwheel) -luv -o uv
 *
 * All runs on one thread, the loop's: what callbacks share needs no lock.
 */
#define _POSIX_C_SOURCE 200809L /* for libuv under -std=c99 */

#include "shardwheel/uv.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t MS = 1000000;

static uv_loop_t *loop;
static sw_service *service;
static sw_timer idle;
static int beats;

static void must(int failed)
{
    if (failed) {
        fprintf(stderr, "it did not work\n");
        exit(1);
    }
}

/* Each beat counts as traffic: the idle time-out is pushed out. After the third they stop. */
static void beat(void *ctx, const sw_expiry *expiry)
{
    (void)ctx;
    printf("beat %d\n", ++beats);
    sw_timer_reset(service, idle, 150 * MS);
    if (beats == 3) sw_timer_cancel(service, expiry->timer);
}

static void on_idle(void *ctx, const sw_expiry *expiry)
{
    (void)expiry;
    printf("%s is idle\n", (const char *)ctx);
    uv_stop(loop);
}

int main(void)
{
    loop = uv_default_loop();
    sw_config config;
    sw_config_init(&config);
    config.mode = SW_MODE_DRIVEN; /* no threads: the loop does it */
    config.shards = 1;
    must(sw_service_start(&config, &service) != SW_OK);
    must(sw_shard_attach(service, 0, SW_ATTACH_SHARED) != SW_OK);

    struct sw_uv timers;
    must(sw_uv_start(&timers, loop, service, 0) != 0);
    must(sw_timer_start_every(service, 100 * MS, beat, NULL, NULL) != SW_OK);
    must(sw_timer_start(service, 150 * MS, on_idle, "the session", &idle) != SW_OK);

    uv_run(loop, UV_RUN_DEFAULT);

    sw_uv_stop(&timers, NULL);
    uv_run(loop, UV_RUN_DEFAULT); /* libuv lets go of a handle in a turn of its loop */
    uv_loop_close(loop);
    sw_service_free(service);
    return 0;
}
