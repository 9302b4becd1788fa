/*
 * Every function that a driven service on a manual clock answers without a host loop: timers,
 * periods, batches, statistics, stop. Loops, queues and owners are in loops.c, threads in
 * threaded.c, refusals in refusals.c.
 */
#include "driven.h"

static void texts(void)
{
    for (int32_t status = -12; status <= 5; status++) {
        CHECK(sw_status_text(status) != NULL);
        CHECK(strlen(sw_status_text(status)) > 1);
    }
    CHECK(strcmp(sw_status_text(SW_OK), sw_status_text(SW_FULL)) != 0);
    CHECK(sw_status_text(INT32_MIN) == sw_status_text(INT32_MAX));
    CHECK(strchr(sw_version(), '.') != NULL);
}

static void one_shots(void)
{
    sw_service *service = manual(1);
    struct seen seen = {0};
    uint64_t left = 7, next = 7;

    OK(sw_shard_next(service, 0, &next));
    CHECK(next == SW_NEVER);

    sw_timer timer = SW_TIMER_NONE;
    OK(sw_timer_start(service, 5 * MS, note, &seen, &timer));
    CHECK(timer != SW_TIMER_NONE);
    EQUAL(sw_timer_shard(timer), 0);
    OK(sw_timer_remaining(service, timer, &left));
    EQUAL(left, 5 * MS);
    OK(sw_shard_next(service, 0, &next));
    CHECK(next <= 5 * MS);

    OK(sw_clock_advance(service, 5 * MS - 1));
    EQUAL(sw_clock_now(service), 5 * MS - 1);
    EQUAL(poll_all(service, 0), 0);
    OK(sw_clock_advance(service, 1));
    OK(sw_timer_remaining(service, timer, &left));
    EQUAL(left, 0);
    EQUAL(poll_all(service, 0), 1);
    EQUAL(seen.calls, 1);
    EQUAL(seen.last.timer, timer);
    EQUAL(seen.last.deadline_ns, 5 * MS);
    EQUAL(seen.last.now_ns, 5 * MS);
    EQUAL(seen.last.missed, 0);
    STATUS(sw_timer_cancel(service, timer), SW_NOT_FOUND);
    STATUS(sw_timer_cancel_wait(service, timer), SW_NOT_FOUND);
    STATUS(sw_timer_reset(service, timer, 1), SW_NOT_FOUND);
    left = 7;
    STATUS(sw_timer_remaining(service, timer, &left), SW_NOT_FOUND);
    EQUAL(left, 7);

    /* A deadline; put off, drawn in, fired once. */
    OK(sw_timer_start_at(service, 20 * MS, note, &seen, &timer));
    OK(sw_timer_reset(service, timer, 35 * MS));
    OK(sw_timer_remaining(service, timer, &left));
    EQUAL(left, 35 * MS);
    OK(sw_timer_reset_at(service, timer, 10 * MS));
    OK(sw_clock_advance(service, 5 * MS));
    EQUAL(poll_all(service, 0), 1);
    EQUAL(seen.calls, 2);
    EQUAL(seen.last.deadline_ns, 10 * MS);

    /* Cancelled, also when due. No handle wanted, and a budget. */
    OK(sw_timer_start(service, MS, note, &seen, &timer));
    OK(sw_timer_cancel(service, timer));
    STATUS(sw_timer_cancel(service, timer), SW_NOT_FOUND);
    OK(sw_timer_start(service, 0, note, &seen, &timer));
    OK(sw_timer_cancel_wait(service, timer));
    EQUAL(poll_all(service, 0), 0);
    OK(sw_timer_start(service, 0, note, &seen, NULL));
    OK(sw_timer_start(service, 0, note, &seen, NULL));
    size_t fired = 0;
    OK(sw_shard_poll(service, 0, 1, &fired));
    EQUAL(fired, 1);
    OK(sw_shard_poll(service, 0, 0, NULL));
    EQUAL(seen.calls, 4);

    OK(sw_service_free(service));
}

