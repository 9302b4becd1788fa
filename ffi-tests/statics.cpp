/*
 * A service that is a static object of a C++ program: its destructor runs after main has returned and the
 * main thread's own data are gone, while timers are in flight, between those of other statics.
 */
#include "check.h"

#include <atomic>
#include <thread>

namespace {

/* Made before the service, so destroyed after it: callbacks may use it to the end. */
struct Tally {
    std::atomic<unsigned long> fired{0}, dropped{0};
    std::atomic<bool> alive{true};
    ~Tally()
    {
        alive = false;
        /* One was cancelled and one pushed forward on the way out, one was pending still. */
        EQUAL(dropped.load(), 3);
        CHECK(fired.load() > 0);
        puts("well");
    }
};

struct Wheels {
    sw_service *service = nullptr;
    Wheels() { OK(sw_service_start(nullptr, &service)); }
    ~Wheels() { OK(sw_service_free(service)); }
};

Tally tally;
Wheels wheels;
sw_timer pending[3];

/* Made after the service, so destroyed before it: it still uses it. */
struct Client {
    ~Client()
    {
        OK(sw_timer_cancel(wheels.service, pending[0]));
        OK(sw_timer_reset(wheels.service, pending[1], 1));
        sw_timer_start(wheels.service, 0, [](void *, const sw_expiry *) {}, nullptr, nullptr);
        sw_stats stats;
        stats.size = sizeof stats;
        OK(sw_stats_read(wheels.service, SW_SHARD_ANY, &stats));
    }
} client;

void fire(void *, const sw_expiry *)
{
    CHECK(tally.alive.load());
    tally.fired++;
}

} // namespace

int main()
{
    OK(sw_timer_start_every(wheels.service, 1000, fire, nullptr, nullptr));
    for (sw_timer &timer : pending) {
        sw_timer_spec spec;
        sw_timer_spec_init(&spec);
        spec.delay_ns = 3600000000000u;
        spec.callback = fire;
        spec.drop = [](void *) { tally.dropped++; };
        OK(sw_timer_start_spec(wheels.service, &spec, &timer));
    }
    /* Another thread that has used the service and ended, and one that lives on. */
    std::thread([] { OK(sw_timer_start(wheels.service, 3600000000000u, fire, nullptr, nullptr)); }).join();
    while (tally.fired.load() < 3)
        std::this_thread::yield();
    return 0;
}
