/**
 * @file shard.hpp
 * The shards of a driven service, which the host polls from its own loop.
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

/** One shard of a driven service. A view: to be copied, and not to outlive its service. */
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

private:
    sw_service *service_;
    std::uint32_t index_;
};

} // namespace sw

#endif