static void cancel_itself(void *ctx, const sw_expiry *expiry)
{
    struct seen *seen = ctx;
    note(ctx, expiry);
    STATUS(sw_shard_poll(seen->service, 0, 0, NULL), SW_BUSY);
    OK(sw_timer_cancel(seen->service, expiry->timer));
}

static void again_once(void *ctx, const sw_expiry *expiry)
{
    struct seen *seen = ctx;
    note(ctx, expiry);
    if (seen->calls == 1)
        OK(sw_timer_reset(seen->service, expiry->timer, 3 * MS));
}

static void periods(void)
{
    sw_service *service = manual(1);
    struct seen seen = {0};
    seen.service = service;
    sw_timer timer = SW_TIMER_NONE;

    OK(sw_timer_start_every(service, 10 * MS, note, &seen, &timer));
    OK(sw_clock_advance(service, 35 * MS));
    EQUAL(poll_all(service, 0), 1);
    EQUAL(seen.last.deadline_ns, 30 * MS);
    EQUAL(seen.last.missed, 2);
    OK(sw_clock_advance(service, 5 * MS));
    EQUAL(poll_all(service, 0), 1);
    EQUAL(seen.last.deadline_ns, 40 * MS);
    EQUAL(seen.last.missed, 0);
    OK(sw_timer_cancel(service, timer));

    sw_timer_spec spec;
    memset(&spec, 0xff, sizeof spec);
    sw_timer_spec_init(&spec);
    CHECK(spec.size == sizeof spec && spec.shard == SW_SHARD_ANY && spec.flags == 0);
    CHECK(spec.callback == NULL && spec.queue == NULL && spec.drop == NULL);
    spec.delay_ns = 10 * MS;
    spec.period_ns = 10 * MS;
    spec.flags = SW_TIMER_BURST;
    spec.callback = note;
    spec.ctx = &seen;
    spec.drop = note_drop;
    seen.calls = 0;
    OK(sw_timer_start_spec(service, &spec, &timer));
    OK(sw_clock_advance(service, 30 * MS));
    EQUAL(poll_all(service, 0), 3);
    EQUAL(seen.calls, 3);
    EQUAL(seen.drops, 0);
    OK(sw_timer_cancel(service, timer));
    EQUAL(seen.drops, 1);

    spec.callback = cancel_itself;
    seen.calls = 0;
    OK(sw_timer_start_spec(service, &spec, NULL));
    OK(sw_clock_advance(service, 30 * MS));
    EQUAL(poll_all(service, 0), 1);
    EQUAL(seen.drops, 2);

    seen.calls = 0;
    OK(sw_timer_start(service, 0, again_once, &seen, NULL));
    EQUAL(poll_all(service, 0), 1);
    OK(sw_clock_advance(service, 3 * MS));
    EQUAL(poll_all(service, 0), 1);
    EQUAL(seen.calls, 2);

    OK(sw_service_free(service));
}

static void batches(void)
{
    sw_service *service = manual(2);
    struct seen seen = {0};
    sw_timer_spec specs[5];
    sw_timer timers[5];
    size_t cancelled = 0;

    for (size_t i = 0; i < 5; i++) {
        sw_timer_spec_init(&specs[i]);
        specs[i].delay_ns = (i + 1) * MS;
        specs[i].shard = (uint32_t)(i % 2);
        specs[i].callback = note;
        specs[i].ctx = &seen;
        specs[i].drop = note_drop;
    }
    OK(sw_timer_start_batch(service, specs, 5, timers));
    for (size_t i = 0; i < 5; i++)
        EQUAL(sw_timer_shard(timers[i]), i % 2);
    OK(sw_clock_advance(service, 2 * MS));
    EQUAL(poll_all(service, 0), 1);
    EQUAL(poll_all(service, 1), 1);
    EQUAL(seen.drops, 2);
    OK(sw_timer_cancel_batch(service, timers, 5, &cancelled));
    EQUAL(cancelled, 3);
    EQUAL(seen.drops, 5);
    OK(sw_timer_start_batch(service, specs, 5, NULL));
    OK(sw_timer_start_batch(service, specs, 0, timers));
    OK(sw_timer_cancel_batch(service, timers, 0, NULL));

    /* All or nothing: the last one has no such shard. */
    seen.drops = 0;
    specs[4].shard = 2;
    STATUS(sw_timer_start_batch(service, specs, 5, timers), SW_INVALID);
    EQUAL(seen.drops, 5);
    OK(sw_service_free(service));
    EQUAL(seen.drops, 10);
}

