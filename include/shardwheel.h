/**
 * @file shardwheel.h
 * shardwheel: millions of timeouts on pinned timing wheels, from C and C++.
 *
 * Generated from the library's sources (src/capi); changes belong there.
 *
 * For every function: a pointer points to what its type says for as long as the call lasts. NULL
 * is SW_INVALID where the function does not allow it. Outputs are written only when the call
 * returns SW_OK. Times are nanoseconds. Functions of the host are called without a lock of the
 * library held, and a C++ exception that leaves one ends the process by std::terminate.
 */

#ifndef SHARDWHEEL_H
#define SHARDWHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Let the library choose the shard (start); all shards (statistics).
 */
#define SW_SHARD_ANY UINT32_MAX

/**
 * A deadline that does not come.
 */
#define SW_NEVER UINT64_MAX

/**
 * Where `sw_shard_visit` stands when it has told of all timers.
 */
#define SW_VISIT_END UINT64_MAX

/**
 * Flag of a timer: `delay_ns` is a deadline on the service's clock.
 */
#define SW_TIMER_ABSOLUTE (1 << 0)

/**
 * Flag of a periodic timer: the next deadline counts from the callback's end.
 */
#define SW_TIMER_FIXED_DELAY (1 << 1)

/**
 * Flag of a periodic timer: every missed period is served, one call each. With a queue, those that
 * find an event of the timer waiting add to its `missed`.
 */
#define SW_TIMER_BURST (1 << 2)

/**
 * Attach, and leave starts, cancels and resets on the shard to every thread.
 */
#define SW_ATTACH_SHARED 0

/**
 * Attach, and keep other threads' starts, cancels and resets off the shard: `SW_BUSY` for them.
 */
#define SW_ATTACH_EXCLUSIVE 1

/**
 * What a call answers. 0 and above: the call worked, and this is what it found. Below 0: it was
 * refused and changed nothing, unless the call says otherwise.
 */
typedef enum sw_status {
    /**
     * Done.
     */
    SW_OK = 0,
    /**
     * The timer's callback is running now.
     */
    SW_RUNNING = 1,
    /**
     * No such timer any more: it fired, was cancelled, or was returned by stop.
     */
    SW_NOT_FOUND = 2,
    /**
     * An argument is out of its range, or NULL where that is not allowed.
     */
    SW_INVALID = -1,
    /**
     * The shard holds `max_timers` live timers already.
     */
    SW_FULL = -2,
    /**
     * The allocator refused.
     */
    SW_NO_MEMORY = -3,
    /**
     * The service has been stopped.
     */
    SW_STOPPED = -4,
    /**
     * A blocking call from the thread that it would wait for.
     */
    SW_WOULD_DEADLOCK = -5,
    /**
     * The shard is another thread's (which polls it now, or has attached to it), or poll was
     * called from inside a callback.
     */
    SW_BUSY = -6,
    /**
     * Not in this mode: poll on a threaded service, advance on a real clock.
     */
    SW_UNSUPPORTED = -7,
    /**
     * The service belongs to the parent process.
     */
    SW_FORKED = -8,
    /**
     * The operating system refused; `errno` says why.
     */
    SW_SYSTEM = -9,
} sw_status;

/**
 * Who runs the wheels: a value of `sw_config.mode`.
 */
typedef enum sw_mode {
    /**
     * One thread for each shard, owned by the service.
     */
    SW_MODE_THREADED = 0,
    /**
     * The host's own threads poll the shards.
     */
    SW_MODE_DRIVEN = 1,
} sw_mode;

/**
 * The clock that deadlines are counted on, in nanoseconds: a value of `sw_config.clock`.
 */
typedef enum sw_clock {
    /**
     * Stands still while the machine is suspended.
     */
    SW_CLOCK_MONOTONIC = 0,
    /**
     * Goes on while the machine is suspended.
     */
    SW_CLOCK_BOOTTIME = 1,
    /**
     * Starts at 0 and is moved by `sw_clock_advance` alone. Driven mode only.
     */
    SW_CLOCK_MANUAL = 2,
} sw_clock;

/**
 * Which CPU each shard's thread is pinned to (threaded mode): a value of `sw_config.pinning`.
 */
typedef enum sw_pinning {
    /**
     * Shard i to the i-th (modulo their number) CPU that the process may use.
     */
    SW_PIN_AUTO = 0,
    /**
     * Not pinned.
     */
    SW_PIN_NONE = 1,
    /**
     * Shard i to `cpus[i % cpu_count]`.
     */
    SW_PIN_LIST = 2,
} sw_pinning;

/**
 * A queue of expiries that the host takes instead of being called back. Opaque.
 */
