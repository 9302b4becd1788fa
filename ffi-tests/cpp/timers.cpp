/*
 * Every call of the C++ layer on a manual clock, where all is exact. Compiled with and without
 * exceptions and RTTI.
 */
#include "shardwheel.hpp"

#include "../check.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;

/* Checks a status. */
#define IS(call, expected) CHECK((call) == sw::status::expected)

sw::service manual(std::uint32_t shards = 1)
{
    auto options = sw::service_options().manual_clock().shards(shards).tick(1ms).max_timers(64);
    auto service = sw::service::start(options);
    CHECK(service && !service.error());
    CHECK(service->shard_count() == shards);
    return std::move(*service);
}

std::size_t go(sw::service &service, std::chrono::nanoseconds by)
{
    IS(service.advance(by), ok);
    return *service.shard(0).poll();
}

static_assert(!std::is_copy_constructible_v<sw::timer> && !std::is_copy_assignable_v<sw::timer>);
static_assert(std::is_nothrow_move_constructible_v<sw::timer>);
static_assert(std::is_nothrow_move_assignable_v<sw::timer>);
static_assert(!std::is_copy_constructible_v<sw::service> && !std::is_copy_constructible_v<sw::queue>);
static_assert(std::is_trivially_copyable_v<sw::timers> && sizeof(sw::timers) == sizeof(void *));
static_assert(sizeof(sw::timer) == 16);

class session {
public:
    void on_idle() { idle += 1; }
    void on_request(const sw::expiry &expiry)
    {
        request += 1;
        lateness = expiry.lateness();
        timer = expiry.timer();
    }
    void on_tick(const sw::expiry &expiry) noexcept { missed += expiry.missed(); }
    void look() const { looked = true; }

    int idle = 0, request = 0;
    std::uint64_t missed = 0;
    std::chrono::nanoseconds lateness{};
    sw_timer timer = SW_TIMER_NONE;
    mutable bool looked = false;
};

void free_function(session *session) { session->idle += 100; }

void member_functions()
{
    auto service = manual();
    session session;
    const class session &constant = session;
    auto idle = *service.after<&session::on_idle>(&session, 2ms);
    auto request = *service.at<&session::on_request>(&session, service.now() + 1ms);
    auto look = *service.after<&session::look>(&constant, 1ms);
    auto free = *service.after<free_function>(&session, 1ms);
    CHECK(idle && request.handle() != SW_TIMER_NONE);
    CHECK(go(service, 1ms + 1us) == 3);
    CHECK(session.request == 1 && session.lateness == 1us && session.timer == request.handle());
    CHECK(session.looked && session.idle == 100);

    /* Pushed out, drawn in, cancelled. */
    CHECK(*idle.remaining() == 999us);
    IS(idle.reset(10ms), ok);
    CHECK(*idle.remaining() == 10ms);
    IS(idle.reset_at(service.now() + 5ms), ok);
    CHECK(go(service, 4ms) == 0);
    IS(idle.cancel(), ok);
    IS(idle.cancel(), not_found);
    IS(idle.cancel_wait(), not_found);
    IS(idle.reset(1s), not_found);
    CHECK(idle.remaining().error() == sw::status::not_found);
    CHECK(go(service, 1s) == 0 && session.idle == 100);

    /* The whole range. */
    auto never = *service.after<&session::on_idle>(&session, sw::never);
    CHECK(*never.remaining() == sw::never);
    CHECK(go(service, 24h * 365) == 0);
}

/* A timer goes with its owner, and moves with it. */
void ownership()
{
    auto service = manual();
    session session;
    auto start = [&] { return *service.after<&session::on_idle>(&session, 1ms); };
    auto pending = [&] { return service.stats()->pending; };
    {
        auto timer = start();
        CHECK(pending() == 1);
        sw::timer moved = std::move(timer);
        CHECK(moved && !timer && pending() == 1);
        moved = start();
        CHECK(pending() == 1);
        sw::timer &same = moved;
        moved = std::move(same);
        CHECK(moved && pending() == 1);
    }
    CHECK(pending() == 0);
    (void)service.after<&session::on_idle>(&session, 1ms); /* nobody owns it */
    CHECK(pending() == 0);

    sw_timer handle = start().release();
    CHECK(pending() == 1);
    CHECK(*service.remaining(handle) == 1ms);
    IS(service.reset(handle, 2ms), ok);
    IS(service.reset_at(handle, service.now() + 3ms), ok);
    IS(service.cancel(handle), ok);
    IS(service.cancel_wait(handle), not_found);
    const sw_timer many[] = {start().release(), start().release(), handle};
    CHECK(*service.cancel_all(many, 3) == 2);
    CHECK(session.idle == 0);

    sw::timer none;
    CHECK(!none);
    IS(none.cancel(), invalid);
    IS(none.reset(1s), invalid);
}

