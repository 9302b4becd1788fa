/*
 * Bad arguments: each is refused, changes nothing and crashes nothing. A refused start drops what
 * it could read.
 */
#include "check.h"

#include <errno.h>
#include <string.h>

static unsigned calls;
static unsigned drops;

static void call(void *ctx, const sw_expiry *expiry)
{
    (void)ctx, (void)expiry;
    calls += 1;
}

static void drop(void *ctx)
{
    CHECK(ctx == &drops);
    drops += 1;
}

/* How many drops since the last question. */
static unsigned dropped(void)
{
    unsigned count = drops;
    drops = 0;
    return count;
}

/* Structs of a later release. */
struct later_config {
    sw_config config;
    uint64_t more[2];
};

struct later_spec {
    sw_timer_spec spec;
    uint64_t more[2];
};

struct later_stats {
    sw_stats stats;
    uint64_t more[2];
};

static void driven(sw_config *config)
{
    sw_config_init(config);
    config->mode = SW_MODE_DRIVEN;
    config->clock = SW_CLOCK_MANUAL;
    config->shards = 1;
    config->max_timers = 8;
}

static sw_timer_spec ready(void)
{
    sw_timer_spec spec;
    sw_timer_spec_init(&spec);
    spec.callback = call;
    spec.ctx = &drops;
    spec.drop = drop;
    return spec;
}

static void no_service(const sw_config *config)
{
    sw_service *service = (sw_service *)&drops;
    STATUS(sw_service_start(config, &service), SW_INVALID);
    CHECK(service == (sw_service *)&drops);
}

static void configurations(void)
{
    sw_config config;
    uint32_t cpus[1] = {0};
    sw_service *service = NULL;

    driven(&config);
    STATUS(sw_service_start(&config, NULL), SW_INVALID);
    STATUS(sw_service_start(NULL, NULL), SW_INVALID);
    sw_config_init(NULL);
#define BAD(field, value)                                                                          \
    driven(&config);                                                                               \
    config.field = value;                                                                          \
    no_service(&config);
    BAD(size, 0)
    BAD(size, sizeof(sw_config) - 1)
    BAD(size, SIZE_MAX)
    BAD(mode, 2)
    BAD(mode, UINT32_MAX)
    BAD(mode, SW_MODE_THREADED) /* with a manual clock */
    BAD(clock, 3)
    BAD(shards, 257)
    BAD(pinning, 3)
    BAD(pinning, SW_PIN_LIST) /* with no list */
    BAD(tick_ns, 999)
    BAD(tick_ns, UINT64_C(3600000000001))
    BAD(max_timers, (UINT64_C(1) << 28) + 1)
#undef BAD
    driven(&config);
    config.pinning = SW_PIN_LIST;
    config.cpus = cpus;
    no_service(&config);

    /* Not UTF-8. */
    driven(&config);
    config.thread_name = "\xff";
    no_service(&config);

    /* A CPU that no machine has: refused by the system, and errno says why. */
    sw_config_init(&config);
    cpus[0] = UINT32_MAX;
    config.pinning = SW_PIN_LIST;
    config.cpus = cpus;
    config.cpu_count = 1;
    config.shards = 2;
    errno = 0;
    STATUS(sw_service_start(&config, &service), SW_SYSTEM);
    EQUAL((unsigned)errno, EINVAL);
    CHECK(service == NULL);

    struct later_config later;
    memset(&later, 0, sizeof later);
    driven(&later.config);
    later.config.size = sizeof later;
    later.more[1] = 1;
    no_service(&later.config);
    later.more[1] = 0;
    OK(sw_service_start(&later.config, &service));
    OK(sw_service_free(service));
}