typedef struct sw_queue sw_queue;

/**
 * A timer service: a number of shards behind one door. Opaque.
 */
typedef struct sw_service sw_service;

/**
 * A timer's handle: shard, index and generation packed in 64 bits. Never 0 for a live timer. A
 * handle whose timer has ended never comes to mean another one.
 */
typedef uint64_t sw_timer;

/**
 * What a service is built from. Fill it with `sw_config_init`, then change what should differ.
 * It is copied by `sw_service_start`, together with `cpus` and `thread_name`.
 */
typedef struct sw_config {
    /**
     * `sizeof(sw_config)`, set by `sw_config_init`.
     */
    size_t size;
    /**
     * A value of `enum sw_mode`. Default: `SW_MODE_THREADED`.
     */
    uint32_t mode;
    /**
     * A value of `enum sw_clock`. Default: `SW_CLOCK_MONOTONIC`.
     */
    uint32_t clock;
    /**
     * 1 to 256; 0: one for each CPU that the process may use. Default: 0.
     */
    uint32_t shards;
    /**
     * A value of `enum sw_pinning`. Default: `SW_PIN_AUTO`.
     */
    uint32_t pinning;
    /**
     * The CPUs for `SW_PIN_LIST`; otherwise not looked at.
     */
    const uint32_t *cpus;
    /**
     * How many `cpus` there are; at least 1 for `SW_PIN_LIST`.
     */
    size_t cpu_count;
    /**
     * Granularity, 1 microsecond to 1 hour; 0: 1 ms. A timer comes at the latest one tick after
     * its deadline when its shard is not overloaded.
     */
    uint64_t tick_ns;
    /**
     * Live timers in each shard, at most 2^28; 0: 2^24.
     */
    uint64_t max_timers;
    /**
     * A callback that takes longer than this is counted and told to `on_slow_callback`; 0: off.
     */
    uint64_t slow_callback_ns;
    /**
     * Prefix of the threads' names, "PREFIX-SHARD", UTF-8, cut to 15 bytes. NULL: "wheel".
     */
    const char *thread_name;
    /**
     * First argument of each hook.
     */
    void *hook_arg;
    /**
     * Runs on a shard's thread as it begins, after it is pinned and named. May be NULL.
     */
    void (*on_thread_start)(void *hook_arg, uint32_t shard);
    /**
     * Runs on a shard's thread as it ends. May be NULL.
     */
    void (*on_thread_stop)(void *hook_arg, uint32_t shard);
    /**
     * Told of a callback that took longer than `slow_callback_ns`, after it and before its drop.
     * May be NULL.
     */
    void (*on_slow_callback)(void *hook_arg,
                             uint32_t shard,
                             sw_timer timer,
                             void *ctx,
                             uint64_t elapsed_ns);
} sw_config;

/**
 * Told by `sw_service_stop`, on its thread, of a timer that had not fired: the `arg` given to
 * stop, the timer, its `ctx` and its deadline on the service's clock.
 */
typedef void (*sw_unfired)(void *arg, sw_timer timer, void *ctx, uint64_t deadline_ns);

/**
 * What a callback, or a queue, is told of one expiry.
 */
typedef struct sw_expiry {
    /**
     * Whose expiry it is.
     */
    sw_timer timer;
    /**
     * When it was due, on the service's clock. Of a periodic timer: the grid point that is served.
     */
    uint64_t deadline_ns;
    /**
     * The service's clock as this turn began; never before `deadline_ns`.
     */
    uint64_t now_ns;
    /**
     * Whole periods that went by unserved before this expiry (periodic timers).
     */
    uint64_t missed;
} sw_expiry;

/**
 * A timer's callback. It runs on the shard's thread (threaded mode) or inside `sw_shard_poll`
 * (driven mode), never twice at a time on one shard, and may call everything except what would
 * wait for its own thread. `expiry` is valid during the call. A C++ exception must not leave it:
 * the process would end by `std::terminate`.
 */
typedef void (*sw_callback)(void *ctx, const struct sw_expiry *expiry);

/**
 * Called exactly once with a timer's `ctx`, when the timer has ended or its start was refused.
 */
typedef void (*sw_drop)(void *ctx);

/**
 * A timer with everything that can be asked of it. Fill it with `sw_timer_spec_init`, then change
 * what should differ.
 */