void lambdas()
{
    auto service = manual();
    int calls = 0;
    auto shared = std::make_shared<int>(0);
    std::string text = "kept beside the timer";
    {
        auto small = *service.after(1ms, [&calls] { calls += 1; });
        auto large = *service.after(1ms, [shared, text, &calls](const sw::expiry &expiry) {
            CHECK(expiry.deadline() == sw::time_point(1ms) && expiry.now() == expiry.deadline());
            calls += 10 + static_cast<int>(text.size()) + *shared;
        });
        auto absolute = *service.at(sw::time_point(1ms), [&calls] { calls += 100; });
        auto unique = *service.after(1ms, [held = std::make_unique<int>(1000), &calls] {
            calls += *held;
        });
        CHECK(shared.use_count() == 2);
        CHECK(go(service, 1ms) == 4 && calls == 1132);
    }
    CHECK(shared.use_count() == 1);

    /* What it holds goes with a cancel, with a refusal and with the service. */
    auto holds = [shared, text] { std::abort(); };
    *service.after(1s, holds);
    CHECK(shared.use_count() == 2);
    auto refused = service.after(1s, holds, sw::timer_options().shard(7));
    CHECK(refused.error() == sw::status::invalid && shared.use_count() == 2);
    CHECK(!service.every(0s, holds) && shared.use_count() == 2);
    service.after(1s, holds)->release();
    CHECK(shared.use_count() == 3);
    service = sw::service();
    CHECK(!service && shared.use_count() == 2);
    IS(service.after(1s, [] {}).error(), invalid);
}

/* A lambda's own state lasts from one call to the next, however small it is. */
void states()
{
    auto service = manual();
    std::uint64_t sum = 0;
    static std::uint64_t *told;
    told = &sum;
    auto counter = *service.every(1ms, [n = std::uint64_t{0}]() mutable { *told = ++n; });
    for (int i = 0; i < 3; i++)
        CHECK(go(service, 1ms) == 1);
    CHECK(sum == 3);
}

void periods()
{
    auto service = manual();
    session session;
    int calls = 0, slow = 0;
    std::vector<sw::time_point> served;
    auto skip = *service.every<&session::on_tick>(&session, 10ms);
    auto burst = *service.every(10ms, [&](const sw::expiry &e) { served.push_back(e.deadline()); },
                                sw::timer_options().burst());
    auto fixed = *service.every(10ms, [&] { slow += 1; }, sw::timer_options().fixed_delay());
    auto self = std::make_unique<sw::timer>();
    *self = *service.every(10ms, [&] {
        calls += 1;
        self.reset(); /* in its own callback: no further run */
    });
    CHECK(go(service, 35ms) == 6);
    CHECK(session.missed == 2 && calls == 1 && slow == 1);
    CHECK((served == std::vector<sw::time_point>{sw::time_point(10ms), sw::time_point(20ms),
                                                 sw::time_point(30ms)}));
    CHECK(*fixed.remaining() == 10ms);
    CHECK(go(service, 5ms) == 2 && session.missed == 2 && served.size() == 4);
    IS(service.every<&session::on_tick>(&session, 0ms).error(), invalid);
    IS(service.every(-1s, [] {}).error(), invalid);
}

/* Re-armed inside; and a callback that destroys what it is a member of. */
void inside()
{
    auto service = manual();
    sw::timers timers = service;
    int calls = 0;
    auto again = *service.after(1ms, [timers, &calls](const sw::expiry &expiry) mutable {
        if (++calls < 3)
            IS(timers.reset(expiry.timer(), 1ms), ok);
    });
    for (int i = 0; i < 5; i++)
        go(service, 1ms);
    CHECK(calls == 3);

    struct last {
        void expire()
        {
            count += 1;
            owner->reset();
        }
        int &count;
        std::unique_ptr<last> *owner;
        sw::timer timer{};
    };
    int ended = 0;
    std::unique_ptr<last> object(new last{ended, &object});
    object->timer = *service.after<&last::expire>(object.get(), 1ms);
    CHECK(go(service, 1ms) == 1 && ended == 1 && object == nullptr);
    object.reset(new last{ended, &object});
    object->timer = *service.every<&last::expire>(object.get(), 1ms);
    CHECK(go(service, 1ms) == 1 && ended == 2 && object == nullptr);
    CHECK(go(service, 1s) == 0);
}