static void without_a_service(void)
{
    sw_timer timer = 77;
    sw_timer_spec specs[2] = {ready(), ready()};
    size_t count = 77;
    uint64_t number = 77;
    int fd = 77;
    char text[8];
    sw_queue *queue = NULL;
    sw_event event;
    sw_stats stats;
    memset(&stats, 0, sizeof stats);
    stats.size = sizeof stats;

    STATUS(sw_service_stop(NULL, NULL, NULL, &number), SW_INVALID);
    EQUAL(sw_shard_count(NULL), 0);
    EQUAL(sw_clock_now(NULL), 0);
    STATUS(sw_clock_advance(NULL, 1), SW_INVALID);
    STATUS(sw_timer_start(NULL, 1, call, NULL, &timer), SW_INVALID);
    STATUS(sw_timer_start_at(NULL, 1, call, NULL, &timer), SW_INVALID);
    STATUS(sw_timer_start_every(NULL, 1, call, NULL, &timer), SW_INVALID);
    STATUS(sw_timer_start_spec(NULL, specs, &timer), SW_INVALID);
    EQUAL(dropped(), 1);
    STATUS(sw_timer_start_batch(NULL, specs, 2, &timer), SW_INVALID);
    EQUAL(dropped(), 2);
    STATUS(sw_timer_start_batch(NULL, specs, 0, &timer), SW_INVALID);
    STATUS(sw_timer_cancel(NULL, 1), SW_INVALID);
    STATUS(sw_timer_cancel_wait(NULL, 1), SW_INVALID);
    STATUS(sw_timer_cancel_batch(NULL, &timer, 1, &count), SW_INVALID);
    STATUS(sw_timer_reset(NULL, 1, 1), SW_INVALID);
    STATUS(sw_timer_reset_at(NULL, 1, 1), SW_INVALID);
    STATUS(sw_timer_remaining(NULL, 1, &number), SW_INVALID);
    STATUS(sw_shard_attach(NULL, 0, SW_ATTACH_SHARED), SW_INVALID);
    STATUS(sw_shard_detach(NULL, 0), SW_INVALID);
    STATUS(sw_shard_poll(NULL, 0, 0, &count), SW_INVALID);
    STATUS(sw_shard_next(NULL, 0, &number), SW_INVALID);
    STATUS(sw_shard_fd(NULL, 0, &fd), SW_INVALID);
    STATUS(sw_queue_new(NULL, &queue), SW_INVALID);
    STATUS(sw_queue_poll(NULL, &event, 1, &count), SW_INVALID);
    STATUS(sw_queue_fd(NULL, &fd), SW_INVALID);
    STATUS(sw_queue_free(NULL), SW_INVALID);
    STATUS(sw_stats_read(NULL, 0, &stats), SW_INVALID);
    STATUS(sw_stats_prometheus(NULL, text, sizeof text, &count), SW_INVALID);
    STATUS(sw_stats_report(NULL, text, sizeof text, &count), SW_INVALID);
    STATUS(sw_details_read(NULL, 0, NULL), SW_INVALID);
    STATUS(sw_service_trim(NULL), SW_INVALID);
    STATUS(sw_shard_visit(NULL, 0, NULL, NULL, 1, NULL), SW_INVALID);
    STATUS(sw_timer_start_spread(NULL, NULL, 0, 1, NULL), SW_INVALID);
    STATUS(sw_service_on_stuck(NULL, NULL, NULL), SW_INVALID);
    EQUAL(timer, 77);
    EQUAL(number, 77);
    EQUAL(count, 77);
    EQUAL((unsigned)fd, 77);
    CHECK(queue == NULL);
}

