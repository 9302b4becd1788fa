/**
 * @file batch.hpp
 * Many timers that are started at once, or again after a restart.
 */
#ifndef SHARDWHEEL_BATCH_HPP
#define SHARDWHEEL_BATCH_HPP

#include <cstddef>
#include <utility>
#include <vector>

#include "starter.hpp"
#include "timers.hpp"

namespace sw {

/**
 * Collects timers, to be started all or none. Move-only; what is not started is dropped.
 *
 *     sw::batch batch;
 *     for (order &order : orders)
 *         batch.after<&order::expire>(&order, 10min);
 *     auto started = batch.start(service);             // as many owners, in this order
 *
 * It is a vector inside: where memory runs out, collecting and starting throw `std::bad_alloc`,
 * and nothing is started.
 */
class batch : public starter<batch, batch &> {
public:
    batch() noexcept = default; /**< Empty. */

    /** Takes over; `other` is then empty. */
    batch(batch &&other) noexcept { swap(other); }

    /** Takes over, then drops what it had. */
    batch &operator=(batch &&other) noexcept
    {
        batch taken(std::move(other));
        swap(taken);
        return *this;
    }

    ~batch() { clear(); }

    std::size_t size() const noexcept { return specs_.size(); } /**< How many. */
    bool empty() const noexcept { return specs_.empty(); }      /**< None? */

    /** Makes room for so many in all. */
    void reserve(std::size_t count) { specs_.reserve(count); }

    /** Drops what was collected. */
    void clear() noexcept
    {
        for (const sw_timer_spec &spec : specs_) {
            if (spec.drop != nullptr)
                spec.drop(spec.ctx);
        }
        specs_.clear();
        refused_ = status::ok;
    }

    /**
     * Starts all of them, or none; the batch is empty afterwards.
     *
     * @return an owner for each, in the order in which they were collected; or why it was refused.
     * See ::sw_timer_start_batch
     */
    result<std::vector<timer>> start(const timers &service)
    {
        return launch(service, [&](const sw_timer_spec *specs, std::size_t count, sw_timer *handles) {
            return sw_timer_start_batch(service.native(), specs, count, handles);
        });
    }

    /**
     * As start(), for timers that were saved before a restart with shard::visit(): of those that
     * were collected by `at` the deadlines that have gone by are spread evenly over `window` from
     * now, in the order in which they were collected. See ::sw_timer_start_spread
     */
    template <class Rep, class Period>
    result<std::vector<timer>> spread(const timers &service,
                                      std::chrono::duration<Rep, Period> window)
    {
        const std::uint64_t over = detail::nanoseconds(window);
        return launch(service, [&](const sw_timer_spec *specs, std::size_t count, sw_timer *handles) {
            return sw_timer_start_spread(service.native(), specs, count, over, handles);
        });
    }

private:
    friend starter<batch, batch &>;

    batch &take(const sw_timer_spec &spec)
    {
        // What a callback holds goes, if there is no room for its timer.
        struct holder {
            const sw_timer_spec *spec;
            ~holder()
            {
                if (spec != nullptr && spec->drop != nullptr)
                    spec->drop(spec->ctx);
            }
        } held{&spec};
        specs_.push_back(spec);
        held.spec = nullptr;
        return *this;
    }

    batch &refuse(status why) noexcept { return refused_ = why, *this; }

    void swap(batch &other) noexcept
    {
        specs_.swap(other.specs_);
        std::swap(refused_, other.refused_);
    }

    template <class Launch>
    result<std::vector<timer>> launch(const timers &service, Launch begin)
    {
        if (const status why = refused_; why != status::ok)
            return clear(), why;
        std::vector<timer> owners;
        owners.reserve(specs_.size());
        std::vector<sw_timer> handles(specs_.size());
        const sw_status answer = begin(specs_.data(), specs_.size(), handles.data());
        // The library has taken each, or dropped it.
        specs_.clear();
        if (answer != SW_OK)
            return static_cast<status>(answer);
        for (const sw_timer handle : handles)
            owners.emplace_back(service.native(), handle);
        return owners;
    }

    std::vector<sw_timer_spec> specs_;
    status refused_ = status::ok; // why one of them could not be collected
};

} // namespace sw

#endif