typedef struct sw_timer_spec {
    /**
     * `sizeof(sw_timer_spec)`, set by `sw_timer_spec_init`.
     */
    size_t size;
    /**
     * From now, or the deadline with `SW_TIMER_ABSOLUTE`. The whole range is accepted; what lies
     * in the past is due at the next turn. Default: 0.
     */
    uint64_t delay_ns;
    /**
     * Distance of a periodic timer's deadlines; 0: one shot. Default: 0.
     */
    uint64_t period_ns;
    /**
     * The timer may come this much later, to share a wake-up. Default: 0.
     */
    uint64_t slack_ns;
    /**
     * `SW_TIMER_*` flags. `SW_TIMER_FIXED_DELAY` and `SW_TIMER_BURST` exclude each other and want
     * a period. Default: 0.
     */
    uint32_t flags;
    /**
     * `SW_SHARD_ANY` or an index. Default: `SW_SHARD_ANY`.
     */
    uint32_t shard;
    /**
     * What to call; NULL only with a queue.
     */
    sw_callback callback;
    /**
     * Handed to `callback`, `drop`, `unfired` and the queue. May be NULL.
     */
    void *ctx;
    /**
     * Called once with `ctx` when the timer has ended, and also when its start is refused. Not
     * called when a one-shot's event is taken from a queue: `ctx` is then the taker's. May be
     * NULL.
     */
    sw_drop drop;
    /**
     * Deliver here instead of calling back: a queue of the same service. May be NULL.
     */
    struct sw_queue *queue;
} sw_timer_spec;

/**
 * A timer that is pending, as `sw_shard_visit` tells of it.
 */
typedef struct sw_pending {
    /**
     * Its handle.
     */
    sw_timer timer;
    /**
     * When it is due, on the service's clock; `SW_NEVER` if that does not come.
     */
    uint64_t deadline_ns;
    /**
     * Its period; 0: one shot.
     */
    uint64_t period_ns;
    /**
     * What its callback gets.
     */
    void *ctx;
} sw_pending;

/**
 * One expiry taken from a queue.
 */
typedef struct sw_event {
    /**
     * What came due.
     */
    struct sw_expiry expiry;
    /**
     * The timer's `ctx`; of a one-shot it is the taker's from now on.
     */
    void *ctx;
} sw_event;

/**
 * The numbers of one shard, or of all together. Counters count since the service started; when
 * the service is quiet, `started == ended_by_fire + cancelled + returned + pending`.
 */
typedef struct sw_stats {
    /**
     * `sizeof(sw_stats)`, set by the caller.
     */
    size_t size;
    /**
     * Timers that are live now.
     */
    uint64_t pending;
    /**
     * Most timers live at once.
     */
    uint64_t high_water;
    /**
     * Timers accepted.
     */
    uint64_t started;
    /**
     * Callbacks run, or events taken.
     */
    uint64_t fired;
    /**
     * Timers that ended by firing.
     */
    uint64_t ended_by_fire;
    /**
     * Timers that ended by a cancel.
     */
    uint64_t cancelled;
    /**
     * Timers handed back by stop.
     */
    uint64_t returned;
    /**
     * Starts refused with `SW_FULL`.
     */
    uint64_t rejected;
    /**
     * Periods that went by unserved.
     */
    uint64_t missed;
    /**
     * Times that a shard's thread woke.
     */
    uint64_t wakeups;
    /**
     * Callbacks that took longer than `slow_callback_ns`.
     */
    uint64_t slow_callbacks;
    /**
     * Bytes held for timers and wheels.
     */
    uint64_t memory_bytes;
    /**
     * How far the most overdue timer is behind now; 0: none is due.
     */
    uint64_t overdue_ns;
    /**
     * Lateness that half of the expiries kept within: from the deadline to the reading of the clock
     * with which the slice of at most 64 expiries began that it was delivered in (to a queue: put
     * there), or that followed a long callback. This and the other percentiles are never below the truth, and less than 3.2 % above.
     */
    uint64_t lateness_p50_ns;
    /**
     * Lateness that 99 % of the expiries kept within.
     */
    uint64_t lateness_p99_ns;
    /**
     * Lateness that 99.9 % of the expiries kept within.
     */
    uint64_t lateness_p999_ns;
    /**
     * Lateness of the latest expiry.
     */
    uint64_t lateness_max_ns;
    /**
     * Time that half of the callbacks kept within. The first two of a turn are timed and one in 64
     * of the others, unless `slow_callback_ns` was set: then each is.
     */
    uint64_t callback_p50_ns;
    /**
     * Time that 99 % of the callbacks kept within.
     */
    uint64_t callback_p99_ns;
    /**
     * Time that 99.9 % of the callbacks kept within.
     */
    uint64_t callback_p999_ns;
    /**
     * Time of the longest callback that was timed.
     */
    uint64_t callback_max_ns;
} sw_stats;

/**
 * What a shard looks like inside, or all together. What its owner alone knows (reminders, buckets)
 * is as it said at the end of one of its last 16 turns, or before its last long rest.
 */
