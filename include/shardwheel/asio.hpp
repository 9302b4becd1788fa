/**
 * @file asio.hpp
 * shardwheel on Boost.Asio: one driven shard, whose callbacks run where the executor runs its
 * handlers. C++11, without exceptions of its own.
 *
 *     boost::asio::io_context context;
 *     sw_shard_attach(service, 0, SW_ATTACH_SHARED);     if one thread runs it; faster, not needed
 *     sw::asio_shard timers(context.get_executor(), service, 0);
 *     if (timers.start()) ...                            an error_code
 *     context.run();
 *
 * The context sleeps until the shard has something due. A timer that another thread starts wakes it
 * only if it is earlier than what the context sleeps for. At most `budget` callbacks run in one
 * handler; the rest follow in the next one.
 *
 * Ground rules: all calls on one `asio_shard`, its destructor included, come from its executor
 * (with several threads: a strand), before the context runs, or after. It may be destroyed in a
 * timer's callback. The service must outlive it. While it is watched it keeps `run` from
 * returning. An exception that leaves a timer's callback ends the process, as everywhere.
 */
#ifndef SHARDWHEEL_ASIO_HPP
#define SHARDWHEEL_ASIO_HPP

#include "../shardwheel.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace sw {

/** A shard that is watched on an executor, from start() to stop() or its end. */
class asio_shard {
public:
    /** What runs the callbacks. */
    using executor_type = boost::asio::posix::stream_descriptor::executor_type;

    /** Of a driven service (a sw::service's `native()`); at most `budget` callbacks in a handler. */
    asio_shard(const executor_type &executor, sw_service *service, std::uint32_t shard,
               std::size_t budget = 1024)
        : state_(std::make_shared<state>(executor, service, shard, budget))
    {
    }

    /** As stop(). */
    ~asio_shard() { stop(); }

    asio_shard(const asio_shard &) = delete;
    asio_shard &operator=(const asio_shard &) = delete;

    /** Begins the watch. `invalid_argument`: the service has no such shard to be polled. */
    boost::system::error_code start()
    {
        stop();
        // A handler of an earlier watch may still come; it finds its own descriptor let go of.
        state_ = std::make_shared<state>(state_->descriptor.get_executor(), state_->service,
                                         state_->shard, state_->budget);
        boost::system::error_code error;
        int fd = -1;
        if (sw_shard_fd(state_->service, state_->shard, &fd) != SW_OK)
            return make_error_code(boost::system::errc::invalid_argument);
        state_->descriptor.assign(fd, error);
        if (!error) watch(state_);
        return error;
    }

    /** Ends the watch, also from inside a timer's callback. The shard's timers stay as they are. */
    void stop()
    {
        // The descriptor is the service's: let go of, not closed.
        if (state_->descriptor.is_open()) state_->descriptor.release();
    }

    /** Why it is not watched any more; SW_OK: it is, or has been stopped. */
    sw_status refused() const { return state_->refused; }

private:
    /** Held by each handler too, because one that is under way may come after the end. */
    struct state {
        state(const executor_type &executor, sw_service *of, std::uint32_t index, std::size_t most)
            : descriptor(executor), service(of), shard(index), budget(most)
        {
        }

        boost::asio::posix::stream_descriptor descriptor;
        sw_service *service;
        std::uint32_t shard;
        std::size_t budget;
        sw_status refused = SW_OK;
    };

    static void watch(const std::shared_ptr<state> &state)
    {
        state->descriptor.async_wait(
            boost::asio::posix::stream_descriptor::wait_read,
            [state](const boost::system::error_code &error) {
                if (error || !state->descriptor.is_open()) return;
                sw_status status =
                    sw_shard_poll(state->service, state->shard, state->budget, nullptr);
                // Short of memory, it is tried again. Else nobody would poll, and it would spin.
                if (status != SW_OK && status != SW_NO_MEMORY)
                    state->refused = status;
                else if (state->descriptor.is_open())
                    watch(state);
            });
    }

    std::shared_ptr<state> state_;
};

} // namespace sw

#endif
