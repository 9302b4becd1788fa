/**
 * @file starter.hpp
 * The ways to describe a timer, which sw::timers and sw::batch have in common.
 */
#ifndef SHARDWHEEL_STARTER_HPP
#define SHARDWHEEL_STARTER_HPP

#include <cstdint>
#include <utility>

#include "callback.hpp"
#include "options.hpp"
#include "queue.hpp"

namespace sw {

/**
 * There are three ways to start a timer, `after` a delay, `at` an instant and `every` period, and
 * three ways to be told:
 *
 * - a member function, `after<&session::on_idle>(this, 30s)`: allocates nothing. A function that
 *   takes a `session *` does as well;
 * - a lambda, `after(30s, [this] { close(); })`: allocates if it holds more than a pointer;
 * - a queue, `after(30s, queue, ctx)`.
 *
 * A callback takes nothing, or a `const sw::expiry &`.
 *
 * @tparam Self sw::timers, which starts it at once, or sw::batch, which collects
 * @tparam Answer what each call answers: the timer's owner, or the batch
 */
template <class Self, class Answer>
class starter {
public:
    /**
     * A one-shot.
     *
     * @param object whose function is called
     * @param delay from now, rounded up; sw::never does not come
     * @param options slack, shard
     */
    template <auto Function, class T, class Rep, class Period>
    Answer after(T *object, std::chrono::duration<Rep, Period> delay,
                 const timer_options &options = {})
    {
        return begin(once, detail::nanoseconds(delay), detail::bind<Function>(object), options);
    }

    /** A one-shot that calls `function`. */
    template <class Rep, class Period, class F>
    Answer after(std::chrono::duration<Rep, Period> delay, F &&function,
                 const timer_options &options = {})
    {
        return begin(once, detail::nanoseconds(delay), detail::bind(std::forward<F>(function)),
                     options);
    }

    /** A one-shot that is delivered to `to`, whose taker owns `ctx`. */
    template <class Rep, class Period>
    Answer after(std::chrono::duration<Rep, Period> delay, const queue &to, void *ctx,
                 const timer_options &options = {})
    {
        return begin(once, detail::nanoseconds(delay), {nullptr, ctx, nullptr}, options, &to);
    }

    /** A one-shot with a deadline on the service's clock, which calls a function of `object`. */
    template <auto Function, class T, class Duration>
    Answer at(T *object, std::chrono::time_point<service_clock, Duration> deadline,
              const timer_options &options = {})
    {
        return begin(absolute, detail::nanoseconds(deadline), detail::bind<Function>(object),
                     options);
    }

    /** A one-shot with a deadline, which calls `function`. */
    template <class Duration, class F>
    Answer at(std::chrono::time_point<service_clock, Duration> deadline, F &&function,
              const timer_options &options = {})
    {
        return begin(absolute, detail::nanoseconds(deadline),
                     detail::bind(std::forward<F>(function)), options);
    }

    /** A one-shot with a deadline, which is delivered to `to`. */
    template <class Duration>
    Answer at(std::chrono::time_point<service_clock, Duration> deadline, const queue &to,
              void *ctx, const timer_options &options = {})
    {
        return begin(absolute, detail::nanoseconds(deadline), {nullptr, ctx, nullptr}, options,
                     &to);
    }

    /**
     * A periodic timer, first due one period from now, which calls a function of `object`. Missed
     * periods are skipped and counted in expiry::missed(), unless the options say otherwise.
     */
    template <auto Function, class T, class Rep, class Period>
    Answer every(T *object, std::chrono::duration<Rep, Period> period,
                 const timer_options &options = {})
    {
        return begin(periodic, detail::nanoseconds(period), detail::bind<Function>(object),
                     options);
    }

    /** A periodic timer that calls `function`. */
    template <class Rep, class Period, class F>
    Answer every(std::chrono::duration<Rep, Period> period, F &&function,
                 const timer_options &options = {})
    {
        return begin(periodic, detail::nanoseconds(period),
                     detail::bind(std::forward<F>(function)), options);
    }

    /** A periodic timer that is delivered to `to`. */
    template <class Rep, class Period>
    Answer every(std::chrono::duration<Rep, Period> period, const queue &to, void *ctx,
                 const timer_options &options = {})
    {
        return begin(periodic, detail::nanoseconds(period), {nullptr, ctx, nullptr}, options, &to);
    }

private:
    friend Self;
    enum kind { once, absolute, periodic };

    starter() noexcept = default;

    Answer begin(kind how, std::uint64_t ns, const detail::binding &told,
                 const timer_options &options, const queue *to = nullptr)
    {
        Self &self = static_cast<Self &>(*this);
        if (to == nullptr && told.call == nullptr)
            return self.refuse(status::no_memory);
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
        return self.take(spec);
    }
};

} // namespace sw

#endif
