/*
 * The scenario on a libuv loop. A turn is a run of the check handles, which follow each wait.
 */
#define _GNU_SOURCE

#include "scenario.h"
#include "shardwheel/uv.h"

static uv_loop_t loop;
static uv_check_t check;
static struct sw_uv timers;
static unsigned long turns;
static bool closing;

static void count(uv_check_t *handle)
{
    (void)handle;
    turns += 1;
}

static void closed(uv_handle_t *handle)
{
    (void)handle;
    closing = false;
}

static void uv_start_watch(sw_service *of)
{
    /* The handle is the loop's until it is closed. */
    while (closing)
        uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(sw_uv_start(&timers, &loop, of, 7) == UV_EINVAL);
    CHECK(sw_uv_start(&timers, &loop, of, 0) == 0);
}

static void uv_stop_watch(void)
{
    closing = true;
    sw_uv_stop(&timers, closed);
}

static sw_status uv_refused(void)
{
    return timers.refused;
}

static void uv_run_loop(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
}

static void uv_quit(void)
{
    uv_stop(&loop);
}

static unsigned long uv_turns(void)
{
    return turns;
}

int main(void)
{
    const struct loop calls = {uv_start_watch, uv_stop_watch, uv_refused,
                               uv_run_loop,    uv_quit,       uv_turns};
    CHECK(uv_loop_init(&loop) == 0);
    CHECK(uv_check_init(&loop, &check) == 0);
    CHECK(uv_check_start(&check, count) == 0);
    uv_unref((uv_handle_t *)&check);

    scenario(&calls);

    uv_close((uv_handle_t *)&check, NULL);
    CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
    CHECK(uv_loop_close(&loop) == 0);
    return 0;
}