typedef struct sw_details {
    /**
     * `sizeof(sw_details)`, set by the caller.
     */
    size_t size;
    /**
     * Reminders in the wheel of timers that live.
     */
    uint64_t reminders_live;
    /**
     * Reminders that cancels and resets have left behind, until they come up or are dropped.
     */
    uint64_t reminders_dead;
    /**
     * Buckets that hold something, by level: one of level n spans 64 to the power of n ticks.
     */
    uint64_t buckets_occupied[11];
    /**
     * Reminders in the longest bucket.
     */
    uint64_t bucket_longest;
    /**
     * Turns: the shard's owner takes in what others handed over, and delivers what is due.
     */
    uint64_t turns;
    /**
     * Time that half of the turns kept within. Of the short turns of a driven shard one in 16 is
     * timed.
     */
    uint64_t turn_p50_ns;
    /**
     * Time that 99 % of the turns kept within.
     */
    uint64_t turn_p99_ns;
    /**
     * Time that 99.9 % of the turns kept within.
     */
    uint64_t turn_p999_ns;
    /**
     * Time of the longest turn that was timed.
     */
    uint64_t turn_max_ns;
    /**
     * Starts and resets that wait for the owner to take them in. Cancels do not wait: they end
     * the timer where they are made, and leave a dead reminder.
     */
    uint64_t inbox_depth;
    /**
     * Times that a shard's own thread woke because something was due.
     */
    uint64_t wakeups_deadline;
    /**
     * Times that it was woken for an earlier timer.
     */
    uint64_t wakeups_earlier;
    /**
     * Times that it was woken because much waited in an inbox.
     */
    uint64_t wakeups_pressure;
    /**
     * Slots that there is memory for: live, cached and retired ones.
     */
    uint64_t slots_allocated;
    /**
     * Free slots, at hand for starts to come.
     */
    uint64_t slots_cached;
    /**
     * Slots whose handles are used up.
     */
    uint64_t slots_retired;
    /**
     * How long the callback has been running that runs now, with `slow_callback_ns` set; 0: none.
     */
    uint64_t callback_running_ns;
} sw_details;

/**
 * The handle of no timer.
 */
#define SW_TIMER_NONE (sw_timer)0

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What a status means, in a few English words.
 *
 * `status`: any number. Returns static text, never NULL; a number that is no status has a text
 * too. Any thread.
 */
const char *sw_status_text(int32_t status);

/**
 * The library's version, "MAJOR.MINOR.PATCH". Static text, never NULL. Any thread.
 */
const char *sw_version(void);

/**
 * Fills a configuration with the default of each field.
 *
 * `config`: where to; NULL does nothing. Any thread.
 */
void sw_config_init(struct sw_config *config);

/**
 * Starts a service.
 *
 * `config`: what to build; NULL: all defaults. `service`: receives the service; not NULL. It is
 * to be given back with `sw_service_free`. The hooks and `hook_arg` must stay usable, from the
 * service's threads, until it has been stopped.
 *
 * Returns `SW_OK`; `SW_INVALID` (a field out of its range, a wrong `size`, NULL `service`);
 * `SW_NO_MEMORY`; `SW_SYSTEM` (no thread, no descriptor, or a CPU that cannot be pinned to).
 * Any thread.
 */
enum sw_status sw_service_start(const struct sw_config *config, struct sw_service **service);

/**
 * Gives memory that a peak of timers has left behind back to the system: that of free slots at once,
 * that of the wheels by their owners: a service's own threads soon after, a host's in the next
 * poll of each shard. No start, cancel or firing waits for it, but a wheel's owner may be busy with it for
 * some milliseconds for each million timers that there were.
 *
 * Returns `SW_OK`; `SW_NO_MEMORY` (to look for it takes a little); `SW_INVALID`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_service_trim(struct sw_service *service);

/**
 * Sets a hook that is told of callbacks while they still run, once they have run for longer than
 * `slow_callback_ns`. (`on_slow_callback` hears of them when they are over.)
 *
 * No thread is made for it. Who looks: the service's own threads, at the other shards, before they
 * sleep; a thread that polls, after its poll; and every thread that reads statistics. So a
 * shard that is stuck for long is seen for certain if something reads them now and then. The first that
 * finds a stuck callback calls `hook`, on its own thread: once for each callback.
 *
 * `hook`: not NULL; gets `arg`, the shard, the timer, and for how long its callback has run. When it is
 * called the callback may just have ended. Everything is allowed inside but to free the service; both
 * must stay usable until it has been stopped and no other call on it is under way.
 *
 * Returns `SW_OK`; `SW_INVALID` (also: `slow_callback_ns` is 0); `SW_BUSY` (there is a hook
 * already); `SW_STOPPED`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_service_on_stuck(struct sw_service *service,
                                   void (*hook)(void *arg,
                                                uint32_t shard,
                                                sw_timer timer,
                                                uint64_t elapsed_ns),
                                   void *arg);

/**
 * Ends the service: no callback runs after it returns, its threads are joined, and every timer
 * that had not fired is handed to `unfired` once, then dropped. Statistics, the clock,
 * `sw_queue_free`, `sw_service_stop` and `sw_service_free` still work on a stopped service.
 *
 * `unfired`: told of each timer, on this thread; NULL: none is told. `arg`: its first argument.
 * `returned`: receives how many timers had not fired; may be NULL.
 *
 * Returns `SW_OK`, also for a second call, which returns none; `SW_INVALID` (NULL service);
 * `SW_WOULD_DEADLOCK` (on one of the service's own threads, inside one of its callbacks, or in
 * `unfired`);
 * `SW_FORKED`. Any other thread.
 */