static void specs(sw_service *service)
{
    sw_timer timer = 77;
    sw_timer_spec spec;
    sw_timer_spec_init(NULL);
    STATUS(sw_timer_start_spec(service, NULL, &timer), SW_INVALID);

    /* Nothing of a struct with such a size can be read. */
#define UNREADABLE(value)                                                                          \
    spec = ready();                                                                                \
    spec.size = value;                                                                             \
    STATUS(sw_timer_start_spec(service, &spec, &timer), SW_INVALID);                               \
    EQUAL(dropped(), 0);
    UNREADABLE(0)
    UNREADABLE(sizeof spec - 1)
    UNREADABLE(SIZE_MAX)

#define BAD(field, value)                                                                          \
    spec = ready();                                                                                \
    spec.field = value;                                                                            \
    STATUS(sw_timer_start_spec(service, &spec, &timer), SW_INVALID);                               \
    EQUAL(dropped(), 1);
    BAD(callback, NULL)
    BAD(shard, 1)
    BAD(flags, 8)
    BAD(flags, SW_TIMER_BURST)       /* without a period */
    BAD(flags, SW_TIMER_FIXED_DELAY) /* without a period */
    spec.period_ns = 1;
    spec.flags = SW_TIMER_FIXED_DELAY | SW_TIMER_BURST;
    STATUS(sw_timer_start_spec(service, &spec, &timer), SW_INVALID);
    EQUAL(dropped(), 1);

    struct later_spec later;
    memset(&later, 0, sizeof later);
    later.spec = ready();
    later.spec.size = sizeof later;
    later.more[0] = 1;
    STATUS(sw_timer_start_spec(service, &later.spec, &timer), SW_INVALID);
    EQUAL(dropped(), 1);
    EQUAL(timer, 77);
    later.more[0] = 0;
    OK(sw_timer_start_spec(service, &later.spec, &timer));
    OK(sw_timer_cancel(service, timer));
    EQUAL(dropped(), 1);
}

static void batches(sw_service *service)
{
    sw_timer timers[3] = {77, 77, 77};
    sw_timer_spec specs[3] = {ready(), ready(), ready()};

    STATUS(sw_timer_start_batch(service, NULL, 1, timers), SW_INVALID);
    STATUS(sw_timer_start_batch(service, specs, SIZE_MAX, timers), SW_INVALID);
    specs[1].size = 0;
    STATUS(sw_timer_start_batch(service, specs, 3, timers), SW_INVALID);
    EQUAL(dropped(), 2);
    specs[1] = ready();
    specs[2].callback = NULL;
    STATUS(sw_timer_start_batch(service, specs, 3, timers), SW_INVALID);
    EQUAL(dropped(), 3);
    specs[0].size = 0;
    STATUS(sw_timer_start_batch(service, specs, 3, timers), SW_INVALID);
    EQUAL(dropped(), 0);

    struct later_spec later[3];
    memset(later, 0, sizeof later);
    for (int i = 0; i < 3; i++) {
        later[i].spec = ready();
        later[i].spec.size = sizeof later[0];
    }
    later[1].more[1] = 1;
    STATUS(sw_timer_start_batch(service, &later[0].spec, 3, timers), SW_INVALID);
    EQUAL(dropped(), 3);
    EQUAL(timers[0] & timers[1] & timers[2], 77);
    later[1].more[1] = 0;
    OK(sw_timer_start_batch(service, &later[0].spec, 3, timers));
    OK(sw_timer_cancel_batch(service, timers, 3, NULL));
    EQUAL(dropped(), 3);
    STATUS(sw_timer_cancel_batch(service, NULL, 1, NULL), SW_INVALID);
    STATUS(sw_timer_cancel_batch(service, timers, SIZE_MAX, NULL), SW_INVALID);

    /* Full: all or nothing. */
    sw_timer_spec many[9];
    for (int i = 0; i < 9; i++) {
        many[i] = ready();
        many[i].delay_ns = SW_NEVER;
    }
    STATUS(sw_timer_start_batch(service, many, 9, NULL), SW_FULL);
    EQUAL(dropped(), 9);
    OK(sw_timer_start_batch(service, many, 8, NULL));
    STATUS(sw_timer_start_spec(service, many, NULL), SW_FULL);
    EQUAL(dropped(), 1);
}

