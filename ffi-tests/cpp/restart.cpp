/*
 * Many timers at once in C++, and again after a restart: batches, and who is pending. On a manual
 * clock; compiled with and without exceptions and RTTI.
 */
#include "shardwheel.hpp"

#include "../check.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;

sw::service manual(std::uint32_t shards = 1)
{
    auto options = sw::service_options().manual_clock().shards(shards).tick(1ms).max_timers(256);
    return std::move(*sw::service::start(options));
}

std::size_t go(sw::service &service, std::chrono::nanoseconds by)
{
    CHECK(service.advance(by) == sw::status::ok);
    return *service.shard(0).poll();
}

static_assert(!std::is_copy_constructible_v<sw::batch> && !std::is_copy_assignable_v<sw::batch>);
static_assert(std::is_nothrow_move_constructible_v<sw::batch>);

struct order {
    void expire() { closed += 1; }
    void look(const sw::expiry &expiry) { due = expiry.deadline(); }
    int closed = 0;
    sw::time_point due{};
};

/* Each way to describe a timer; the owners stand in the order of collecting. */
void all_ways()
{
    auto service = manual();
    auto queue = *service.make_queue();
    order orders[3];
    int calls = 0, in_queue = 0;
    sw::batch batch;
    batch.reserve(8);
    CHECK(batch.empty());
    batch.after<&order::expire>(&orders[0], 1ms).at<&order::look>(&orders[1], sw::time_point(2ms));
    batch.every<&order::expire>(&orders[2], 1ms, sw::timer_options().burst());
    batch.after(3ms, [&calls] { calls += 1; }).at(sw::time_point(3ms), [&calls] { calls += 10; });
    batch.after(1ms, queue, &in_queue).every(1ms, [&calls] { calls += 100; });
    CHECK(batch.size() == 7);

    auto started = batch.start(service);
    CHECK(started && started->size() == 7 && batch.empty());
    CHECK(service.stats()->started == 7);
    CHECK(*(*started)[0].remaining() == 1ms && *(*started)[4].remaining() == 3ms);
    CHECK((*started)[6].cancel() == sw::status::ok);
    CHECK(go(service, 3ms) == 8); /* 1, 1, 3, 1, 1 and 1 */
    CHECK(orders[0].closed == 1 && orders[1].due == sw::time_point(2ms) && orders[2].closed == 3);
    CHECK(calls == 11);

    /* They go with their owners. */
    CHECK(service.stats()->pending == 2); /* the periodic one, and the event that nobody took */
    started->clear();
    CHECK(service.stats()->pending == 0);

    /* And the batch can be used again. */
    batch.after<&order::expire>(&orders[0], 1ms);
    started = batch.start(service);
    CHECK(started->size() == 1 && go(service, 1ms) == 1 && orders[0].closed == 2);
    CHECK(batch.start(service)->empty());
}

/* What a lambda holds goes once, whatever becomes of its batch. */
void what_is_held()
{
    auto service = manual();
    auto held = std::make_shared<int>(0);
    const std::string text = "more than a pointer holds";
    auto fill = [&](sw::batch &batch, int count) {
        for (int i = 0; i < count; i++)
            batch.after(1s, [held, text] {});
    };
    {
        sw::batch batch;
        fill(batch, 3);
        CHECK(held.use_count() == 4);
        sw::batch other(std::move(batch));
        CHECK(other.size() == 3 && held.use_count() == 4);
        fill(batch, 2);
        batch = std::move(other);
        CHECK(batch.size() == 3 && other.empty() && held.use_count() == 4);
        batch.clear();
        CHECK(batch.empty() && held.use_count() == 1);
        fill(batch, 1);
    }
    CHECK(held.use_count() == 1);

    /* All or none. */
    sw::batch batch;
    fill(batch, 256);
    batch.after(1s, [held, text] {});
    CHECK(batch.start(service).error() == sw::status::full);
    CHECK(batch.empty() && held.use_count() == 1 && service.stats()->pending == 0);
    fill(batch, 2);
    batch.every(0s, [held, text] {});
    CHECK(batch.start(service).error() == sw::status::invalid && held.use_count() == 1);
    fill(batch, 2);
    CHECK(batch.start(sw::timers()).error() == sw::status::invalid && held.use_count() == 1);
    fill(batch, 2);
    {
        auto started = batch.start(service);
        CHECK(started && held.use_count() == 3);
    }
    CHECK(held.use_count() == 1 && service.stats()->cancelled == 2);
}

/* A callback that there is no memory for. */
struct homeless {
    void operator()() const {}
    static void *operator new(std::size_t, const std::nothrow_t &) noexcept { return nullptr; }
    static void operator delete(void *, const std::nothrow_t &) noexcept {}
    static void operator delete(void *) noexcept {}