static void statistics(void)
{
    sw_service *service = manual(2);
    struct seen seen = {0};
    sw_stats stats;
    memset(&stats, 0xff, sizeof stats);
    stats.size = sizeof stats;

    sw_timer_spec spec;
    sw_timer_spec_init(&spec);
    spec.callback = note;
    spec.ctx = &seen;
    for (uint32_t i = 0; i < 3; i++) {
        spec.shard = i % 2;
        OK(sw_timer_start_spec(service, &spec, NULL));
    }
    EQUAL(poll_all(service, 1), 1);
    OK(sw_stats_read(service, 1, &stats));
    EQUAL(stats.size, sizeof stats);
    EQUAL(stats.started, 1);
    EQUAL(stats.fired, 1);
    EQUAL(stats.ended_by_fire, 1);
    EQUAL(stats.pending, 0);
    OK(sw_stats_read(service, SW_SHARD_ANY, &stats));
    EQUAL(stats.started, 3);
    EQUAL(stats.pending, 2);
    EQUAL(stats.started, stats.ended_by_fire + stats.cancelled + stats.returned + stats.pending);
    CHECK(stats.memory_bytes > 0);

    size_t needed = 0, again = 0;
    OK(sw_stats_prometheus(service, NULL, 0, &needed));
    CHECK(needed > 100);
    char *text = malloc(needed + 1);
    CHECK(text != NULL);
    memset(text, 'x', needed + 1);
    OK(sw_stats_prometheus(service, text, needed + 1, &again));
    EQUAL(again, needed);
    EQUAL(strlen(text), needed);
    CHECK(strstr(text, "# TYPE shardwheel_timers_pending gauge\n") != NULL);
    CHECK(strstr(text, "\nshardwheel_timers_pending{shard=\"0\"} 2\n") != NULL);
    CHECK(strstr(text, "\nshardwheel_timers_started_total{shard=\"1\"} 1\n") != NULL);
    /* Cut, as snprintf cuts: the beginning and a NUL, and nothing beyond. */
    char few[16];
    memset(few, 'x', sizeof few);
    OK(sw_stats_prometheus(service, few, 8, &again));
    EQUAL(again, needed);
    CHECK(memcmp(few, text, 7) == 0 && few[7] == '\0' && few[8] == 'x');
    OK(sw_stats_prometheus(service, few, 1, NULL));
    CHECK(few[0] == '\0' && few[1] == text[1]);
    free(text);

    OK(sw_stats_report(service, NULL, 0, &needed));
    text = malloc(needed + 1);
    CHECK(text != NULL);
    OK(sw_stats_report(service, text, needed + 1, &again));
    EQUAL(strlen(text), needed);
    CHECK(strstr(text, "2 pending") != NULL);
    free(text);

    sw_details details;
    details.size = sizeof details;
    OK(sw_details_read(service, SW_SHARD_ANY, &details));
    OK(sw_service_trim(service));
    EQUAL(details.turns, 1);
    EQUAL(details.inbox_depth, 2);

    sw_pending pending[4];
    uint64_t place = 0;
    size_t visited = 0;
    OK(sw_shard_visit(service, 0, &place, pending, 4, &visited));
    EQUAL(visited, 2);
    CHECK(place == SW_VISIT_END && pending[0].ctx == &seen && pending[0].period_ns == 0);
    spec.flags = SW_TIMER_ABSOLUTE;
    OK(sw_timer_start_spread(service, &spec, 1, 1000000, NULL));
    OK(sw_service_free(service));
}

struct handed {
    unsigned calls;
    sw_timer timer;
    uint64_t deadline_ns;
    struct seen *seen;
};

