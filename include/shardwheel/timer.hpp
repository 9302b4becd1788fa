/**
 * @file timer.hpp
 * One timer and its owner: when the owner goes, so does the timer.
 */
#ifndef SHARDWHEEL_TIMER_HPP
#define SHARDWHEEL_TIMER_HPP

#include <utility>

#include "error.hpp"
#include "time.hpp"

namespace sw {

/**
 * Owns one timer, or none. Move-only, 16 bytes.
 *
 * The destructor cancels and waits: once it has returned, the callback is not running and will not
 * run, so that an object can keep its timers as members, last ones last, and be destroyed at any
 * time. It never waits for the thread it runs on: inside the timer's own callback it returns at
 * once, and the callback may even destroy the object that it is a member of, if it does not touch
 * it afterwards. In one case it cannot keep its word: where two shards' callbacks destroy each
 * other's timers at the same moment, one of the two returns while the other's callback still runs.
 *
 * Do not destroy it while you hold a lock that the callback takes. It must go before its service
 * is destroyed; after stop is early enough. If its shard is attached exclusively by another
 * thread, nobody can cancel it: the process then ends with a word why.
 *
 * One timer object is for one thread at a time, as any value. A callback that runs on another
 * thread may come before the start's answer has been assigned; it knows itself by
 * expiry::timer().
 */
class timer {
public:
    timer() noexcept = default; /**< None. */

    /** Takes over a handle. */
    timer(sw_service *service, sw_timer handle) noexcept : service_(service), handle_(handle) {}

    /** Takes over; `other` then owns none. */
    timer(timer &&other) noexcept
        : service_(std::exchange(other.service_, nullptr)),
          handle_(std::exchange(other.handle_, sw_timer{}))
    {
    }

    /** Takes over, then ends the timer that it had, as the destructor does. */
    timer &operator=(timer &&other) noexcept
    {
        timer taken(std::move(other));
        std::swap(service_, taken.service_);
        std::swap(handle_, taken.handle_);
        return *this;
    }

    ~timer()
    {
        if (service_ == nullptr)
            return;
        const sw_status answer = sw_timer_cancel_wait(service_, handle_);
        if (answer == SW_BUSY)
            detail::fail("a sw::timer goes, but its shard is attached exclusively by another thread");
        // A stop that is under way may still be telling the host of its timers.
        if (answer == SW_STOPPED)
            sw_service_stop(service_, nullptr, nullptr, nullptr);
    }

    /** Owns it one, which may have ended? */
    explicit operator bool() const noexcept { return service_ != nullptr; }

    /** Its handle. */
    sw_timer handle() const noexcept { return handle_; }

    /** Lets go of it: it goes on by itself, and is known by the handle alone. */
    sw_timer release() noexcept
    {
        service_ = nullptr;
        return std::exchange(handle_, sw_timer{});
    }

    /**
     * Cancels without waiting.
     *
     * @return `ok`: will not run, is not running; `running`; `not_found`: it had ended before; or
     * why it was refused. See ::sw_timer_cancel
     */
    status cancel() noexcept { return static_cast<status>(sw_timer_cancel(service_, handle_)); }

    /** Cancels, then waits until the callback is not running. See ::sw_timer_cancel_wait */
    status cancel_wait() noexcept
    {
        return static_cast<status>(sw_timer_cancel_wait(service_, handle_));
    }

    /**
     * Moves the deadline to `delay` from now. To a later instant it is one atomic operation.
     *
     * @return `ok`: armed, inside its own callback: again; `running`: a one-shot's callback runs,
     * unchanged; `not_found`: it had ended; or why it was refused. See ::sw_timer_reset
     */
    template <class Rep, class Period>
    status reset(std::chrono::duration<Rep, Period> delay) noexcept
    {
        return static_cast<status>(sw_timer_reset(service_, handle_, detail::nanoseconds(delay)));
    }

    /** Moves the deadline. See reset(). */
    template <class Duration>
    status reset_at(std::chrono::time_point<service_clock, Duration> deadline) noexcept
    {
        return static_cast<status>(
            sw_timer_reset_at(service_, handle_, detail::nanoseconds(deadline)));
    }

    /** How long it still has: zero if it is due, sw::never. See ::sw_timer_remaining */
    result<std::chrono::nanoseconds> remaining() const noexcept
    {
        std::uint64_t left = 0;
        const sw_status answer = sw_timer_remaining(service_, handle_, &left);
        return detail::when(answer, detail::duration(left));
    }

private:
    sw_service *service_ = nullptr;
    sw_timer handle_{};
};

} // namespace sw

#endif