enum sw_status sw_service_stop(struct sw_service *service,
                               sw_unfired unfired,
                               void *arg,
                               uint64_t *returned);

/**
 * Stops the service if need be, telling nobody of its timers but their `drop`, then frees it and
 * the queues that are left. No other call on the service may be going on or follow.
 *
 * `service`: NULL does nothing.
 *
 * Returns `SW_OK`; `SW_WOULD_DEADLOCK` (as stop) or `SW_FORKED`: nothing is freed then. Any
 * other thread.
 */
enum sw_status sw_service_free(struct sw_service *service);

/**
 * How many shards the service has.
 *
 * `service`: NULL: 0. Any thread.
 */
uint32_t sw_shard_count(const struct sw_service *service);

/**
 * The service's clock, in nanoseconds. It never steps back.
 *
 * `service`: NULL: 0. Any thread.
 */
uint64_t sw_clock_now(const struct sw_service *service);

/**
 * Moves a manual clock on. Nothing is delivered by it; the next poll of each shard does that.
 *
 * `by_ns`: how far; the clock stops at `SW_NEVER`.
 *
 * Returns `SW_OK`; `SW_INVALID` (NULL service); `SW_UNSUPPORTED` (not a manual clock);
 * `SW_FORKED`. Any thread.
 */
enum sw_status sw_clock_advance(struct sw_service *service, uint64_t by_ns);

/**
 * Fills a timer's description with the default of each field: a one-shot on any shard, at once.
 *
 * `spec`: where to; NULL does nothing. Any thread.
 */
void sw_timer_spec_init(struct sw_timer_spec *spec);

/**
 * Starts a one-shot timer.
 *
 * `delay_ns`: from now; the whole range is accepted, and 0 is due at the shard's next turn,
 * never inside this call. `callback`: not NULL. `ctx`: its first argument. `timer`: receives the
 * handle, before the callback can run; may be NULL.
 *
 * Returns `SW_OK`; `SW_INVALID`; `SW_FULL`; `SW_NO_MEMORY`; `SW_BUSY` (each shard is attached
 * exclusively by another thread); `SW_STOPPED`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_timer_start(struct sw_service *service,
                              uint64_t delay_ns,
                              sw_callback callback,
                              void *ctx,
                              sw_timer *timer);

/**
 * Starts a one-shot timer with a deadline on the service's clock.
 *
 * `deadline_ns`: the whole range is accepted; what lies in the past is due at the shard's next
 * turn, never inside this call. The rest, and what it returns: as `sw_timer_start`.
 */
enum sw_status sw_timer_start_at(struct sw_service *service,
                                 uint64_t deadline_ns,
                                 sw_callback callback,
                                 void *ctx,
                                 sw_timer *timer);

/**
 * Starts a periodic timer, whose first deadline is one period from now. Periods that are missed
 * are skipped and counted in `sw_expiry.missed`; the grid stays.
 *
 * `period_ns`: not 0. The rest, and what it returns: as `sw_timer_start`.
 */
enum sw_status sw_timer_start_every(struct sw_service *service,
                                    uint64_t period_ns,
                                    sw_callback callback,
                                    void *ctx,
                                    sw_timer *timer);