static void hand_back(void *arg, sw_timer timer, void *ctx, uint64_t deadline_ns)
{
    struct handed *handed = arg;
    handed->calls += 1;
    handed->timer = timer;
    handed->deadline_ns = deadline_ns;
    handed->seen = ctx;
    EQUAL(handed->seen->drops, 0);
    STATUS(sw_service_free(handed->seen->service), SW_WOULD_DEADLOCK);
}

static void stop(void)
{
    sw_service *service = manual(1);
    struct seen seen = {0};
    struct handed handed = {0, 0, 0, NULL};
    sw_timer timer = SW_TIMER_NONE;
    uint64_t returned = 99, number = 99;
    size_t count = 99;
    int fd = 99;
    sw_queue *queue = NULL, *another = NULL;
    sw_event event;
    sw_stats stats;

    sw_timer_spec spec;
    sw_timer_spec_init(&spec);
    spec.delay_ns = 9 * MS;
    spec.callback = note;
    spec.ctx = &seen;
    spec.drop = note_drop;
    seen.service = service;
    OK(sw_timer_start_spec(service, &spec, &timer));
    OK(sw_queue_new(service, &queue));
    OK(sw_clock_advance(service, MS));
    OK(sw_service_stop(service, hand_back, &handed, &returned));
    EQUAL(returned, 1);
    EQUAL(handed.calls, 1);
    EQUAL(handed.timer, timer);
    EQUAL(handed.deadline_ns, 9 * MS);
    CHECK(handed.seen == &seen);
    EQUAL(seen.drops, 1);
    OK(sw_service_stop(service, hand_back, &handed, &returned));
    EQUAL(returned, 0);
    EQUAL(handed.calls, 1);

    STATUS(sw_timer_start(service, 1, note, &seen, NULL), SW_STOPPED);
    STATUS(sw_timer_start_spec(service, &spec, NULL), SW_STOPPED);
    EQUAL(seen.drops, 2);
    STATUS(sw_timer_start_batch(service, &spec, 1, NULL), SW_STOPPED);
    EQUAL(seen.drops, 3);
    STATUS(sw_timer_cancel(service, timer), SW_STOPPED);
    STATUS(sw_timer_cancel_wait(service, timer), SW_STOPPED);
    STATUS(sw_timer_cancel_batch(service, &timer, 1, &count), SW_STOPPED);
    STATUS(sw_timer_reset(service, timer, 1), SW_STOPPED);
    STATUS(sw_timer_reset_at(service, timer, 1), SW_STOPPED);
    STATUS(sw_timer_remaining(service, timer, &number), SW_STOPPED);
    STATUS(sw_shard_attach(service, 0, SW_ATTACH_SHARED), SW_STOPPED);
    STATUS(sw_shard_poll(service, 0, 0, &count), SW_STOPPED);
    STATUS(sw_shard_next(service, 0, &number), SW_STOPPED);
    STATUS(sw_shard_fd(service, 0, &fd), SW_STOPPED);
    STATUS(sw_queue_new(service, &another), SW_STOPPED);
    STATUS(sw_queue_poll(queue, &event, 1, &count), SW_STOPPED);
    CHECK(number == 99 && count == 99 && fd == 99 && another == NULL);
    OK(sw_queue_free(queue));
    EQUAL(sw_shard_count(service), 1);
    OK(sw_clock_advance(service, MS));
    EQUAL(sw_clock_now(service), 2 * MS);
    stats.size = sizeof stats;
    memset((char *)&stats + sizeof stats.size, 0, sizeof stats - sizeof stats.size);
    OK(sw_stats_read(service, SW_SHARD_ANY, &stats));
    EQUAL(stats.returned, 1);
    OK(sw_stats_prometheus(service, NULL, 0, &count));
    EQUAL(seen.calls, 0);
    OK(sw_service_free(service));
    OK(sw_service_free(NULL));
}

int main(void)
{
    texts();
    one_shots();
    periods();
    batches();
    statistics();
    stop();
    return 0;
}
