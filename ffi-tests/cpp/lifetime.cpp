/*
 * The end of a timer's owner, on real threads: once the destructor has returned, the callback is
 * not running and will not run; and it never waits for itself.
 */
#include "shardwheel.hpp"

#include "../check.h"

#include <atomic>
#include <memory>
#include <thread>

namespace {

using namespace std::chrono_literals;

/* Long enough for what should not happen to happen. */
constexpr auto a_while = 100ms;

sw::service threads(std::uint32_t count)
{
    return std::move(*sw::service::start(sw::service_options().shards(count).unpinned()));
}

/* Waits until it is so; half a minute is too long. */
template <class Condition>
void until(Condition condition)
{
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
        CHECK(std::chrono::steady_clock::now() < limit);
        std::this_thread::sleep_for(1ms);
    }
}

/* A callback that, when it may, takes another while, and tells how far it is. */
struct slow {
    void run()
    {
        entered = true;
        until([&] { return released.load(); });
        std::this_thread::sleep_for(a_while);
        left = true;
    }
    std::atomic<bool> entered{false}, released{false}, left{false};
};

void waits_for_a_running_callback()
{
    auto service = threads(1);
    slow callback;
    {
        auto timer = *service.after<&slow::run>(&callback, 0ms);
        until([&] { return callback.entered.load(); });
        callback.released = true;
    }
    CHECK(callback.left);
}

void assignment_waits_too()
{
    auto service = threads(1);
    slow callback;
    auto timer = *service.after<&slow::run>(&callback, 0ms);
    until([&] { return callback.entered.load(); });
    callback.released = true;
    timer = sw::timer();
    CHECK(callback.left);
}

/* Members of an object that goes while its timers fire all the time. */
void objects_come_and_go()
{
    struct object {
        explicit object(sw::timers timers)
            : tick(*timers.every<&object::touch>(this, 1ms)),
              once(*timers.after<&object::touch>(this, 0ms))
        {
        }
        void touch() { *memory += 1; }
        std::unique_ptr<std::uint64_t> memory = std::make_unique<std::uint64_t>(0);
        sw::timer tick, once;
    };
    auto service = threads(2);
    for (int i = 0; i < 200; i++) {
        object one(service);
        std::this_thread::sleep_for(std::chrono::microseconds(i * 10));
    }
}

/* It re-arms itself for ever; its owner's end is the end. */
void ends_a_timer_that_rearms_itself()
{
    auto service = threads(1);
    std::atomic<int> calls{0};
    {
        sw::timers timers = service;
        auto timer = *service.after(0ms, [timers, &calls](const sw::expiry &expiry) mutable {
            calls += 1;
            timers.reset(expiry.timer(), 0ms);
        });
        until([&] { return calls > 10; });
    }
    const int then = calls;
    std::this_thread::sleep_for(a_while);
    CHECK(calls == then);
}

/* An object deletes itself in its timer's callback, on a wheel's thread. */
void an_object_ends_in_its_own_callback()
{
    struct object {
        void expire() { owner->reset(); }
        explicit object(std::unique_ptr<object> *its_owner, std::atomic<bool> *when_gone)
            : owner(its_owner), gone(when_gone)
        {
        }
        ~object() { *gone = true; }
        std::unique_ptr<object> *owner;
        std::atomic<bool> *gone;
        sw::timer timer;
    };
    auto service = threads(1);
    for (bool periodic : {false, true}) {
        std::atomic<bool> gone{false}, ready{false};
        std::unique_ptr<object> one(new object(&one, &gone));
        auto gate = *service.after(0ms, [&] { /* holds the shard until the timer is assigned */
            until([&] { return ready.load(); });
        });
        one->timer = periodic ? *service.every<&object::expire>(one.get(), 1ms)
                              : *service.after<&object::expire>(one.get(), 1ms);
        ready = true;
        until([&] { return gone.load(); });
    }
}

/* Two shards' callbacks destroy each other's timers: neither waits for ever. */
void a_circle_ends()
{
    auto service = threads(2);
    std::atomic<int> entered{0}, left{0};
    sw::timer timers[2];
    std::atomic<bool> ready{false};
    auto destroy = [&](int which) {
        return [&, which] {
            entered += 1;
            until([&] { return entered == 2 && ready; });
            sw::timer other = std::move(timers[1 - which]);
            other = sw::timer();
            left += 1;
        };
    };
    for (int i : {0, 1}) {
        const auto there = sw::timer_options().shard(static_cast<std::uint32_t>(i));
        timers[i] = *service.after(0ms, destroy(i), there);
    }
    ready = true;
    until([&] { return left == 2; });
}

/* A stop is under way; a callback that still runs is waited for all the same. */
void waits_while_the_service_stops(bool inside)
{
    auto service = threads(2);
    slow callback;
    std::atomic<bool> entered{false}, checked{false};
    auto victim = *service.after<&slow::run>(&callback, 0ms, sw::timer_options().shard(0));
    auto other = *service.after(0ms, [&] {
        entered = true;
        until([&] { return service.after(1h, [] {}).error() == sw::status::stopped; });
        callback.released = true;
        victim = sw::timer();
        CHECK(callback.left);
        checked = true;
    }, sw::timer_options().shard(inside ? 1 : 0));
    if (inside)
        until([&] { return entered.load(); });
    until([&] { return callback.entered.load(); });
    std::thread stopper([&] { service.stop().value(); });
    if (!inside) {
        until([&] { return service.after(1h, [] {}).error() == sw::status::stopped; });
        callback.released = true;
        victim = sw::timer();
        CHECK(callback.left);
    }
    stopper.join();
    CHECK(checked == inside);
}

} // namespace

int main()
{
    waits_for_a_running_callback();
    assignment_waits_too();
    objects_come_and_go();
    ends_a_timer_that_rearms_itself();
    an_object_ends_in_its_own_callback();
    a_circle_ends();
    waits_while_the_service_stops(false);
    waits_while_the_service_stops(true);
    return 0;
}
