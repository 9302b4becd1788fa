/**
 * @file error.hpp
 * What the C++ calls answer: a sw::status where there is nothing else to say, a sw::result where
 * there is a value. Both become a `std::error_code`; nothing here throws on its own.
 */
#ifndef SHARDWHEEL_ERROR_HPP
#define SHARDWHEEL_ERROR_HPP

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "../shardwheel.h"

/** Timers for C++17: see shardwheel.hpp. */
namespace sw {

/**
 * What a call answers: the values of ::sw_status. Below zero it was refused and changed nothing.
 * As a `std::error_code` everything but `ok` counts as an error.
 */
enum class status : std::int32_t {
    ok = SW_OK,
    /** The timer's callback is running now. */
    running = SW_RUNNING,
    /** The timer has ended. */
    not_found = SW_NOT_FOUND,
    invalid = SW_INVALID,
    full = SW_FULL,
    no_memory = SW_NO_MEMORY,
    stopped = SW_STOPPED,
    would_deadlock = SW_WOULD_DEADLOCK,
    busy = SW_BUSY,
    unsupported = SW_UNSUPPORTED,
    forked = SW_FORKED,
    /** The operating system refused; a sw::result then holds its own error. */
    system = SW_SYSTEM,
};

} // namespace sw

/** @cond  A sw::status can stand wherever a `std::error_code` is wanted. */
template <>
struct std::is_error_code_enum<sw::status> : std::true_type {};
/** @endcond */

namespace sw {

namespace detail {

/** Ends the process with a word why: for what a destructor finds and can neither do nor tell. */
[[noreturn]] inline void fail(const char *why) noexcept
{
    std::fprintf(stderr, "shardwheel: %s\n", why);
    std::terminate();
}

class category final : public std::error_category {
public:
    const char *name() const noexcept override { return "shardwheel"; }

    std::string message(int value) const override { return sw_status_text(value); }

    std::error_condition default_error_condition(int value) const noexcept override
    {
        switch (static_cast<status>(value)) {
        case status::invalid: return std::errc::invalid_argument;
        case status::full: return std::errc::resource_unavailable_try_again;
        case status::no_memory: return std::errc::not_enough_memory;
        case status::stopped: return std::errc::operation_canceled;
        case status::would_deadlock: return std::errc::resource_deadlock_would_occur;
        case status::busy: return std::errc::device_or_resource_busy;
        case status::unsupported: return std::errc::operation_not_supported;
        case status::forked: return std::errc::operation_not_permitted;
        default: return {value, *this};
        }
    }
};

} // namespace detail

/** The category of statuses, named "shardwheel". */
inline const std::error_category &category() noexcept
{
    static const detail::category instance;
    return instance;
}

/** The `std::error_code` of a status. */
inline std::error_code make_error_code(status value) noexcept
{
    return {static_cast<int>(value), category()};
}

/**
 * A value, or why there is none. The part of C++23's `std::expected<T, std::error_code>` that is
 * wanted here.
 */
template <class T>
class [[nodiscard]] result {
public:
    /** A value. */
    result(T value) noexcept : value_(std::move(value)) {}

    /** None; for `status::system` the reason is read from `errno`. */
    result(status why) noexcept
        : code_(why == status::system ? errno : static_cast<int>(why)),
          system_(why == status::system)
    {
    }

    /** Is there a value? */
    bool has_value() const noexcept { return code_ == 0; }
    explicit operator bool() const noexcept { return has_value(); } /**< As has_value(). */

    /** Why there is no value; of no error if there is one. */
    std::error_code error() const noexcept
    {
        return {code_, system_ ? std::system_category() : category()};
    }

    /** The value, which must be there. @{ */
    T &operator*() & noexcept { return value_; }
    const T &operator*() const & noexcept { return value_; }
    T &&operator*() && noexcept { return std::move(value_); }
    T *operator->() noexcept { return &value_; }
    const T *operator->() const noexcept { return &value_; }
    /** @} */

    /**
     * The value; if there is none, throws `std::system_error`, or ends the process where
     * exceptions are turned off. @{
     */
    T &value() & { return expect(), value_; }
    const T &value() const & { return expect(), value_; }
    T &&value() && { return expect(), std::move(value_); }
    /** @} */

private:
    void expect() const
    {
        if (has_value())
            return;
#if defined(__cpp_exceptions)
        throw std::system_error(error());
#else
        detail::fail(error().message().c_str());
#endif
    }

    T value_{};
    int code_ = 0;
    bool system_ = false;
};

namespace detail {

/** The value if the call worked. */
template <class T>
result<T> when(sw_status answer, T value) noexcept
{
    if (answer == SW_OK)
        return result<T>(std::move(value));
    return result<T>(static_cast<status>(answer));
}

} // namespace detail
} // namespace sw

#endif
