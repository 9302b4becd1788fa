/*
 * A service with threads of its own: firing, hooks, waiting cancels, and the calls that a thread
 * of the service may not make.
 */
#define _GNU_SOURCE /* pthread_getname_np */

#include "latch.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static struct latch fired = LATCH;
static struct latch entered = LATCH;
static struct latch started = LATCH;
static struct latch stopped = LATCH;
static struct latch slow = LATCH;
static struct latch dropped = LATCH;

static sw_service *service;
static sw_expiry last;
static char thread_name[16];
static bool finished;
static int tag;

static void on_start(void *hook_arg, uint32_t shard)
{
    CHECK(hook_arg == &tag && shard == 0);
    CHECK(pthread_getname_np(pthread_self(), thread_name, sizeof thread_name) == 0);
    latch_add(&started);
}

static void on_stop(void *hook_arg, uint32_t shard)
{
    CHECK(hook_arg == &tag && shard == 0);
    latch_add(&stopped);
}

static void on_slow(void *hook_arg, uint32_t shard, sw_timer timer, void *ctx, uint64_t elapsed_ns)
{
    CHECK(hook_arg == &tag && shard == 0);
    CHECK(timer != SW_TIMER_NONE && elapsed_ns > 20 * MS);
    if (ctx != &finished)
        return; /* on a busy machine any callback may be slow */
    EQUAL(latch_count(&dropped), 0);
    latch_add(&slow);
}

static void fire(void *ctx, const sw_expiry *expiry)
{
    CHECK(ctx == &tag);
    last = *expiry;
    latch_add(&fired);
}

static void drop(void *ctx)
{
    CHECK(ctx == &finished);
    latch_add(&dropped);
}

static void take_long(void *ctx, const sw_expiry *expiry)
{
    CHECK(ctx == &finished && expiry->now_ns >= expiry->deadline_ns);
    latch_add(&entered);
    usleep(100000);
    finished = true;
}

static void refused(void *ctx, const sw_expiry *expiry)
{
    CHECK(ctx == &tag);
    STATUS(sw_timer_cancel(service, expiry->timer), SW_RUNNING);
    STATUS(sw_timer_cancel_wait(service, expiry->timer), SW_WOULD_DEADLOCK);
    STATUS(sw_service_stop(service, NULL, NULL, NULL), SW_WOULD_DEADLOCK);
    STATUS(sw_service_free(service), SW_WOULD_DEADLOCK);
    latch_add(&fired);
}

static sw_service *threaded(void)
{
    sw_config config;
    sw_config_init(&config);
    config.shards = 1;
    config.pinning = SW_PIN_NONE;
    config.slow_callback_ns = 20 * MS;
    config.thread_name = "smoke";
    config.hook_arg = &tag;
    config.on_thread_start = on_start;
    config.on_thread_stop = on_stop;
    config.on_slow_callback = on_slow;
    sw_service *made = NULL;
    OK(sw_service_start(&config, &made));
    return made;
}

static void firing(void)
{
    uint64_t before = sw_clock_now(service);
    sw_timer timer = SW_TIMER_NONE;
    OK(sw_timer_start(service, 2 * MS, fire, &tag, &timer));
    latch_wait(&fired, 1);
    EQUAL(last.timer, timer);
    CHECK(last.deadline_ns >= before + 2 * MS);
    CHECK(last.now_ns >= last.deadline_ns);
    CHECK(strcmp(thread_name, "smoke-0") == 0);

    OK(sw_timer_start_every(service, 2 * MS, fire, &tag, &timer));
    latch_wait(&fired, 4);
    sw_status status = sw_timer_cancel_wait(service, timer);
    CHECK(status == SW_OK || status == SW_RUNNING);
    unsigned calls = latch_count(&fired);
    usleep(20000);
    EQUAL(latch_count(&fired), calls);
}

static void waiting(void)
{
    sw_timer timer = SW_TIMER_NONE;
    sw_timer_spec spec;
    sw_timer_spec_init(&spec);
    spec.callback = take_long;
    spec.ctx = &finished;
    spec.drop = drop;
    OK(sw_timer_start_spec(service, &spec, &timer));
    latch_wait(&entered, 1);
    STATUS(sw_timer_cancel_wait(service, timer), SW_RUNNING);
    CHECK(finished);
    EQUAL(latch_count(&dropped), 1);
    latch_wait(&slow, 1);
    STATUS(sw_timer_cancel_wait(service, timer), SW_NOT_FOUND);

    unsigned calls = latch_count(&fired);
    OK(sw_timer_start(service, 0, refused, &tag, NULL));
    latch_wait(&fired, calls + 1);
}

static void not_in_this_mode(void)
{
    size_t fired_now = 0;
    uint64_t next = 0;
    int fd = 0;
    STATUS(sw_shard_poll(service, 0, 0, &fired_now), SW_UNSUPPORTED);
    STATUS(sw_shard_attach(service, 0, SW_ATTACH_SHARED), SW_UNSUPPORTED);
    STATUS(sw_shard_detach(service, 0), SW_UNSUPPORTED);
    STATUS(sw_shard_next(service, 0, &next), SW_UNSUPPORTED);
    STATUS(sw_shard_fd(service, 0, &fd), SW_UNSUPPORTED);
    STATUS(sw_clock_advance(service, 1), SW_UNSUPPORTED);
}

int main(void)
{
    service = threaded();
    latch_wait(&started, 1);
    firing();
    waiting();
    not_in_this_mode();

    uint64_t returned = 0;
    OK(sw_timer_start(service, 3600 * SECOND, fire, &tag, NULL));
    OK(sw_service_stop(service, NULL, NULL, &returned));
    EQUAL(returned, 1);
    EQUAL(latch_count(&started), 1);
    EQUAL(latch_count(&stopped), 1);
    OK(sw_service_free(service));

    /* All defaults: a shard on each CPU. */
    OK(sw_service_start(NULL, &service));
    CHECK(sw_shard_count(service) >= 1);
    unsigned calls = latch_count(&fired);
    OK(sw_timer_start(service, 0, fire, &tag, NULL));
    latch_wait(&fired, calls + 1);
    OK(sw_service_free(service));
    return 0;
}
