/**
 * @file shard.hpp
 * Shards, which the host of a driven service polls from its own loop.
 */
#ifndef SHARDWHEEL_SHARD_HPP
#define SHARDWHEEL_SHARD_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "error.hpp"
#include "time.hpp"

namespace sw {

/** What an attached shard leaves to other threads. */
enum class sharing : std::uint32_t {
    /** They start, cancel and reset there as before. */
    shared = SW_ATTACH_SHARED,
    /** Their starts, cancels and resets there are `busy`. */
    exclusive = SW_ATTACH_EXCLUSIVE,
};

/** Keeps a shard attached to the thread that made it; the destructor, on that thread, detaches. */
class attachment {
public:
    attachment() noexcept = default; /**< Of no shard. */

    /** Takes over what ::sw_shard_attach began. */
    attachment(sw_service *service, std::uint32_t shard) noexcept
        : service_(service), shard_(shard)
    {
    }

    /** Takes over; `other` then keeps none. */
    attachment(attachment &&other) noexcept
        : service_(std::exchange(other.service_, nullptr)), shard_(other.shard_)
    {
    }

    /** Takes over, then detaches what it kept. */
    attachment &operator=(attachment &&other) noexcept
    {
        attachment taken(std::move(other));
        std::swap(service_, taken.service_);
        std::swap(shard_, taken.shard_);
        return *this;
    }

    ~attachment()
    {
        if (service_ != nullptr)
            sw_shard_detach(service_, shard_);
    }

private:
    sw_service *service_ = nullptr;
    std::uint32_t shard_ = 0;
};

/** A timer that is pending, as shard::visit() tells of it: valid during the call. */
class pending {
public:
    explicit pending(const sw_pending &raw) noexcept : raw_(raw) {} /**< Of a C struct. */

    /** Its handle. */
    sw_timer timer() const noexcept { return raw_.timer; }
    /** When it is due; `time_point::max()` does not come. */
    time_point deadline() const noexcept { return detail::instant(raw_.deadline_ns); }
    /** Its period; zero: a one-shot. */
    std::chrono::nanoseconds period() const noexcept { return detail::duration(raw_.period_ns); }
    /** What its callback gets. */
    void *ctx() const noexcept { return raw_.ctx; }
    /** The same as a pointer to what it is: a member function's object, or what a queue is given. */
    template <class T>
    T *object() const noexcept
    {
        return static_cast<T *>(raw_.ctx);
    }

private:
    const sw_pending &raw_;
};

/**
 * One shard. A view: to be copied, and not to outlive its service. All but visit() is refused as
 * `unsupported` by a service with threads of its own.
 */
class shard {
public:
    /** The shard with this index. */
    shard(sw_service *service, std::uint32_t index) noexcept : service_(service), index_(index) {}

    std::uint32_t index() const noexcept { return index_; } /**< Its index. */

    /**
     * Delivers what is due, on this thread, inside this call.
     *
     * @param budget at most so many expiries; 0: all
     * @return how many were delivered; or why it was refused. See ::sw_shard_poll
     */
    result<std::size_t> poll(std::size_t budget = 0) noexcept
    {
        std::size_t fired = 0;
        const sw_status answer = sw_shard_poll(service_, index_, budget, &fired);
        return detail::when(answer, fired);
    }

    /** A lower bound of when it next wants a poll; `time_point::max()`: nothing is pending. */
    result<time_point> next() const noexcept
    {
        std::uint64_t deadline = 0;
        const sw_status answer = sw_shard_next(service_, index_, &deadline);
        return detail::when(answer, detail::instant(deadline));
    }

    /** A descriptor that is readable when it wants a poll. See ::sw_shard_fd */
    result<int> fd() const noexcept
    {
        int fd = -1;
        const sw_status answer = sw_shard_fd(service_, index_, &fd);
        return detail::when(answer, fd);
    }

    /** Makes this thread its owner for as long as the answer lives. See ::sw_shard_attach */
    result<attachment> attach(sharing how = sharing::shared) noexcept
    {
        const sw_status answer =
            sw_shard_attach(service_, index_, static_cast<std::uint32_t>(how));
        if (answer != SW_OK)
            return static_cast<status>(answer);
        return attachment(service_, index_);
    }

    /**
     * Tells who is pending, for debugging, or to save timers before a restart; see
     * batch::spread(). The shard goes on meanwhile. See ::sw_shard_visit
     *
     * @param function called on this thread with a `const sw::pending &` for each, in no order
     * @return how many were told of; or why it was refused
     */
    template <class F>
    result<std::size_t> visit(F &&function) const
    {
        constexpr std::size_t at_once = 64;
        sw_pending part[at_once];
        std::size_t told = 0;
        for (std::uint64_t place = 0; place != SW_VISIT_END;) {
            std::size_t visited = 0;
            const sw_status answer =
                sw_shard_visit(service_, index_, &place, part, at_once, &visited);
            if (answer != SW_OK)
                return static_cast<status>(answer);
            for (std::size_t i = 0; i < visited; i++)
                function(pending(part[i]));
            told += visited;
        }
        return told;
    }

private:
    sw_service *service_;
    std::uint32_t index_;
};

} // namespace sw

#endif
