/**
 * @file queue.hpp
 * Expiries that the host takes instead of being called back.
 */
#ifndef SHARDWHEEL_QUEUE_HPP
#define SHARDWHEEL_QUEUE_HPP

#include <cstddef>
#include <utility>

#include "callback.hpp"
#include "error.hpp"

namespace sw {

/** One expiry taken from a queue. */
class event {
public:
    explicit event(const sw_event &raw) noexcept : raw_(raw) {} /**< Of a C event. */

    /** What came due. */
    sw::expiry expiry() const noexcept { return sw::expiry(raw_.expiry); }
    /** What the timer was started with; of a one-shot it is the taker's from now on. */
    void *ctx() const noexcept { return raw_.ctx; }
    /** The same as a pointer to what it is. */
    template <class T>
    T *object() const noexcept
    {
        return static_cast<T *>(raw_.ctx);
    }

private:
    const sw_event &raw_;
};

/** Room for `Capacity` events, and those of the last poll: `for (sw::event event : batch)`. */
template <std::size_t Capacity>
class event_batch {
public:
    /** Goes through the events. */
    class iterator {
    public:
        explicit iterator(const sw_event *at) noexcept : at_(at) {} /**< At a C event. */
        event operator*() const noexcept { return event(*at_); }    /**< The event. */
        iterator &operator++() noexcept { return ++at_, *this; }    /**< The next. */
        /** Are they at different events? */
        bool operator!=(iterator other) const noexcept { return at_ != other.at_; }

    private:
        const sw_event *at_;
    };

    iterator begin() const noexcept { return iterator(events_); }       /**< The first. */
    iterator end() const noexcept { return iterator(events_ + size_); } /**< Past the last. */
    std::size_t size() const noexcept { return size_; }                 /**< How many. */
    bool empty() const noexcept { return size_ == 0; }                  /**< None? */

private:
    friend class queue;
    sw_event events_[Capacity];
    std::size_t size_ = 0;
};

/**
 * Owns a queue, or none. Move-only. Timers name it when they are started; any number of threads
 * poll it.
 *
 * The destructor cancels the timers that would have been delivered here and withdraws what nobody
 * took. While another thread has a shard of the service attached exclusively it cannot, and leaves
 * the queue to the service. It must go before its service is destroyed.
 */
class queue {
public:
    queue() noexcept = default; /**< None. */

    /** Takes over a C queue. */
    explicit queue(sw_queue *native) noexcept : native_(native) {}

    /** Takes over; `other` then owns none. */
    queue(queue &&other) noexcept : native_(std::exchange(other.native_, nullptr)) {}

    /** Takes over, then frees the queue that it had. */
    queue &operator=(queue &&other) noexcept
    {
        queue taken(std::move(other));
        std::swap(native_, taken.native_);
        return *this;
    }

    ~queue()
    {
        if (native_ != nullptr)
            sw_queue_free(native_);
    }

    explicit operator bool() const noexcept { return native_ != nullptr; } /**< Owns it one? */
    sw_queue *native() const noexcept { return native_; }                  /**< The C queue. */

    /**
     * Takes expiries, those of a shard in the order of deadlines, oldest first; never waits.
     *
     * @return how many, 0 if there was nothing; or why it was refused. See ::sw_queue_poll
     */
    template <std::size_t Capacity>
    result<std::size_t> poll(event_batch<Capacity> &batch) noexcept
    {
        batch.size_ = 0;
        const sw_status answer = sw_queue_poll(native_, batch.events_, Capacity, &batch.size_);
        return detail::when(answer, batch.size_);
    }

    /** A descriptor that is readable while there is something to take. See ::sw_queue_fd */
    result<int> fd() const noexcept
    {
        int fd = -1;
        const sw_status answer = sw_queue_fd(native_, &fd);
        return detail::when(answer, fd);
    }

private:
    sw_queue *native_ = nullptr;
};

} // namespace sw

#endif
