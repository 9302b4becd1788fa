/*
 * What a program may rely on, written as code that compiles only if the header keeps it: each
 * function's exact type, each field's, each constant's value. Compiled as C and as C++, never run.
 */
#include "shardwheel.h"

/* ------------------------------------------------------------ functions */

const char *(*const status_text)(int32_t) = sw_status_text;
const char *(*const version)(void) = sw_version;

void (*const config_init)(sw_config *) = sw_config_init;
sw_status (*const service_start)(const sw_config *, sw_service **) = sw_service_start;
sw_status (*const service_stop)(sw_service *, sw_unfired, void *, uint64_t *) = sw_service_stop;
sw_status (*const service_free)(sw_service *) = sw_service_free;
uint32_t (*const shard_count)(const sw_service *) = sw_shard_count;
uint64_t (*const clock_now)(const sw_service *) = sw_clock_now;
sw_status (*const clock_advance)(sw_service *, uint64_t) = sw_clock_advance;

void (*const spec_init)(sw_timer_spec *) = sw_timer_spec_init;
sw_status (*const start)(sw_service *, uint64_t, sw_callback, void *, sw_timer *) = sw_timer_start;
sw_status (*const start_at)(sw_service *, uint64_t, sw_callback, void *,
                            sw_timer *) = sw_timer_start_at;
sw_status (*const start_every)(sw_service *, uint64_t, sw_callback, void *,
                               sw_timer *) = sw_timer_start_every;
sw_status (*const start_spec)(sw_service *, const sw_timer_spec *,
                              sw_timer *) = sw_timer_start_spec;
sw_status (*const start_batch)(sw_service *, const sw_timer_spec *, size_t,
                               sw_timer *) = sw_timer_start_batch;
sw_status (*const cancel)(sw_service *, sw_timer) = sw_timer_cancel;
sw_status (*const cancel_wait)(sw_service *, sw_timer) = sw_timer_cancel_wait;
sw_status (*const cancel_batch)(sw_service *, const sw_timer *, size_t,
                                size_t *) = sw_timer_cancel_batch;
sw_status (*const reset)(sw_service *, sw_timer, uint64_t) = sw_timer_reset;
sw_status (*const reset_at)(sw_service *, sw_timer, uint64_t) = sw_timer_reset_at;
sw_status (*const remaining)(sw_service *, sw_timer, uint64_t *) = sw_timer_remaining;
uint32_t (*const timer_shard)(sw_timer) = sw_timer_shard;

sw_status (*const attach)(sw_service *, uint32_t, uint32_t) = sw_shard_attach;
sw_status (*const detach)(sw_service *, uint32_t) = sw_shard_detach;
sw_status (*const shard_poll)(sw_service *, uint32_t, size_t, size_t *) = sw_shard_poll;
sw_status (*const shard_next)(sw_service *, uint32_t, uint64_t *) = sw_shard_next;
sw_status (*const shard_fd)(sw_service *, uint32_t, int *) = sw_shard_fd;

sw_status (*const queue_new)(sw_service *, sw_queue **) = sw_queue_new;
sw_status (*const queue_poll)(sw_queue *, sw_event *, size_t, size_t *) = sw_queue_poll;
sw_status (*const queue_fd)(sw_queue *, int *) = sw_queue_fd;
sw_status (*const queue_free)(sw_queue *) = sw_queue_free;

sw_status (*const stats_read)(sw_service *, uint32_t, sw_stats *) = sw_stats_read;
sw_status (*const stats_prometheus)(sw_service *, char *, size_t, size_t *) = sw_stats_prometheus;
sw_status (*const stats_report)(sw_service *, char *, size_t, size_t *) = sw_stats_report;
sw_status (*const shard_visit)(sw_service *, uint32_t, uint64_t *, sw_pending *, size_t, size_t *) = sw_shard_visit;
sw_status (*const timer_start_spread)(sw_service *, const sw_timer_spec *, size_t, uint64_t, sw_timer *) = sw_timer_start_spread;
sw_status (*const service_trim)(sw_service *) = sw_service_trim;
sw_status (*const details_read)(sw_service *, uint32_t, sw_details *) = sw_details_read;
sw_status (*const on_stuck)(sw_service *, void (*)(void *, uint32_t, sw_timer, uint64_t), void *) = sw_service_on_stuck;

