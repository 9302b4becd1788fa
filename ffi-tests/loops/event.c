/*
 * The scenario on a libevent base. A turn is a return of `event_base_loop`, which waits once.
 */
#define _GNU_SOURCE

#include "scenario.h"
#include "shardwheel/event.h"

static struct event_base *base;
static struct sw_event_shard timers;
static unsigned long turns;
static bool quitting;

static void start_watch(sw_service *of)
{
    CHECK(sw_event_start(&timers, base, of, 7) == -1);
    CHECK(sw_event_start(&timers, base, of, 0) == 0);
}

static void stop_watch(void)
{
    sw_event_stop(&timers);
}

static sw_status refused(void)
{
    return timers.refused;
}

static void run(void)
{
    quitting = false;
    while (!quitting && event_base_loop(base, EVLOOP_ONCE) == 0)
        turns += 1;
}

static void quit(void)
{
    quitting = true;
}

static unsigned long turned(void)
{
    return turns;
}

int main(void)
{
    const struct loop calls = {start_watch, stop_watch, refused, run, quit, turned};
    base = event_base_new();
    CHECK(base != NULL);
    scenario(&calls);
    event_base_free(base);
    return 0;
}
