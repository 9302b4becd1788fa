/*
 * What a service tells of itself in C++: numbers, texts, callbacks that are stuck; and memory that
 * it gives back. Compiled with and without exceptions and RTTI.
 */
#include "shardwheel.hpp"

#include "../check.h"

#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

sw::service driven(std::uint32_t shards, std::chrono::nanoseconds slow = 0ns)
{
    auto options = sw::service_options().driven().shards(shards).slow_callback(slow);
    return std::move(*sw::service::start(options));
}

void details_and_texts()
{
    auto service = driven(2);
    sw::batch batch;
    for (int i = 0; i < 100; i++)
        batch.after(1h, [] {}, sw::timer_options().shard(1));
    auto started = *batch.start(service);
    CHECK(*service.shard(1).poll() == 0);
    CHECK(service.details(1)->reminders_live == 100 && service.details(0)->reminders_live == 0);
    const sw_details all = *service.details();
    CHECK(all.reminders_live == 100 && all.inbox_depth == 0 && all.slots_allocated >= 100);
    CHECK(service.details(2).error() == sw::status::invalid);

    const std::string prometheus = *service.prometheus(), report = *service.report();
    CHECK(prometheus.find("# TYPE ") != std::string::npos && prometheus.back() == '\n');
    CHECK(report.find("100 pending") != std::string::npos && report.back() == '\n');
    CHECK(report.find('\0') == std::string::npos && prometheus.find('\0') == std::string::npos);
    CHECK(sw::timers().report().error() == sw::status::invalid);
    CHECK(sw::timers().details().error() == sw::status::invalid);
}

void memory_comes_back()
{
    auto service = driven(1);
    {
        sw::batch batch;
        for (int i = 0; i < 100000; i++)
            batch.after(1h, [] {});
        auto started = *batch.start(service);
        CHECK(*service.shard(0).poll() == 0);
        CHECK(service.details()->slots_allocated >= 100000);
    }
    const auto before = service.stats()->memory_bytes;
    CHECK(*service.shard(0).poll() == 0);
    CHECK(service.trim() == sw::status::ok);
    CHECK(*service.shard(0).poll() == 0);
    CHECK(service.stats()->memory_bytes < before / 2);
    CHECK(service.details()->slots_allocated < 50000);
    CHECK(sw::timers().trim() == sw::status::invalid);
}

struct watch {
    void told(std::uint32_t shard, sw_timer timer, std::chrono::nanoseconds elapsed)
    {
        times += 1;
        CHECK(shard == 1 && elapsed > 1ms);
        which = timer;
    }
    int times = 0;
    sw_timer which = SW_TIMER_NONE;
};

/* A callback that takes too long, and looks at the numbers: so it finds itself. */
template <class Set>
void stuck(const watch &watch, Set set)
{
    auto service = driven(2, 1ms);
    sw::timers timers = service;
    CHECK(set(timers) == sw::status::ok);
    CHECK(set(timers) == sw::status::busy);
    auto slow = [&timers] {
        std::this_thread::sleep_for(5ms);
        (void)timers.stats();
        (void)timers.stats();
    };
    auto timer = *service.after(0ms, slow, sw::timer_options().shard(1));
    while (*service.shard(1).poll() == 0)
        std::this_thread::sleep_for(1ms);
    CHECK(watch.times == 1 && watch.which == timer.handle());
    CHECK(service.stats()->slow_callbacks == 1);
}

void stuck_callbacks_are_told_of()
{
    watch one, two;
    stuck(one, [&](sw::timers &timers) { return timers.on_stuck<&watch::told>(&one); });
    const auto hook = [&](std::uint32_t shard, sw_timer timer, std::chrono::nanoseconds elapsed) {
        two.told(shard, timer, elapsed);
    };
    stuck(two, [&](sw::timers &timers) { return timers.on_stuck(hook); });

    auto unlimited = driven(1);
    CHECK(unlimited.on_stuck(hook) == sw::status::invalid);
}

} // namespace

int main()
{
    details_and_texts();
    memory_comes_back();
    stuck_callbacks_are_told_of();
    return 0;
}
