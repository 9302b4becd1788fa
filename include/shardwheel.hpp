/**
 * @file shardwheel.hpp
 * Millions of timeouts on pinned timing wheels, for C++17. Header-only, over shardwheel.h; needs
 * neither exceptions nor RTTI.
 *
 *     class session {
 *     public:
 *         explicit session(sw::timers timers)
 *             : idle_(*timers.after<&session::on_idle>(this, 30s)) {}
 *         void on_bytes() { idle_.reset(30s); }        // one atomic operation
 *     private:
 *         void on_idle() { close(); }                  // on a wheel's thread
 *         sw::timer idle_;                             // its end cancels, and waits
 *     };
 *
 *     auto service = sw::service::start();
 *     if (!service)
 *         return service.error();                      // a std::error_code
 *     session session(*service);
 *
 * - sw::service starts, stops and owns; sw::timers are its calls, a view to be copied.
 * - sw::timer owns one timer; sw::batch starts many; sw::queue takes expiries in batches; sw::shard
 *   is for loops.
 * - Delays are `std::chrono` durations, rounded up; never early.
 * - What can be refused answers a sw::status or a sw::result; both become `std::error_code`.
 * - A callback's exception ends the process, or goes to the handler of
 *   sw::set_exception_handler().
 */
#ifndef SHARDWHEEL_HPP
#define SHARDWHEEL_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "shardwheel.hpp wants C++17; shardwheel.h serves C99 and C++11"
#endif

#include "shardwheel/batch.hpp"
#include "shardwheel/callback.hpp"
#include "shardwheel/error.hpp"
#include "shardwheel/options.hpp"
#include "shardwheel/queue.hpp"
#include "shardwheel/service.hpp"
#include "shardwheel/shard.hpp"
#include "shardwheel/starter.hpp"
#include "shardwheel/time.hpp"
#include "shardwheel/timer.hpp"
#include "shardwheel/timers.hpp"

#endif
