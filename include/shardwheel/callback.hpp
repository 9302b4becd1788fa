/**
 * @file callback.hpp
 * How a member function, a function or a lambda becomes the pair of function and `ctx` that the
 * library calls, and what becomes of an exception that leaves it.
 */
#ifndef SHARDWHEEL_CALLBACK_HPP
#define SHARDWHEEL_CALLBACK_HPP

#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

#include "time.hpp"

namespace sw {

/** What a callback may ask to be told: valid during the call. */
class expiry {
public:
    explicit expiry(const sw_expiry &raw) noexcept : raw_(raw) {} /**< Of a C expiry. */

    /** Whose expiry it is. */
    sw_timer timer() const noexcept { return raw_.timer; }
    /** When it was due. */
    time_point deadline() const noexcept { return detail::instant(raw_.deadline_ns); }
    /** The service's clock as this turn began: never before the deadline. */
    time_point now() const noexcept { return detail::instant(raw_.now_ns); }
    /** How late it comes. */
    std::chrono::nanoseconds lateness() const noexcept { return now() - deadline(); }
    /** Whole periods that went by unserved before this one. */
    std::uint64_t missed() const noexcept { return raw_.missed; }

private:
    const sw_expiry &raw_;
};

/** What is told of an exception that left a callback, on the thread where it was thrown. */
using exception_handler = void (*)(std::exception_ptr exception, const expiry &which);

namespace detail {

inline std::atomic<exception_handler> handler{nullptr};

/** Calls, with the expiry if the function takes one. */
template <class F, class... Object>
void invoke(const sw_expiry &raw, F &&function, Object... object)
{
    if constexpr (std::is_invocable_v<F &&, Object..., const expiry &>)
        std::invoke(std::forward<F>(function), object..., expiry(raw));
    else
        std::invoke(std::forward<F>(function), object...);
}

/**
 * Calls what the host gave. With a handler it is told of an exception. Without one nothing is
 * caught: the library lets `std::terminate` end the process in the thrower's frame.
 */
template <class F, class... Object>
void call(const sw_expiry &raw, F &&function, Object... object)
{
#if defined(__cpp_exceptions)
    if (exception_handler told = handler.load(std::memory_order_acquire)) {
        try {
            invoke(raw, std::forward<F>(function), object...);
        } catch (...) {
            told(std::current_exception(), expiry(raw));
        }
        return;
    }
#endif
    invoke(raw, std::forward<F>(function), object...);
}

/** What the library is given of a callback. */
struct binding {
    sw_callback call;
    void *ctx;
    sw_drop drop;
};

/** `Function` is a member function of `T`, or a function that takes a `T *`: nothing is stored. */
template <auto Function, class T>
binding bind(T *object) noexcept
{
    using plain = std::remove_cv_t<T>;
    const sw_callback entry = [](void *ctx, const sw_expiry *raw) {
        detail::call(*raw, Function, static_cast<T *>(static_cast<plain *>(ctx)));
    };
    return {entry, const_cast<plain *>(object), nullptr};
}

/** Is it a plain value, which its calls cannot change, that a `ctx` itself can hold? */
template <class F>
inline constexpr bool fits_in_ctx =
    sizeof(F) <= sizeof(void *) && std::is_trivially_copyable_v<F> &&
    (std::is_invocable_v<const F &> || std::is_invocable_v<const F &, const expiry &>);

/**
 * Any function object: in `ctx` itself if it is as small as one pointer or reference, else in
 * memory that the timer's drop gives back. No `call` if there was no memory.
 */
template <class F>
binding bind(F &&function)
{
    using stored = std::decay_t<F>;
    static_assert(std::is_invocable_v<stored &> || std::is_invocable_v<stored &, const expiry &>,
                  "a callback takes nothing, or a const sw::expiry &");
    if constexpr (fits_in_ctx<stored>) {
        void *ctx = nullptr;
        const stored copy(std::forward<F>(function));
        std::memcpy(&ctx, &copy, sizeof copy);
        const sw_callback entry = [](void *held, const sw_expiry *raw) {
            alignas(stored) unsigned char place[sizeof(stored)];
            std::memcpy(place, &held, sizeof place);
            detail::call(*raw, *std::launder(reinterpret_cast<const stored *>(place)));
        };
        return {entry, ctx, nullptr};
    } else {
        auto *kept = new (std::nothrow) stored(std::forward<F>(function));
        if (kept == nullptr)
            return {nullptr, nullptr, nullptr};
        const sw_callback entry = [](void *ctx, const sw_expiry *raw) {
            detail::call(*raw, *static_cast<stored *>(ctx));
        };
        return {entry, kept, [](void *ctx) { delete static_cast<stored *>(ctx); }};
    }
}

} // namespace detail

/**
 * Sets who is told of an exception that leaves a callback; the timer and its shard then go on as
 * if it had returned. Without a handler such an exception ends the process by `std::terminate`,
 * with the thrower's frames still standing. One for the whole program (or shared library that
 * hides its symbols). Exceptions of drops, hooks and the handler itself are never caught.
 *
 * @param handler a function; nullptr: none
 * @return the one before
 */
inline exception_handler set_exception_handler(exception_handler handler) noexcept
{
    return detail::handler.exchange(handler, std::memory_order_acq_rel);
}

} // namespace sw

#endif
