/**
 * @file time.hpp
 * `std::chrono` in, nanoseconds out: always rounded up, so that no conversion makes a timer early,
 * and saturated at ::SW_NEVER, so that none wraps.
 */
#ifndef SHARDWHEEL_TIME_HPP
#define SHARDWHEEL_TIME_HPP

#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../shardwheel.h"

namespace sw {

/** Names the clock that a service was started with. Its present is sw::service::now(). */
struct service_clock {
    using rep = std::chrono::nanoseconds::rep;                 /**< Of nanoseconds. */
    using period = std::chrono::nanoseconds::period;           /**< A nanosecond. */
    using duration = std::chrono::nanoseconds;                 /**< Between two instants. */
    using time_point = std::chrono::time_point<service_clock>; /**< An instant. */
    static constexpr bool is_steady = true;                    /**< It never steps back. */
};

/** An instant on a service's clock. Its `max()` does not come. */
using time_point = service_clock::time_point;

/** A delay that does not end. */
inline constexpr std::chrono::nanoseconds never = std::chrono::nanoseconds::max();

namespace detail {

__extension__ using wide = unsigned __int128;

/** A delay in nanoseconds, rounded up; below zero it is zero, from sw::never on ::SW_NEVER. */
template <class Rep, class Period>
constexpr std::uint64_t nanoseconds(std::chrono::duration<Rep, Period> delay) noexcept
{
    using ratio = std::ratio_divide<Period, std::nano>;
    constexpr auto limit = static_cast<std::uint64_t>(never.count());
    // Also for a floating-point NaN.
    if (!(delay.count() > Rep{0}))
        return 0;
    if constexpr (std::is_integral_v<Rep>) {
        constexpr auto num = static_cast<wide>(ratio::num), den = static_cast<wide>(ratio::den);
        const wide count = static_cast<std::uint64_t>(delay.count());
        const wide exact = (count * num + (den - 1)) / den;
        return exact >= limit ? SW_NEVER : static_cast<std::uint64_t>(exact);
    } else {
        const auto exact = static_cast<long double>(delay.count()) *
                           static_cast<long double>(ratio::num) /
                           static_cast<long double>(ratio::den);
        if (exact >= static_cast<long double>(limit))
            return SW_NEVER;
        const auto whole = static_cast<std::uint64_t>(exact);
        return whole + (static_cast<long double>(whole) < exact ? 1 : 0);
    }
}

/** An instant in nanoseconds, rounded up. */
template <class Duration>
constexpr std::uint64_t
nanoseconds(std::chrono::time_point<service_clock, Duration> instant) noexcept
{
    return nanoseconds(instant.time_since_epoch());
}

/** Nanoseconds as the library counts them; sw::never and beyond is sw::never. */
constexpr std::chrono::nanoseconds duration(std::uint64_t count) noexcept
{
    constexpr auto limit = static_cast<std::uint64_t>(never.count());
    return std::chrono::nanoseconds(static_cast<std::int64_t>(count < limit ? count : limit));
}

/** An instant as the library counts it. */
constexpr time_point instant(std::uint64_t count) noexcept { return time_point(duration(count)); }

} // namespace detail

/**
 * An instant of `std::chrono::steady_clock` on the clock of a service with the monotonic clock,
 * which is the same on Linux.
 */
inline time_point from_steady(std::chrono::steady_clock::time_point instant) noexcept
{
    return time_point(instant.time_since_epoch());
}

} // namespace sw

#endif