/**
 * Starts a timer as described.
 *
 * `spec`: not NULL; filled by `sw_timer_spec_init` and then changed. Copied. `timer`: receives
 * the handle, before the callback can run; may be NULL.
 *
 * Whenever it is refused, for whatever reason, `spec->drop` has been called with `spec->ctx`,
 * unless `spec` is NULL or its `size` is wrong.
 *
 * Returns `SW_OK`; `SW_INVALID` (also: neither callback nor queue, flags that exclude each other
 * or want a period, a queue of another service); `SW_FULL`; `SW_NO_MEMORY`; `SW_BUSY` (the shard
 * is attached exclusively by another thread); `SW_STOPPED`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_timer_start_spec(struct sw_service *service,
                                   const struct sw_timer_spec *spec,
                                   sw_timer *timer);

/**
 * Cancels a timer. Lock-free, never waits.
 *
 * Returns `SW_OK` (it will not run again, and is not running); `SW_RUNNING` (its callback is
 * running now; a periodic timer will not run again); `SW_NOT_FOUND` (it had ended before);
 * `SW_INVALID` (NULL service, or no handle of it); `SW_BUSY` (the shard is attached exclusively
 * by another thread); `SW_STOPPED`; `SW_FORKED`. With `SW_OK` the timer's drop has run, on this
 * thread. In a periodic timer's own callback: `SW_OK`. Any thread.
 */
enum sw_status sw_timer_cancel(struct sw_service *service, sw_timer timer);

/**
 * Cancels a timer, then waits until its callback is not running and its drop has run. What the
 * callback wrote is then visible here.
 *
 * Returns `SW_OK` (a run was prevented); `SW_RUNNING` (it waited for the last run);
 * `SW_NOT_FOUND` (all was over); `SW_WOULD_DEADLOCK` (in the timer's own callback, or the wait
 * would close a circle: it will not run again, but may be running); and as `sw_timer_cancel`, with
 * `SW_STOPPED` when a callback that was running is over. Any thread.
 */
enum sw_status sw_timer_cancel_wait(struct sw_service *service, sw_timer timer);

/**
 * Moves a timer's deadline; handle, shard and `ctx` stay. Of a periodic timer a new grid begins.
 *
 * `delay_ns`: from now; the whole range is accepted.
 *
 * Returns `SW_OK` (armed; inside the timer's own callback: again); `SW_RUNNING` (a one-shot's
 * callback runs, seen from elsewhere: unchanged); `SW_NOT_FOUND` (it had ended); `SW_FULL` (a
 * running one-shot, whose room another has taken; or the shard took no turn during hundreds of
 * thousands of resets); `SW_INVALID`; `SW_NO_MEMORY`; `SW_BUSY` (the shard is attached
 * exclusively by another thread); `SW_STOPPED`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_timer_reset(struct sw_service *service, sw_timer timer, uint64_t delay_ns);

/**
 * As `sw_timer_reset`, to a deadline on the service's clock.
 *
 * `deadline_ns`: the whole range is accepted; what lies in the past is due at the next turn.
 */
enum sw_status sw_timer_reset_at(struct sw_service *service, sw_timer timer, uint64_t deadline_ns);

/**
 * How long a timer still has.
 *
 * `remaining_ns`: receives the time to its next deadline, 0 when it is due, `SW_NEVER` if that
 * does not come; not NULL.
 *
 * Returns `SW_OK`; `SW_RUNNING` (a callback runs and it is not armed again) or `SW_NOT_FOUND`,
 * and nothing is written; `SW_INVALID`; `SW_STOPPED`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_timer_remaining(struct sw_service *service,
                                  sw_timer timer,
                                  uint64_t *remaining_ns);

/**
 * The shard part of a handle, whatever has become of the timer. Any thread.
 */
uint32_t sw_timer_shard(sw_timer timer);

/**
 * Starts a number of timers: all of them, or none.
 *
 * `specs`: `count` descriptions in a row, all of one `size`, which is the distance from one to
 * the next; NULL only if `count` is 0. Copied. `timers`: receives `count` handles, each before
 * its callback can run; may be NULL.
 *
 * Whenever it is refused, for whatever reason, the `drop` of each spec has been called with its
 * `ctx`, except where its `size` is wrong.
 *
 * Returns as `sw_timer_start_spec`. Any thread.
 */
enum sw_status sw_timer_start_batch(struct sw_service *service,
                                    const struct sw_timer_spec *specs,
                                    size_t count,
                                    sw_timer *timers);

/**
 * As `sw_timer_start_batch`, for timers that were saved before a restart: of those with
 * `SW_TIMER_ABSOLUTE` whose deadline has gone by, the deadlines are moved to instants spread evenly over
 * `spread_ns` from now, in the order in which they stand here, so that a restart is no stampede. The others keep
 * theirs.
 */
enum sw_status sw_timer_start_spread(struct sw_service *service,
                                     const struct sw_timer_spec *specs,
                                     size_t count,
                                     uint64_t spread_ns,
                                     sw_timer *timers);

