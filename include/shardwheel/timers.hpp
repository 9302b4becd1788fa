/**
 * @file timers.hpp
 * Starting timers, and working on them by handle.
 */
#ifndef SHARDWHEEL_TIMERS_HPP
#define SHARDWHEEL_TIMERS_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include "callback.hpp"
#include "error.hpp"
#include "options.hpp"
#include "queue.hpp"
#include "shard.hpp"
#include "timer.hpp"

namespace sw {

/**
 * All calls on a service. A view: to be copied and kept by whoever starts timers, and not to
 * outlive its sw::service. Every call is for any thread and for callbacks.
 *
 * There are three ways to start a timer, `after` a delay, `at` an instant and `every` period, and
 * three ways to be told:
 *
 * - a member function, `after<&session::on_idle>(this, 30s)`: allocates nothing. A function that
 *   takes a `session *` does as well;
 * - a lambda, `after(30s, [this] { close(); })`: allocates if it holds more than a pointer;
 * - a queue, `after(30s, queue, ctx)`.
 *
 * A callback takes nothing, or a `const sw::expiry &`. The timer ends when the sw::timer that
 * they answer goes.
 */
class timers {
public:
    timers() noexcept = default; /**< Of no service: every call is refused. */

    /** Of a C service. */
    explicit timers(sw_service *native) noexcept : native_(native) {}

    sw_service *native() const noexcept { return native_; } /**< The C service. */

    /**
     * Starts a one-shot.
     *
     * @param object whose function is called
     * @param delay from now, rounded up; sw::never does not come
     * @param options slack, shard
     */
    template <auto Function, class T, class Rep, class Period>
    result<timer> after(T *object, std::chrono::duration<Rep, Period> delay,
                        const timer_options &options = {})
    {
        return start(once, detail::nanoseconds(delay), detail::bind<Function>(object), options);
    }

    /** Starts a one-shot that calls `function`. */
    template <class Rep, class Period, class F>
    result<timer> after(std::chrono::duration<Rep, Period> delay, F &&function,
                        const timer_options &options = {})
    {
        return start(once, detail::nanoseconds(delay), detail::bind(std::forward<F>(function)),
                     options);
    }

    /** Starts a one-shot that is delivered to `to`, whose taker owns `ctx`. */
    template <class Rep, class Period>
    result<timer> after(std::chrono::duration<Rep, Period> delay, const queue &to, void *ctx,
                        const timer_options &options = {})
    {
        return start(once, detail::nanoseconds(delay), {nullptr, ctx, nullptr}, options, &to);
    }

    /** Starts a one-shot with a deadline on the service's clock. @{ */
    template <auto Function, class T, class Duration>
    result<timer> at(T *object, std::chrono::time_point<service_clock, Duration> deadline,
                     const timer_options &options = {})
    {
        return start(absolute, detail::nanoseconds(deadline), detail::bind<Function>(object),
                     options);
    }

    template <class Duration, class F>
    result<timer> at(std::chrono::time_point<service_clock, Duration> deadline, F &&function,
                     const timer_options &options = {})
    {
        return start(absolute, detail::nanoseconds(deadline),
                     detail::bind(std::forward<F>(function)), options);
    }

    template <class Duration>
    result<timer> at(std::chrono::time_point<service_clock, Duration> deadline, const queue &to,
                     void *ctx, const timer_options &options = {})
    {
        return start(absolute, detail::nanoseconds(deadline), {nullptr, ctx, nullptr}, options,
                     &to);
    }
    /** @} */

    /**
     * Starts a periodic timer, first due one period from now. Missed periods are skipped and
     * counted in expiry::missed(), unless the options say otherwise. @{
     */
    template <auto Function, class T, class Rep, class Period>
    result<timer> every(T *object, std::chrono::duration<Rep, Period> period,
                        const timer_options &options = {})
    {
        return start(periodic, detail::nanoseconds(period), detail::bind<Function>(object),
                     options);
    }

    template <class Rep, class Period, class F>
    result<timer> every(std::chrono::duration<Rep, Period> period, F &&function,
                        const timer_options &options = {})
    {
        return start(periodic, detail::nanoseconds(period),
                     detail::bind(std::forward<F>(function)), options);
    }

    template <class Rep, class Period>
    result<timer> every(std::chrono::duration<Rep, Period> period, const queue &to, void *ctx,
                        const timer_options &options = {})
    {
        return start(periodic, detail::nanoseconds(period), {nullptr, ctx, nullptr}, options, &to);
    }
    /** @} */

