/*
 * Timeouts on a libevent base: a heartbeat, and a session that ends when it has been idle for too long.
 *
 *     cc examples/event.c $(pkg-config --cflags --libs shardwheel) -levent_core -o event
 *
 * All runs on one thread, the base's: what callbacks share needs no lock.
 */
#include "shardwheel/event.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t MS = 1000000;

static struct event_base *base;
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
    event_base_loopbreak(base);
}

int main(void)
{
    base = event_base_new();
    must(base == NULL);
    sw_config config;
    sw_config_init(&config);
    config.mode = SW_MODE_DRIVEN; /* no threads: the base's loop does it */
    config.shards = 1;
    must(sw_service_start(&config, &service) != SW_OK);
    must(sw_shard_attach(service, 0, SW_ATTACH_SHARED) != SW_OK);

    struct sw_event_shard timers;
    must(sw_event_start(&timers, base, service, 0) != 0);
    must(sw_timer_start_every(service, 100 * MS, beat, NULL, NULL) != SW_OK);
    must(sw_timer_start(service, 150 * MS, on_idle, "the session", &idle) != SW_OK);

    event_base_dispatch(base);

    sw_event_stop(&timers);
    event_base_free(base);
    sw_service_free(service);
    return 0;
}
