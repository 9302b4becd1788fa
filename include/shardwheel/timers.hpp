/**
 * @file timers.hpp
 * Starting timers, and working on them by handle.
 */
#ifndef SHARDWHEEL_TIMERS_HPP
#define SHARDWHEEL_TIMERS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "error.hpp"
#include "options.hpp"
#include "queue.hpp"
#include "shard.hpp"
#include "starter.hpp"
#include "timer.hpp"

namespace sw {

/**
 * All calls on a service. A view: to be copied and kept by whoever starts timers, and not to
 * outlive its sw::service. Every call is for any thread and for callbacks.
 *
 * How to start timers, with `after`, `at` and `every`, is told of sw::starter. The timer ends when
 * the sw::timer that they answer goes.
 */
class timers : public starter<timers, result<timer>> {
public:
    timers() noexcept = default; /**< Of no service: every call is refused. */

    /** Of a C service. */
    explicit timers(sw_service *native) noexcept : native_(native) {}

    sw_service *native() const noexcept { return native_; } /**< The C service. */

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

    /** A shard: to be polled if the service is driven, to be visited in any case. */
    sw::shard shard(std::uint32_t index) const noexcept { return sw::shard(native_, index); }

    /** The counters of a shard, or of all. */
    result<sw_stats> stats(std::uint32_t shard = any_shard) const noexcept
    {
        sw_stats stats{};
        stats.size = sizeof stats;
        const sw_status answer = sw_stats_read(native_, shard, &stats);
        return detail::when(answer, stats);
    }

    /** What a shard looks like inside, or all together. */
    result<sw_details> details(std::uint32_t shard = any_shard) const noexcept
    {
        sw_details details{};
        details.size = sizeof details;
        const sw_status answer = sw_details_read(native_, shard, &details);
        return detail::when(answer, details);
    }

    /** The counters of every shard in the Prometheus text format. */
    result<std::string> prometheus() const { return text(sw_stats_prometheus); }

    /** The same for people: what to look at first when timers are late. */
    result<std::string> report() const { return text(sw_stats_report); }

    /** Gives memory that a peak of timers has left behind back. See ::sw_service_trim */
    status trim() noexcept { return static_cast<status>(sw_service_trim(native_)); }

    /**
     * Sets who is told of a callback that still runs after service_options::slow_callback(): the
     * `std::uint32_t` of its shard, its `sw_timer`, and for how long it has run as
     * `std::chrono::nanoseconds`. Any thread may be the one that finds out and calls; an exception
     * that leaves the hook ends the process. See ::sw_service_on_stuck
     *
     * @param object whose function is called; it must stay until the service has stopped
     * @return `ok`; `busy`: there is a hook already; or why else it was refused
     */
    template <auto Function, class T>
    status on_stuck(T *object) noexcept
    {
        using plain = std::remove_cv_t<T>;
        const auto hook = [](void *arg, std::uint32_t shard, sw_timer timer, std::uint64_t elapsed) {
            std::invoke(Function, static_cast<T *>(static_cast<plain *>(arg)), shard, timer,
                        detail::duration(elapsed));
        };
        return static_cast<status>(sw_service_on_stuck(native_, hook, const_cast<plain *>(object)));
    }

    /** The same of a function object, which is not copied: it must stay where it is. */
    template <class F>
    status on_stuck(F &function) noexcept
    {
        const auto hook = [](void *arg, std::uint32_t shard, sw_timer timer, std::uint64_t elapsed) {
            (*static_cast<F *>(arg))(shard, timer, detail::duration(elapsed));
        };
        void *arg = const_cast<void *>(static_cast<const void *>(std::addressof(function)));
        return static_cast<status>(sw_service_on_stuck(native_, hook, arg));
    }

private:
    friend starter<timers, result<timer>>;

    result<timer> take(const sw_timer_spec &spec) noexcept
    {
        sw_timer handle{};
        const sw_status answer = sw_timer_start_spec(native_, &spec, &handle);
        if (answer != SW_OK)
            return static_cast<status>(answer);
        return timer(native_, handle);
    }

    result<timer> refuse(status why) noexcept { return why; }

    using printer = sw_status (*)(sw_service *, char *, std::size_t, std::size_t *);

    result<std::string> text(printer print) const
    {
        std::string text;
        // It may have grown between two looks.
        for (std::size_t needed = 4096;;) {
            text.resize(needed + 1);
            const sw_status answer = print(native_, text.data(), text.size(), &needed);
            if (answer != SW_OK)
                return static_cast<status>(answer);
            if (needed < text.size()) {
                text.resize(needed);
                return text;
            }
        }
    }

    sw_service *native_ = nullptr;
};

} // namespace sw

#endif
