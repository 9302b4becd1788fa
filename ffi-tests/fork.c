/*
 * Fork: in the child every call on the parent's service is refused at once, and the child can
 * start a service of its own, or just exit. The parent goes on as if nothing had been.
 */
#define _GNU_SOURCE

#include "latch.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct latch fired = LATCH;
static unsigned drops;

static void fire(void *ctx, const sw_expiry *expiry)
{
    (void)ctx, (void)expiry;
    latch_add(&fired);
}

static void drop(void *ctx)
{
    (void)ctx;
    drops += 1;
}

static void unfired(void *arg, sw_timer timer, void *ctx, uint64_t deadline_ns)
{
    (void)arg, (void)timer, (void)ctx, (void)deadline_ns;
    CHECK(0 && "told in the child");
}

static void stuck(void *arg, uint32_t shard, sw_timer timer, uint64_t elapsed_ns)
{
    (void)arg, (void)shard, (void)timer, (void)elapsed_ns;
    CHECK(0 && "called in the child");
}

static sw_service *start(uint32_t mode)
{
    sw_config config;
    sw_config_init(&config);
    config.mode = mode;
    config.shards = 2;
    config.pinning = SW_PIN_NONE;
    sw_service *service = NULL;
    OK(sw_service_start(&config, &service));
    return service;
}

static sw_timer_spec far_away(void)
{
    sw_timer_spec spec;
    sw_timer_spec_init(&spec);
    spec.delay_ns = 3600 * SECOND;
    spec.callback = fire;
    spec.drop = drop;
    return spec;
}

static void everything_is_refused(sw_service *service, sw_queue *queue, sw_timer timer)
{
    sw_timer handles[2];
    sw_timer_spec specs[2] = {far_away(), far_away()};
    uint64_t number = 0;
    size_t count = 0;
    int fd = 0;
    sw_event event;
    sw_queue *made = NULL;
    sw_stats stats;
    memset(&stats, 0, sizeof stats);
    stats.size = sizeof stats;
    sw_details details;
    memset(&details, 0, sizeof details);
    details.size = sizeof details;
    sw_pending pending;
    uint64_t place = 0;

    drops = 0;
    STATUS(sw_timer_start(service, 0, fire, NULL, handles), SW_FORKED);
    STATUS(sw_timer_start_at(service, 0, fire, NULL, handles), SW_FORKED);
    STATUS(sw_timer_start_every(service, 1, fire, NULL, handles), SW_FORKED);
    STATUS(sw_timer_start_spec(service, specs, handles), SW_FORKED);
    EQUAL(drops, 1);
    STATUS(sw_timer_start_batch(service, specs, 2, handles), SW_FORKED);
    EQUAL(drops, 3);
    STATUS(sw_timer_cancel(service, timer), SW_FORKED);
    STATUS(sw_timer_cancel_wait(service, timer), SW_FORKED);
    STATUS(sw_timer_cancel_batch(service, &timer, 1, &count), SW_FORKED);
    STATUS(sw_timer_reset(service, timer, 1), SW_FORKED);
    STATUS(sw_timer_reset_at(service, timer, 1), SW_FORKED);
    STATUS(sw_timer_remaining(service, timer, &number), SW_FORKED);
    STATUS(sw_clock_advance(service, 1), SW_FORKED);
    STATUS(sw_shard_attach(service, 0, SW_ATTACH_SHARED), SW_FORKED);
    STATUS(sw_shard_detach(service, 0), SW_FORKED);
    STATUS(sw_shard_poll(service, 0, 0, &count), SW_FORKED);
    STATUS(sw_shard_next(service, 0, &number), SW_FORKED);
    STATUS(sw_shard_fd(service, 0, &fd), SW_FORKED);
    STATUS(sw_queue_new(service, &made), SW_FORKED);
    STATUS(sw_queue_poll(queue, &event, 1, &count), SW_FORKED);
    STATUS(sw_queue_fd(queue, &fd), SW_FORKED);
    STATUS(sw_queue_free(queue), SW_FORKED);
    STATUS(sw_stats_read(service, SW_SHARD_ANY, &stats), SW_FORKED);
    STATUS(sw_stats_prometheus(service, NULL, 0, &count), SW_FORKED);
    STATUS(sw_stats_report(service, NULL, 0, &count), SW_FORKED);
    STATUS(sw_details_read(service, 0, &details), SW_FORKED);
    STATUS(sw_shard_visit(service, 0, &place, &pending, 1, &count), SW_FORKED);
    STATUS(sw_service_trim(service), SW_FORKED);
    STATUS(sw_service_on_stuck(service, stuck, NULL), SW_FORKED);
    STATUS(sw_timer_start_spread(service, specs, 2, SECOND, handles), SW_FORKED);
    EQUAL(drops, 5);
    STATUS(sw_service_stop(service, unfired, NULL, &number), SW_FORKED);
    STATUS(sw_service_free(service), SW_FORKED);
    /* These two have no status; they must only come back. */
    (void)sw_shard_count(service);
    (void)sw_clock_now(service);
    EQUAL(drops, 5);
    EQUAL(number + count + place, 0);
}

static void its_own(void)
{
    unsigned before = latch_count(&fired);
    sw_service *service = start(SW_MODE_THREADED);
    OK(sw_timer_start(service, MS, fire, NULL, NULL));
    OK(sw_timer_start(service, 3600 * SECOND, fire, NULL, NULL));
    latch_wait(&fired, before + 1);
    OK(sw_service_free(service));
}

static void waited_for(pid_t child)
{
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    sw_service *threaded = start(SW_MODE_THREADED), *driven = start(SW_MODE_DRIVEN);
    sw_queue *queues[2];
    OK(sw_queue_new(threaded, &queues[0]));
    OK(sw_queue_new(driven, &queues[1]));
    sw_timer timers[2];
    sw_timer_spec spec = far_away();
    OK(sw_timer_start_spec(threaded, &spec, &timers[0]));
    OK(sw_timer_start_spec(driven, &spec, &timers[1]));

    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* At once: in far less than a thread's time to wait for anything. */
        alarm(20);
        everything_is_refused(threaded, queues[0], timers[0]);
        everything_is_refused(driven, queues[1], timers[1]);
        its_own();
        exit(0);
    }
    waited_for(child);

    child = fork();
    CHECK(child >= 0);
    if (child == 0)
        exit(0);
    waited_for(child);

    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
        _exit(1);
    }
    waited_for(child);

    unsigned before = latch_count(&fired);
    size_t delivered = 0;
    OK(sw_timer_start(threaded, MS, fire, NULL, NULL));
    latch_wait(&fired, before + 1);
    spec = far_away();
    spec.delay_ns = 0;
    spec.shard = 1;
    OK(sw_timer_start_spec(driven, &spec, NULL));
    OK(sw_shard_poll(driven, 1, 0, &delivered));
    EQUAL(delivered, 1);
    EQUAL(drops, 1);
    OK(sw_timer_cancel(threaded, timers[0]));
    OK(sw_timer_cancel(driven, timers[1]));
    EQUAL(drops, 3);
    OK(sw_queue_free(queues[0]));
    OK(sw_service_free(threaded));
    OK(sw_service_free(driven));
    return 0;
}