/**
 * Cancels a number of timers, each as `sw_timer_cancel` does.
 *
 * `timers`: `count` handles, of which any may have ended; NULL only if `count` is 0.
 * `cancelled`: receives for how many of them `sw_timer_cancel` would have returned `SW_OK`; may
 * be NULL.
 *
 * Returns `SW_OK` if at least one was cancelled or none was refused; `SW_INVALID`; `SW_BUSY` (a
 * shard is attached exclusively by another thread) and `SW_STOPPED` if one was refused and none
 * cancelled; `SW_FORKED`. Any thread.
 */
enum sw_status sw_timer_cancel_batch(struct sw_service *service,
                                     const sw_timer *timers,
                                     size_t count,
                                     size_t *cancelled);

/**
 * Makes the calling thread the owner of a driven shard: its `SW_SHARD_ANY` starts go there, and
 * its starts, cancels and resets on that shard work on the wheel directly. Other threads' polls
 * of it are `SW_BUSY` until detach. Attaching is never needed, only faster. A thread may own
 * several shards, and its `SW_SHARD_ANY` goes to the one attached last. A thread that ends while
 * attached is detached.
 *
 * `shard`: an index. `how`: `SW_ATTACH_SHARED` or `SW_ATTACH_EXCLUSIVE`, which also makes other
 * threads' starts, cancels and resets on this shard `SW_BUSY`. The owner may attach again to
 * change it.
 *
 * Returns `SW_OK`; `SW_INVALID`; `SW_BUSY` (another thread's, inside a callback, or, to own it
 * exclusively, while another thread frees a queue);
 * `SW_UNSUPPORTED` (a threaded service); `SW_NO_MEMORY`; `SW_STOPPED`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_shard_attach(struct sw_service *service, uint32_t shard, uint32_t how);

/**
 * Ends what `sw_shard_attach` began.
 *
 * `shard`: an index.
 *
 * Returns `SW_OK`; `SW_INVALID` (also: not attached); `SW_BUSY` (another thread's, or inside a
 * callback); `SW_UNSUPPORTED` (a threaded service); `SW_FORKED`. The owning thread.
 */
enum sw_status sw_shard_detach(struct sw_service *service, uint32_t shard);

/**
 * Delivers what is due on a driven shard, in the order of deadlines: callbacks run on this
 * thread, inside this call.
 *
 * `shard`: an index. `budget`: at most so many expiries; 0: all. `fired`: receives how many were
 * delivered, to callbacks and to queues; may be NULL.
 *
 * Returns `SW_OK`; `SW_INVALID`; `SW_BUSY` (another thread polls it or has attached to it, or
 * this is inside a callback); `SW_UNSUPPORTED` (a threaded service); `SW_NO_MEMORY`; `SW_STOPPED`;
 * `SW_FORKED`. One thread at a time for each shard.
 */
enum sw_status sw_shard_poll(struct sw_service *service,
                             uint32_t shard,
                             size_t budget,
                             size_t *fired);

/**
 * When a driven shard next wants a poll.
 *
 * `shard`: an index. `deadline_ns`: receives a lower bound of that instant on the service's
 * clock, `SW_NEVER` if nothing is pending; not NULL.
 *
 * Returns `SW_OK`; `SW_INVALID`; `SW_UNSUPPORTED` (a threaded service); `SW_STOPPED`;
 * `SW_FORKED`. Any thread.
 */
enum sw_status sw_shard_next(struct sw_service *service, uint32_t shard, uint64_t *deadline_ns);

/**
 * A descriptor for epoll, poll or select that is readable when a driven shard wants a poll.
 *
 * `shard`: an index. `fd`: receives the descriptor, not NULL. It is the service's: the host
 * neither reads nor closes it, and forgets it before the service is freed.
 *
 * Returns `SW_OK`; `SW_INVALID`; `SW_UNSUPPORTED` (a threaded service); `SW_STOPPED`;
 * `SW_FORKED`; `SW_SYSTEM`. Any thread.
 */
enum sw_status sw_shard_fd(struct sw_service *service, uint32_t shard, int *fd);

