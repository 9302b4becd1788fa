/**
 * @file options.hpp
 * What can be asked of a service and of a timer, to be written in a row:
 * `sw::service_options().driven().shards(4).tick(100us)`.
 */
#ifndef SHARDWHEEL_OPTIONS_HPP
#define SHARDWHEEL_OPTIONS_HPP

#include <cstddef>
#include <cstdint>

#include "time.hpp"

namespace sw {

/** Let the library choose the shard; all shards. */
inline constexpr std::uint32_t any_shard = SW_SHARD_ANY;

/** What a service is built from: by default a pinned thread for each CPU, ticks of 1 ms. */
class service_options {
public:
    service_options() noexcept { sw_config_init(&config_); } /**< All defaults. */

    /** No threads: the host polls the shards. */
    service_options &driven() noexcept { return config_.mode = SW_MODE_DRIVEN, *this; }
    /** A clock that goes on while the machine is suspended. */
    service_options &boottime_clock() noexcept { return config_.clock = SW_CLOCK_BOOTTIME, *this; }
    /** Driven, on a clock that starts at 0 and is moved by timers::advance() alone. */
    service_options &manual_clock() noexcept
    {
        return config_.clock = SW_CLOCK_MANUAL, driven();
    }
    /** How many shards, 1 to 256; 0: one for each CPU. */
    service_options &shards(std::uint32_t count) noexcept { return config_.shards = count, *this; }
    /** Threads that run where the system likes. */
    service_options &unpinned() noexcept { return config_.pinning = SW_PIN_NONE, *this; }
    /** Shard i on `cpus[i % count]`; they must stay there until the service has started. */
    service_options &pinned_to(const std::uint32_t *cpus, std::size_t count) noexcept
    {
        config_.pinning = SW_PIN_LIST;
        config_.cpus = cpus;
        config_.cpu_count = count;
        return *this;
    }
    /** Granularity, 1 microsecond to 1 hour. */
    template <class Rep, class Period>
    service_options &tick(std::chrono::duration<Rep, Period> tick) noexcept
    {
        return config_.tick_ns = detail::nanoseconds(tick), *this;
    }
    /** Live timers in each shard, at most 2^28. */
    service_options &max_timers(std::uint64_t count) noexcept
    {
        return config_.max_timers = count, *this;
    }
    /** Callbacks that take longer than this are counted. */
    template <class Rep, class Period>
    service_options &slow_callback(std::chrono::duration<Rep, Period> limit) noexcept
    {
        return config_.slow_callback_ns = detail::nanoseconds(limit), *this;
    }
    /** Prefix of the threads' names; must stay there until the service has started. */
    service_options &thread_name(const char *prefix) noexcept
    {
        return config_.thread_name = prefix, *this;
    }

    /** The C struct behind it, where hooks are set. @{ */
    sw_config &native() noexcept { return config_; }
    const sw_config &native() const noexcept { return config_; }
    /** @} */

private:
    sw_config config_;
};

/** What can be asked of a timer beside its time. */
class timer_options {
public:
    /** It may come this much later, to share a wake-up. */
    template <class Rep, class Period>
    timer_options &slack(std::chrono::duration<Rep, Period> slack) noexcept
    {
        return slack_ns_ = detail::nanoseconds(slack), *this;
    }
    /** On this shard. */
    timer_options &shard(std::uint32_t index) noexcept { return shard_ = index, *this; }
    /** Periodic: every missed period is served, one call each. By default they are skipped. */
    timer_options &burst() noexcept { return flag(SW_TIMER_BURST); }
    /** Periodic: the next deadline counts from the callback's end. */
    timer_options &fixed_delay() noexcept { return flag(SW_TIMER_FIXED_DELAY); }

    /** Writes it into a C struct. */
    void apply(sw_timer_spec &spec) const noexcept
    {
        spec.slack_ns = slack_ns_;
        spec.shard = shard_;
        spec.flags |= flags_;
    }

private:
    timer_options &flag(int flag) noexcept
    {
        return flags_ |= static_cast<std::uint32_t>(flag), *this;
    }

    std::uint64_t slack_ns_ = 0;
    std::uint32_t shard_ = any_shard;
    std::uint32_t flags_ = 0;
};

} // namespace sw

#endif