/* --------------------------------------------------- types of functions */

static void a_callback(void *ctx, const sw_expiry *expiry) { (void)ctx, (void)expiry; }
static void a_drop(void *ctx) { (void)ctx; }
static void an_unfired(void *arg, sw_timer timer, void *ctx, uint64_t deadline_ns)
{
    (void)arg, (void)timer, (void)ctx, (void)deadline_ns;
}
static void a_thread_hook(void *hook_arg, uint32_t shard) { (void)hook_arg, (void)shard; }
static void a_slow_hook(void *hook_arg, uint32_t shard, sw_timer timer, void *ctx,
                        uint64_t elapsed_ns)
{
    (void)hook_arg, (void)shard, (void)timer, (void)ctx, (void)elapsed_ns;
}
sw_callback callback = a_callback;
sw_drop drop = a_drop;
sw_unfired unfired = an_unfired;

/* --------------------------------------------------------------- fields */

#define FIELD(type, object, field)                                                                 \
    {                                                                                              \
        type *exact = &(object)->field;                                                            \
        (void)exact;                                                                               \
    }

typedef const uint32_t *cpu_list;
typedef const char *name;
typedef void *any;
typedef void (*thread_hook)(void *, uint32_t);
typedef void (*slow_hook)(void *, uint32_t, sw_timer, void *, uint64_t);
typedef sw_queue *queue;

void fields(struct sw_config *c, struct sw_timer_spec *s, struct sw_expiry *x, struct sw_event *e,
            struct sw_stats *t);
void fields(struct sw_config *c, struct sw_timer_spec *s, struct sw_expiry *x, struct sw_event *e,
            struct sw_stats *t)
{
    FIELD(size_t, c, size)
    FIELD(uint32_t, c, mode)
    FIELD(uint32_t, c, clock)
    FIELD(uint32_t, c, shards)
    FIELD(uint32_t, c, pinning)
    FIELD(cpu_list, c, cpus)
    FIELD(size_t, c, cpu_count)
    FIELD(uint64_t, c, tick_ns)
    FIELD(uint64_t, c, max_timers)
    FIELD(uint64_t, c, slow_callback_ns)
    FIELD(name, c, thread_name)
    FIELD(any, c, hook_arg)
    FIELD(thread_hook, c, on_thread_start)
    FIELD(thread_hook, c, on_thread_stop)
    FIELD(slow_hook, c, on_slow_callback)
    c->on_thread_start = a_thread_hook;
    c->on_slow_callback = a_slow_hook;

    FIELD(size_t, s, size)
    FIELD(uint64_t, s, delay_ns)
    FIELD(uint64_t, s, period_ns)
    FIELD(uint64_t, s, slack_ns)
    FIELD(uint32_t, s, flags)
    FIELD(uint32_t, s, shard)
    FIELD(sw_callback, s, callback)
    FIELD(any, s, ctx)
    FIELD(sw_drop, s, drop)
    FIELD(queue, s, queue)

    FIELD(sw_timer, x, timer)
    FIELD(uint64_t, x, deadline_ns)
    FIELD(uint64_t, x, now_ns)
    FIELD(uint64_t, x, missed)

    FIELD(sw_expiry, e, expiry)
    FIELD(any, e, ctx)

