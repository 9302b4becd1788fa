/**
 * @file service.hpp
 * The owner of a service: it starts with it and ends with it.
 */
#ifndef SHARDWHEEL_SERVICE_HPP
#define SHARDWHEEL_SERVICE_HPP

#include <memory>
#include <type_traits>
#include <utility>

#include "timers.hpp"

namespace sw {

/**
 * Owns a service, or none. Move-only; all calls on it are those of sw::timers, of which it is one.
 *
 * The destructor stops: no callback runs after it, the threads are joined, what lambdas held is
 * given back. Timers and queues must have gone before. Destroyed inside one of its own callbacks
 * it would wait for itself; the process then ends with a word why. In a child of the process that
 * started it nothing is freed.
 */
class service : public timers {
public:
    service() noexcept = default; /**< None. */

    /** Takes over a C service. */
    explicit service(sw_service *native) noexcept : timers(native) {}

    /** Starts a service. See ::sw_service_start */
    static result<service> start(const service_options &options = {}) noexcept
    {
        sw_service *started = nullptr;
        const sw_status answer = sw_service_start(&options.native(), &started);
        if (answer != SW_OK)
            return static_cast<status>(answer);
        return service(started);
    }

    /** Takes over; `other` then owns none. */
    service(service &&other) noexcept : timers(std::exchange(other.view(), timers())) {}

    /** Takes over, then frees the service that it had. */
    service &operator=(service &&other) noexcept
    {
        service taken(std::move(other));
        std::swap(view(), taken.view());
        return *this;
    }

    ~service()
    {
        if (sw_service_free(native()) == SW_WOULD_DEADLOCK)
            detail::fail("a sw::service is destroyed inside one of its own callbacks");
    }

    explicit operator bool() const noexcept { return native() != nullptr; } /**< Owns it one? */

    /**
     * Ends it: no callback runs after this returns, and all later starts are refused.
     *
     * @return how many timers had not fired; or why it was refused. See ::sw_service_stop
     */
    result<std::uint64_t> stop() noexcept
    {
        std::uint64_t returned = 0;
        const sw_status answer = sw_service_stop(native(), nullptr, nullptr, &returned);
        return detail::when(answer, returned);
    }

    /**
     * As stop(), and tells of each timer that had not fired.
     *
     * @param unfired called on this thread with the timer's handle, its `ctx` and its deadline: a
     * `sw_timer`, a `void *` and a sw::time_point. An exception that leaves it ends the process
     */
    template <class F>
    result<std::uint64_t> stop(F &&unfired)
    {
        using function = std::remove_reference_t<F>;
        const sw_unfired entry = [](void *arg, sw_timer timer, void *ctx, std::uint64_t deadline) {
            (*static_cast<function *>(arg))(timer, ctx, detail::instant(deadline));
        };
        std::uint64_t returned = 0;
        void *arg = const_cast<void *>(static_cast<const void *>(std::addressof(unfired)));
        const sw_status answer = sw_service_stop(native(), entry, arg, &returned);
        return detail::when(answer, returned);
    }

private:
    timers &view() noexcept { return *this; }
};

} // namespace sw

#endif