    std::shared_ptr<int> held;
};

/* Its timer, and the batch that it was to be in, are refused. */
void no_memory()
{
    auto service = manual();
    auto held = std::make_shared<int>(0);
    sw::batch batch;
    batch.after(1s, [held] {}).after(1s, homeless{held}).after(1s, [held] {});
    CHECK(held.use_count() == 3);
    CHECK(service.after(1s, homeless{held}).error() == sw::status::no_memory);
    CHECK(batch.start(service).error() == sw::status::no_memory);
    CHECK(batch.empty() && held.use_count() == 1 && service.stats()->started == 0);
    batch.after(1s, [held] {});
    CHECK(batch.start(service)->size() == 1);
}

void who_is_pending()
{
    auto service = manual(2);
    order orders[200];
    sw::batch batch;
    for (int i = 0; i < 200; i++)
        batch.after<&order::expire>(&orders[i], 1ms * (i + 1), sw::timer_options().shard(1));
    auto started = *batch.start(service);
    auto beat = *service.every<&order::expire>(&orders[0], 7ms, sw::timer_options().shard(0));
    auto never = *service.after<&order::expire>(&orders[1], sw::never, sw::timer_options().shard(0));

    std::vector<const order *> seen;
    auto note = [&](const sw::pending &pending) {
        seen.push_back(pending.object<order>());
        CHECK(pending.ctx() == seen.back() && pending.period() == 0ms);
        const auto at = static_cast<std::size_t>(seen.back() - orders);
        CHECK(pending.timer() == started[at].handle());
        CHECK(pending.deadline() == sw::time_point(1ms * (at + 1)));
    };
    CHECK(*service.shard(1).visit(note) == 200);
    std::sort(seen.begin(), seen.end());
    for (std::size_t i = 0; i < 200; i++)
        CHECK(seen[i] == &orders[i]);

    int met = 0;
    CHECK(*service.shard(0).visit([&](const sw::pending &pending) {
        const bool is_beat = pending.timer() == beat.handle();
        CHECK(is_beat || pending.timer() == never.handle());
        CHECK(pending.period() == (is_beat ? 7ms : 0ms));
        CHECK(pending.deadline() == (is_beat ? sw::time_point(7ms) : sw::time_point::max()));
        met += 1;
    }) == 2);
    CHECK(met == 2);
    CHECK(service.shard(2).visit([](const sw::pending &) {}).error() == sw::status::invalid);
    const auto threaded = sw::service::start(sw::service_options().shards(1));
    CHECK(*threaded->shard(0).visit([](const sw::pending &) {}) == 0);
}

/* A process ends with ten timers, of which eight come due while it is away; the next one takes
 * them over, and is not run down by them. */
void a_restart()
{
    struct saved {
        std::string name;
        sw::time_point deadline;
    };
    std::vector<saved> file;
    {
        auto service = manual();
        std::vector<std::string> names;
        for (int i = 0; i < 10; i++)
            names.push_back("session " + std::to_string(i));
        auto queue = *service.make_queue();
        sw::batch batch;
        for (std::size_t i = 0; i < 10; i++)
            batch.after(10s * (i + 1), queue, &names[i]);
        auto started = *batch.start(service);
        CHECK(*service.shard(0).visit([&file](const sw::pending &pending) {
            file.push_back({*pending.object<std::string>(), pending.deadline()});
        }) == 10);
    }
    std::sort(file.begin(), file.end(),
              [](const saved &a, const saved &b) { return a.deadline < b.deadline; });

    auto service = manual();
    CHECK(go(service, 85s) == 0);
    std::vector<std::pair<std::string, sw::time_point>> fired;
    sw::batch batch;
    for (const saved &timer : file)
        batch.at(timer.deadline, [&fired, name = timer.name](const sw::expiry &expiry) {
            fired.emplace_back(name, expiry.deadline());
        });
    auto restored = *batch.spread(service, 4s);
    CHECK(restored.size() == 10 && fired.empty());
    CHECK(go(service, 0s) <= 1);
    CHECK(go(service, 4s) >= 7 && fired.size() == 8);
    for (std::size_t i = 0; i < 8; i++) {
        CHECK(fired[i].first == "session " + std::to_string(i));
        CHECK(i == 0 || fired[i].second - fired[i - 1].second >= 400ms);
    }
    CHECK(go(service, 11s) == 2 && fired[9].second == sw::time_point(100s));
}

} // namespace

int main()
{
    all_ways();
    what_is_held();
    no_memory();
    who_is_pending();
    a_restart();
    return 0;
}
