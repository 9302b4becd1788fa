/*
 * The C header from C++: lambdas as callbacks, constants where C++ looks at types, and a service
 * whose callbacks throw and catch on their own side.
 */
#include "check.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

static_assert(std::is_same<decltype(SW_TIMER_NONE), sw_timer>::value, "a handle");
static_assert(std::is_same<decltype(SW_SHARD_ANY), uint32_t>::value, "a shard");
static_assert(std::is_enum<sw_status>::value, "a status is an enum");
static_assert(std::is_standard_layout<sw_config>::value, "plain data");
static_assert(std::is_trivial<sw_timer_spec>::value, "plain data");

struct Free {
    void operator()(sw_service *service) const { OK(sw_service_free(service)); }
};
using Service = std::unique_ptr<sw_service, Free>;

Service start(uint32_t mode, uint32_t clock)
{
    sw_config config;
    sw_config_init(&config);
    config.mode = mode;
    config.clock = clock;
    config.shards = 1;
    config.pinning = SW_PIN_NONE;
    sw_service *service = nullptr;
    OK(sw_service_start(&config, &service));
    return Service(service);
}

void driven()
{
    Service service = start(SW_MODE_DRIVEN, SW_CLOCK_MANUAL);
    std::vector<uint64_t> deadlines;
    auto timer = SW_TIMER_NONE;
    sw_callback note = [](void *ctx, const sw_expiry *expiry) {
        static_cast<std::vector<uint64_t> *>(ctx)->push_back(expiry->deadline_ns);
    };
    OK(sw_timer_start(service.get(), 3 * MS, note, &deadlines, &timer));
    CHECK(timer != SW_TIMER_NONE);
    OK(sw_timer_start_at(service.get(), 2 * MS, note, &deadlines, nullptr));
    OK(sw_clock_advance(service.get(), 5 * MS));
    size_t fired = 0;
    OK(sw_shard_poll(service.get(), 0, 0, &fired));
    CHECK(fired == 2);
    CHECK((deadlines == std::vector<uint64_t>{2 * MS, 3 * MS}));
}

/* The context is owned by the timer: drop is its deleter. */
void owned_context()
{
    auto witness = std::make_shared<int>(0);
    sw_timer_spec spec;
    sw_timer_spec_init(&spec);
    spec.delay_ns = SW_NEVER;
    spec.callback = [](void *, const sw_expiry *) {};
    spec.drop = [](void *ctx) { delete static_cast<std::shared_ptr<int> *>(ctx); };
    {
        Service service = start(SW_MODE_DRIVEN, SW_CLOCK_MANUAL);
        for (int i = 0; i < 10; i++) {
            spec.ctx = new std::shared_ptr<int>(witness);
            OK(sw_timer_start_spec(service.get(), &spec, nullptr));
        }
        CHECK(witness.use_count() == 11);
    }
    CHECK(witness.use_count() == 1);
}

/* An exception that the callback itself catches is its own affair. */
void threaded()
{
    Service service = start(SW_MODE_THREADED, SW_CLOCK_MONOTONIC);
    std::atomic<int> caught(0);
    sw_callback careful = [](void *ctx, const sw_expiry *) {
        try {
            throw std::runtime_error("inside");
        } catch (const std::runtime_error &error) {
            if (error.what() == std::string("inside"))
                static_cast<std::atomic<int> *>(ctx)->fetch_add(1);
        }
    };
    for (int i = 0; i < 3; i++)
        OK(sw_timer_start(service.get(), MS, careful, &caught, nullptr));
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (caught.load() < 3) {
        CHECK(std::chrono::steady_clock::now() < limit);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

} // namespace

int main()
{
    driven();
    owned_context();
    threaded();
    return 0;
}