/**
 * Tells who is pending on a shard, a part at a time, for debugging, or to save timers before a
 * restart. The shard is not stopped and does not notice. Timers that are pending all the while are
 * told of exactly once; those that start or end meanwhile may be or not. A one-shot whose callback
 * runs is not told of, a periodic timer is.
 *
 * `shard`: an index, in any mode. `place`: 0 before the first call; moves on; `SW_VISIT_END` when there are no
 * more; not NULL. `pending`: room for `capacity` timers, which are written in no order; not NULL.
 * `capacity`: at least 1; a call looks at no more than 64 times as many slots, so it may tell of none and
 * not be at the end. `visited`: receives how many were written; not NULL.
 *
 * To start them again in another process on the same machine, whose clock goes on: specs with
 * `SW_TIMER_ABSOLUTE` and these deadlines, `ctx` translated, and `sw_timer_start_spread`.
 *
 * Returns `SW_OK`, also on a stopped service, which has none; `SW_INVALID`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_shard_visit(struct sw_service *service,
                              uint32_t shard,
                              uint64_t *place,
                              struct sw_pending *pending,
                              size_t capacity,
                              size_t *visited);

/**
 * Makes a queue. Timers started with it in their spec are delivered there instead of calling
 * back.
 *
 * `queue`: receives the queue; not NULL. It is to be given back with `sw_queue_free`, or goes
 * with its service.
 *
 * Returns `SW_OK`; `SW_INVALID`; `SW_NO_MEMORY`; `SW_STOPPED`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_queue_new(struct sw_service *service, struct sw_queue **queue);

/**
 * Takes expiries from a queue. What one call takes of a shard is in the order of deadlines, oldest
 * first; of equal ones, in that of delivery. From one call to the next they come in the order in
 * which the shard's turns delivered them: that of deadlines, too, but for a timer that came in a
 * later turn than its deadline asks for (started or reset to the past, with slack) and a periodic
 * one whose event waited. A timer that is cancelled before it is taken is never seen.
 *
 * `events`: room for `capacity` events; not NULL. `taken`: receives how many were taken; not
 * NULL. The `ctx` of a one-shot's event is the taker's from now on: its `drop` is not called.
 *
 * Returns `SW_OK`, also when there was nothing to take; `SW_INVALID`; `SW_NO_MEMORY`;
 * `SW_STOPPED`; `SW_FORKED`. Any number of threads at a time.
 */
enum sw_status sw_queue_poll(struct sw_queue *queue,
                             struct sw_event *events,
                             size_t capacity,
                             size_t *taken);

/**
 * A descriptor for epoll, poll or select that is readable while the queue has something to take.
 *
 * `fd`: receives the descriptor; not NULL. It is the queue's: the host neither reads nor closes
 * it, and forgets it before the queue is freed.
 *
 * Returns `SW_OK`; `SW_INVALID`; `SW_STOPPED`; `SW_FORKED`; `SW_SYSTEM`. Any thread.
 */
enum sw_status sw_queue_fd(struct sw_queue *queue, int *fd);

/**
 * Frees a queue, before its service. Timers that would have been delivered here are cancelled,
 * events that nobody took are withdrawn, and their `drop` runs. No other call on the queue may
 * be going on or follow.
 *
 * `queue`: not NULL.
 *
 * Returns `SW_OK`; `SW_INVALID`; `SW_BUSY` (another thread has attached exclusively to a shard
 * that has timers of this queue) or `SW_FORKED`: nothing is freed then. Any thread.
 */
enum sw_status sw_queue_free(struct sw_queue *queue);

/**
 * Reads the counters.
 *
 * `shard`: an index, or `SW_SHARD_ANY` for the sum. `stats`: receives them; not NULL, with its
 * `size` set. While other threads are at work, the numbers are of slightly different instants. No
 * shard is stopped or slowed down by it; whoever reads also tells the hook of `sw_service_on_stuck`
 * what it finds.
 *
 * Returns `SW_OK`, also on a stopped service; `SW_INVALID`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_stats_read(struct sw_service *service, uint32_t shard, struct sw_stats *stats);

/**
 * Reads what a shard looks like inside.
 *
 * `shard`: an index, or `SW_SHARD_ANY` for all together. `details`: receives it; not NULL, with its
 * `size` set.
 *
 * Returns `SW_OK`, also on a stopped service; `SW_INVALID`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_details_read(struct sw_service *service,
                               uint32_t shard,
                               struct sw_details *details);

/**
 * Writes the numbers of every shard in the Prometheus text format, as `snprintf` would.
 *
 * `buffer`: room for `capacity` bytes; NULL only if `capacity` is 0. At most `capacity` bytes
 * are written, the final NUL included. `needed`: receives the length of the whole text without
 * its NUL; may be NULL. The text is whole when `needed` is less than `capacity`.
 *
 * Returns `SW_OK`, also on a stopped service and when the text was cut; `SW_INVALID`;
 * `SW_NO_MEMORY`; `SW_FORKED`. Any thread.
 */
enum sw_status sw_stats_prometheus(struct sw_service *service,
                                   char *buffer,
                                   size_t capacity,
                                   size_t *needed);

/**
 * As `sw_stats_prometheus`, for people to read: what to look at first when timers are late.
 */
enum sw_status sw_stats_report(struct sw_service *service,
                               char *buffer,
                               size_t capacity,
                               size_t *needed);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHARDWHEEL_H */
