/*
 * What the programs about driven services share.
 */
#ifndef DRIVEN_H
#define DRIVEN_H

#include "check.h"

#include <string.h>

/* What a callback saw. */
struct seen {
    unsigned calls;
    unsigned drops;
    sw_expiry last;
    sw_service *service;
};

static inline void note(void *ctx, const sw_expiry *expiry)
{
    struct seen *seen = ctx;
    seen->calls += 1;
    seen->last = *expiry;
}

static inline void note_drop(void *ctx)
{
    struct seen *seen = ctx;
    seen->drops += 1;
}

/* A driven service on a manual clock, with room for 64 timers in each shard. */
static inline sw_service *manual(uint32_t shards)
{
    sw_config config;
    memset(&config, 0xff, sizeof config);
    sw_config_init(&config);
    CHECK(config.size == sizeof config);
    CHECK(config.mode == SW_MODE_THREADED && config.clock == SW_CLOCK_MONOTONIC);
    CHECK(config.shards == 0 && config.pinning == SW_PIN_AUTO);
    CHECK(config.tick_ns == 0 && config.max_timers == 0 && config.slow_callback_ns == 0);
    CHECK(config.thread_name == NULL && config.on_thread_start == NULL);
    config.mode = SW_MODE_DRIVEN;
    config.clock = SW_CLOCK_MANUAL;
    config.shards = shards;
    config.max_timers = 64;
    sw_service *service = NULL;
    OK(sw_service_start(&config, &service));
    CHECK(service != NULL);
    EQUAL(sw_shard_count(service), shards);
    EQUAL(sw_clock_now(service), 0);
    return service;
}

/* Polls one shard for everything; answers how much it delivered. */
static inline size_t poll_all(sw_service *service, uint32_t shard)
{
    size_t fired = 12345;
    OK(sw_shard_poll(service, shard, 0, &fired));
    return fired;
}

#endif