    /** As the calls of sw::timer, for who keeps handles. @{ */
    status cancel(sw_timer handle) noexcept
    {
        return static_cast<status>(sw_timer_cancel(native_, handle));
    }

    status cancel_wait(sw_timer handle) noexcept
    {
        return static_cast<status>(sw_timer_cancel_wait(native_, handle));
    }

    template <class Rep, class Period>
    status reset(sw_timer handle, std::chrono::duration<Rep, Period> delay) noexcept
    {
        return static_cast<status>(sw_timer_reset(native_, handle, detail::nanoseconds(delay)));
    }

    template <class Duration>
    status reset_at(sw_timer handle,
                    std::chrono::time_point<service_clock, Duration> deadline) noexcept
    {
        const std::uint64_t ns = detail::nanoseconds(deadline);
        return static_cast<status>(sw_timer_reset_at(native_, handle, ns));
    }

    result<std::chrono::nanoseconds> remaining(sw_timer handle) const noexcept
    {
        std::uint64_t left = 0;
        const sw_status answer = sw_timer_remaining(native_, handle, &left);
        return detail::when(answer, detail::duration(left));
    }
    /** @} */

    /** Cancels many; answers for how many cancel() would have said `ok`. */
    result<std::size_t> cancel_all(const sw_timer *handles, std::size_t count) noexcept
    {
        std::size_t cancelled = 0;
        const sw_status answer = sw_timer_cancel_batch(native_, handles, count, &cancelled);
        return detail::when(answer, cancelled);
    }

    /** Makes a queue for expiries. */
    result<queue> make_queue() noexcept
    {
        sw_queue *made = nullptr;
        if (const sw_status answer = sw_queue_new(native_, &made); answer != SW_OK)
            return static_cast<status>(answer);
        return queue(made);
    }

    /** The service's clock; it never steps back. */
    time_point now() const noexcept { return detail::instant(sw_clock_now(native_)); }

    /** Moves a manual clock on. */
    template <class Rep, class Period>
    status advance(std::chrono::duration<Rep, Period> by) noexcept
    {
        return static_cast<status>(sw_clock_advance(native_, detail::nanoseconds(by)));
    }

    /** How many shards there are. */
    std::uint32_t shard_count() const noexcept { return sw_shard_count(native_); }

    /** A shard of a driven service. */
    sw::shard shard(std::uint32_t index) const noexcept { return sw::shard(native_, index); }

    /** The counters of a shard, or of all. */
    result<sw_stats> stats(std::uint32_t shard = any_shard) const noexcept
    {
        sw_stats stats{};
        stats.size = sizeof stats;
        const sw_status answer = sw_stats_read(native_, shard, &stats);
        return detail::when(answer, stats);
    }

    /** The counters of every shard in the Prometheus text format. */
    result<std::string> prometheus() const
    {
        std::string text;
        // It may have grown between two looks.
        for (std::size_t needed = 4096;;) {
            text.resize(needed + 1);
            const sw_status answer =
                sw_stats_prometheus(native_, text.data(), text.size(), &needed);
            if (answer != SW_OK)
                return static_cast<status>(answer);
            if (needed < text.size()) {
                text.resize(needed);
                return text;
            }
        }
    }

private:
    enum kind { once, absolute, periodic };

    result<timer> start(kind how, std::uint64_t ns, const detail::binding &told,
                        const timer_options &options, const queue *to = nullptr) noexcept
    {
        if (to == nullptr && told.call == nullptr)
            return status::no_memory;
        sw_timer_spec spec;
        sw_timer_spec_init(&spec);
        spec.delay_ns = ns;
        spec.period_ns = how == periodic ? ns : 0;
        spec.flags = how == absolute ? SW_TIMER_ABSOLUTE : 0;
        options.apply(spec);
        spec.callback = told.call;
        spec.ctx = told.ctx;
        spec.drop = told.drop;
        spec.queue = to != nullptr ? to->native() : nullptr;
        // The library would take a period of 0 for a one-shot; this it refuses, and drops.
        if (how == periodic && ns == 0)
            spec.flags |= SW_TIMER_BURST | SW_TIMER_FIXED_DELAY;
        sw_timer handle{};
        const sw_status answer = sw_timer_start_spec(native_, &spec, &handle);
        if (answer != SW_OK)
            return static_cast<status>(answer);
        return timer(native_, handle);
    }

    sw_service *native_ = nullptr;
};

} // namespace sw

#endif