    FIELD(size_t, t, size)
    FIELD(uint64_t, t, pending)
    FIELD(uint64_t, t, high_water)
    FIELD(uint64_t, t, started)
    FIELD(uint64_t, t, fired)
    FIELD(uint64_t, t, ended_by_fire)
    FIELD(uint64_t, t, cancelled)
    FIELD(uint64_t, t, returned)
    FIELD(uint64_t, t, rejected)
    FIELD(uint64_t, t, missed)
    FIELD(uint64_t, t, wakeups)
    FIELD(uint64_t, t, slow_callbacks)
    FIELD(uint64_t, t, memory_bytes)
    FIELD(uint64_t, t, overdue_ns)
    FIELD(uint64_t, t, lateness_p50_ns)
    FIELD(uint64_t, t, lateness_p99_ns)
    FIELD(uint64_t, t, lateness_p999_ns)
    FIELD(uint64_t, t, lateness_max_ns)
    FIELD(uint64_t, t, callback_p50_ns)
    FIELD(uint64_t, t, callback_p99_ns)
    FIELD(uint64_t, t, callback_p999_ns)
    FIELD(uint64_t, t, callback_max_ns)
}

/* ------------------------------------------------------------ constants */

#define IS(constant, value) typedef char constant##_is[(constant) == (value) ? 1 : -1];

IS(SW_OK, 0)
IS(SW_RUNNING, 1)
IS(SW_NOT_FOUND, 2)
IS(SW_INVALID, -1)
IS(SW_FULL, -2)
IS(SW_NO_MEMORY, -3)
IS(SW_STOPPED, -4)
IS(SW_WOULD_DEADLOCK, -5)
IS(SW_BUSY, -6)
IS(SW_UNSUPPORTED, -7)
IS(SW_FORKED, -8)
IS(SW_SYSTEM, -9)
IS(SW_MODE_THREADED, 0)
IS(SW_MODE_DRIVEN, 1)
IS(SW_CLOCK_MONOTONIC, 0)
IS(SW_CLOCK_BOOTTIME, 1)
IS(SW_CLOCK_MANUAL, 2)
IS(SW_PIN_AUTO, 0)
IS(SW_PIN_NONE, 1)
IS(SW_PIN_LIST, 2)
IS(SW_TIMER_ABSOLUTE, 1)
IS(SW_TIMER_FIXED_DELAY, 2)
IS(SW_TIMER_BURST, 4)
IS(SW_ATTACH_SHARED, 0)
IS(SW_ATTACH_EXCLUSIVE, 1)
IS(SW_TIMER_NONE, 0)
IS(SW_SHARD_ANY, UINT32_MAX)
IS(SW_NEVER, UINT64_MAX)

/* A constant must also be of a size that can be printed and passed on as what it stands for. */
typedef char none_is_a_handle[sizeof(SW_TIMER_NONE) == sizeof(sw_timer) ? 1 : -1];
typedef char any_is_a_shard[sizeof(SW_SHARD_ANY) == sizeof(uint32_t) ? 1 : -1];
typedef char never_is_a_deadline[sizeof(SW_NEVER) == sizeof(uint64_t) ? 1 : -1];
typedef char a_handle_is_a_number[sizeof(sw_timer) == sizeof(uint64_t) ? 1 : -1];

/* Tags and names of the enums, and flags as numbers. */
void names(void);
void names(void)
{
    enum sw_status status = SW_RUNNING;
    sw_mode mode = SW_MODE_DRIVEN;
    enum sw_mode tagged_mode = mode;
    sw_clock clock = SW_CLOCK_MANUAL;
    enum sw_clock tagged_clock = clock;
    sw_pinning pinning = SW_PIN_LIST;
    enum sw_pinning tagged_pinning = pinning;
    uint32_t flags = SW_TIMER_ABSOLUTE | SW_TIMER_BURST;
    uint32_t how = SW_ATTACH_EXCLUSIVE;
    sw_timer timer = SW_TIMER_NONE;
    struct sw_service *service = 0;
    struct sw_queue *a_queue = 0;
    bool included = true;

    (void)status, (void)tagged_mode, (void)tagged_clock, (void)tagged_pinning, (void)flags;
    (void)how, (void)timer, (void)service, (void)a_queue, (void)included;
}