void queues()
{
    auto service = manual();
    auto queue = *service.make_queue();
    CHECK(queue && *queue.fd() >= 0);
    int first = 1, second = 2, third = 3, cancelled = 4;
    auto a = *service.after(2ms, queue, &second);
    auto b = *service.at(sw::time_point(1ms), queue, &first);
    auto c = *service.every(3ms, queue, &third);
    auto d = *service.after(1ms, queue, &cancelled);
    CHECK(go(service, 3ms) == 4);
    IS(d.cancel(), ok);

    sw::event_batch<2> batch;
    std::string order;
    while (*queue.poll(batch) > 0)
        for (sw::event event : batch)
            order += std::to_string(*event.object<int>());
    CHECK(order == "123" && batch.empty() && batch.size() == 0);

    CHECK(go(service, 7ms) == 1);
    CHECK(*queue.poll(batch) == 1);
    const sw::event event = *batch.begin();
    CHECK(event.ctx() == &third && event.expiry().timer() == c.handle());
    CHECK(event.expiry().missed() == 1 && event.expiry().deadline() == sw::time_point(9ms));

    sw::queue other = *service.make_queue();
    other = std::move(queue);
    CHECK(other && !queue && queue.poll(batch).error() == sw::status::invalid);
    CHECK(service.stats()->pending == 1);
    other = sw::queue();
    CHECK(service.stats()->pending == 0);
    IS(service.after(1s, other, nullptr).error(), invalid);
}

void shards()
{
    auto service = manual(2);
    int calls = 0;
    auto on_second = sw::timer_options().shard(1).slack(5ms);
    auto timer = *service.after(1ms, [&] { calls += 1; }, on_second);
    CHECK(sw_timer_shard(timer.handle()) == 1);
    auto shard = service.shard(1);
    CHECK(shard.index() == 1 && *shard.fd() >= 0);
    CHECK(*service.shard(0).next() == sw::time_point::max());
    CHECK(*shard.next() <= sw::time_point(6ms));
    {
        auto attached = *shard.attach(sw::sharing::exclusive);
        auto moved = std::move(attached);
        moved = *service.shard(0).attach();
        CHECK(sw_shard_detach(service.native(), 1) == SW_INVALID); /* it was detached */
    }
    CHECK(sw_shard_detach(service.native(), 0) == SW_INVALID);
    IS(service.advance(6ms), ok);
    CHECK(*service.shard(0).poll() == 0 && *shard.poll(1) == 1 && calls == 1);
    IS(service.shard(2).poll().error(), invalid);
    IS(service.shard(2).attach().error(), invalid);
}

void numbers_and_stop()
{
    auto service = manual();
    sw::timer timers[3];
    for (auto &timer : timers)
        timer = *service.after(1s, [] {});
    CHECK(service.stats()->started == 3 && service.stats(0)->pending == 3);
    IS(service.stats(9).error(), invalid);
    CHECK(service.prometheus()->find("started") != std::string::npos);

    std::vector<sw_timer> told;
    auto returned = service.stop([&](sw_timer timer, void *, sw::time_point deadline) {
        told.push_back(timer);
        CHECK(deadline == sw::time_point(1s));
    });
    CHECK(*returned == 3 && told.size() == 3 && *service.stop() == 0);
    IS(service.after(1s, [] {}).error(), stopped);
    IS(timers[0].cancel(), stopped);
}

void errors()
{
    std::error_code code = sw::status::full;
    CHECK(code && code.category() == sw::category());
    CHECK(code.message() == sw_status_text(SW_FULL));
    CHECK(std::string(code.category().name()) == "shardwheel");
    CHECK(!std::error_code(sw::status::ok) && std::error_code(sw::status::running));
    CHECK(std::error_code(sw::status::no_memory) == std::errc::not_enough_memory);
    CHECK(std::error_code(sw::status::not_found) == sw::status::not_found);

    auto bad = sw::service::start(sw::service_options().shards(257));
    CHECK(!bad && !bad.has_value() && bad.error() == sw::status::invalid);
    CHECK(bad.error() == std::errc::invalid_argument);

    /* What the system says comes through. */
    const std::uint32_t nowhere[] = {1023};
    auto unpinnable = sw::service::start(sw::service_options().pinned_to(nowhere, 1));
    CHECK(unpinnable.error().category() == std::system_category());

#if defined(__cpp_exceptions)
    try {
        bad.value();
        std::abort();
    } catch (const std::system_error &error) {
        CHECK(error.code() == sw::status::invalid);
    }
#endif
}

} // namespace

int main()
{
    member_functions();
    ownership();
    lambdas();
    states();
    periods();
    inside();
    queues();
    shards();
    numbers_and_stop();
    errors();
    return 0;
}
