/*
 * What goes wrong in C++: a callback that throws, with and without a handler, and owners that go
 * where they cannot. The argument names it.
 *
 * With "handled" it ends well. With each other one std::terminate must end it, with a word that
 * names the reason in what it prints: the caller looks for that.
 */
#include "shardwheel.hpp"

#include "../check.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;

sw::service manual()
{
    return std::move(*sw::service::start(sw::service_options().manual_clock().shards(1)));
}

std::string seen;
sw_timer whose;

void handler(std::exception_ptr exception, const sw::expiry &expiry)
{
    whose = expiry.timer();
    try {
        std::rethrow_exception(exception);
    } catch (const std::exception &error) {
        seen += error.what();
    } catch (int number) {
        seen += std::to_string(number);
    }
}

struct thrower {
    void member() { throw std::runtime_error("a member"); }
};

void handled()
{
    CHECK(sw::set_exception_handler(handler) == nullptr);
    auto service = manual();
    thrower object;
    int calls = 0;
    auto member = *service.after<&thrower::member>(&object, 1ms);
    auto lambda = *service.every(2ms, [&calls] {
        calls += 1;
        throw 7;
    });
    CHECK(service.advance(1ms) == sw::status::ok && *service.shard(0).poll() == 1);
    CHECK(seen == "a member" && whose == member.handle());
    CHECK(service.advance(1ms) == sw::status::ok && *service.shard(0).poll() == 1);
    CHECK(seen == "a member7" && whose == lambda.handle());
    /* The timer and its shard go on. */
    CHECK(service.advance(2ms) == sw::status::ok && *service.shard(0).poll() == 1);
    CHECK(calls == 2 && seen == "a member77");
    CHECK(sw::set_exception_handler(nullptr) == handler);
}

void unhandled(bool threaded)
{
    auto service = threaded ? *sw::service::start() : manual();
    thrower object;
    auto timer = *service.after<&thrower::member>(&object, 0ms);
    if (!threaded)
        (void)service.shard(0).poll();
    std::this_thread::sleep_for(30s);
}

void handler_that_throws()
{
    sw::set_exception_handler([](std::exception_ptr exception, const sw::expiry &) {
        std::rethrow_exception(exception);
    });
    unhandled(false);
}

/* Nobody can cancel it, and its object goes: better to end than to go on. */
void timer_of_an_exclusive_shard()
{
    auto service = manual();
    auto timer = *service.after(1h, [] {});
    std::atomic<bool> attached{false};
    std::thread owner([&] {
        auto mine = *service.shard(0).attach(sw::sharing::exclusive);
        attached = true;
        std::this_thread::sleep_for(30s);
    });
    while (!attached)
        std::this_thread::yield();
    timer = sw::timer();
}

void service_in_its_own_callback()
{
    auto service = manual();
    sw::timers timers = service;
    auto callback = [&service] { service = sw::service(); };
    timers.after(0ms, callback)->release();
    (void)timers.shard(0).poll();
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const std::string what = argv[1];
    if (what == "handled")
        return handled(), 0;
    if (what == "driven" || what == "threaded")
        unhandled(what == "threaded");
    if (what == "handler")
        handler_that_throws();
    if (what == "exclusive")
        timer_of_an_exclusive_shard();
    if (what == "service")
        service_in_its_own_callback();
    std::fprintf(stderr, "%s: nothing ended the process\n", argv[1]);
    return 0;
}