static void the_rest(sw_service *service)
{
    sw_event event;
    sw_queue *queue = NULL;
    size_t count = 0;
    struct later_stats later;
    sw_stats *stats = &later.stats;

    STATUS(sw_timer_start(service, 1, NULL, NULL, NULL), SW_INVALID);
    STATUS(sw_timer_start_at(service, 1, NULL, NULL, NULL), SW_INVALID);
    STATUS(sw_timer_start_every(service, 1, NULL, NULL, NULL), SW_INVALID);
    STATUS(sw_timer_start_every(service, 0, call, NULL, NULL), SW_INVALID);
    STATUS(sw_timer_remaining(service, 1, NULL), SW_INVALID);
    sw_timer invented[] = {0, 1, UINT64_MAX, UINT64_C(0x8000000000000000), UINT64_C(1) << 27};
    for (size_t i = 0; i < sizeof invented / sizeof invented[0]; i++) {
        sw_status status = sw_timer_cancel(service, invented[i]);
        CHECK(status == SW_NOT_FOUND || status == SW_INVALID);
        status = sw_timer_reset(service, invented[i], 0);
        CHECK(status == SW_NOT_FOUND || status == SW_INVALID);
    }

    STATUS(sw_shard_attach(service, 0, 2), SW_INVALID);
    STATUS(sw_shard_attach(service, 1, SW_ATTACH_SHARED), SW_INVALID);
    STATUS(sw_shard_poll(service, 1, 0, NULL), SW_INVALID);
    STATUS(sw_shard_poll(service, SW_SHARD_ANY, 0, NULL), SW_INVALID);
    STATUS(sw_shard_next(service, 0, NULL), SW_INVALID);
    STATUS(sw_shard_fd(service, 0, NULL), SW_INVALID);
    STATUS(sw_queue_new(service, NULL), SW_INVALID);
    OK(sw_queue_new(service, &queue));
    STATUS(sw_queue_poll(queue, NULL, 1, &count), SW_INVALID);
    STATUS(sw_queue_poll(queue, &event, 1, NULL), SW_INVALID);
    STATUS(sw_queue_fd(queue, NULL), SW_INVALID);

    STATUS(sw_stats_prometheus(service, NULL, 1, &count), SW_INVALID);
    STATUS(sw_stats_report(service, NULL, 1, &count), SW_INVALID);
    STATUS(sw_details_read(service, 0, NULL), SW_INVALID);
    STATUS(sw_service_on_stuck(service, NULL, NULL), SW_INVALID);
    STATUS(sw_stats_read(service, 0, NULL), SW_INVALID);
    memset(&later, 0, sizeof later);
    STATUS(sw_stats_read(service, 0, stats), SW_INVALID);
    stats->size = sizeof *stats - 1;
    STATUS(sw_stats_read(service, 0, stats), SW_INVALID);
    stats->size = sizeof *stats;
    STATUS(sw_stats_read(service, 1, stats), SW_INVALID);
    EQUAL(stats->pending, 0);
    stats->size = sizeof later;
    later.more[1] = 1;
    STATUS(sw_stats_read(service, 0, stats), SW_INVALID);
    later.more[1] = 0;
    OK(sw_stats_read(service, 0, stats));
    EQUAL(stats->size, sizeof later);
    EQUAL(stats->pending, 8);
}

/* A queue belongs to its service alone. */
static void foreign_queue(sw_service *service)
{
    sw_config config;
    sw_service *other = NULL;
    sw_queue *queue = NULL;
    sw_timer_spec spec = ready();
    driven(&config);
    OK(sw_service_start(&config, &other));
    OK(sw_queue_new(other, &queue));
    spec.queue = queue;
    STATUS(sw_timer_start_spec(service, &spec, NULL), SW_INVALID);
    EQUAL(dropped(), 1);
    OK(sw_service_free(other));
}

int main(void)
{
    sw_config config;
    sw_service *service = NULL;
    configurations();
    without_a_service();
    driven(&config);
    OK(sw_service_start(&config, &service));
    specs(service);
    foreign_queue(service);
    batches(service);
    the_rest(service);
    OK(sw_service_free(service));
    EQUAL(dropped(), 8);
    EQUAL(calls, 0);
    return 0;
}
