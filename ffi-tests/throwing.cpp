/*
 * An exception that leaves a function of the host and reaches the library: std::terminate, in the
 * thrower's frame, with the host's handler running and the exception at hand.
 *
 * The argument names who throws. Ends with 42 if all was as it should be.
 */
#include "check.h"

#include <cstring>
#include <exception>
#include <stdexcept>
#include <unistd.h>

namespace {

bool unwound = false;

/* Would be destroyed if the thrower's frame were left. */
struct Guard {
    ~Guard() { unwound = true; }
};

[[noreturn]] void handler()
{
    int code = 43;
    try {
        std::exception_ptr exception = std::current_exception();
        if (exception)
            std::rethrow_exception(exception);
    } catch (const std::runtime_error &error) {
        code = std::strcmp(error.what(), "out of the host") == 0 ? 42 : 44;
    } catch (...) {
        code = 45;
    }
    _exit(unwound ? 46 : code);
}

void fail()
{
    Guard guard;
    throw std::runtime_error("out of the host");
}

void quiet(void *, const sw_expiry *) {}
void throwing(void *, const sw_expiry *) { fail(); }
void throwing_drop(void *) { fail(); }
void throwing_unfired(void *, sw_timer, void *, uint64_t) { fail(); }
void throwing_hook(void *, uint32_t) { fail(); }
void slow(void *, const sw_expiry *) { usleep(20000); }
void throwing_slow_hook(void *, uint32_t, sw_timer, void *, uint64_t) { fail(); }

void throwing_stuck_hook(void *, uint32_t, sw_timer, uint64_t) { fail(); }
void endless(void *, const sw_expiry *) { sleep(30); }

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    auto is = [&](const char *who) { return std::strcmp(argv[1], who) == 0; };
    std::set_terminate(handler);

    sw_config config;
    sw_config_init(&config);
    config.shards = 1;
    config.pinning = SW_PIN_NONE;
    config.slow_callback_ns = MS;
    if (is("start-hook"))
        config.on_thread_start = throwing_hook;
    if (is("stop-hook"))
        config.on_thread_stop = throwing_hook;
    if (is("slow-hook"))
        config.on_slow_callback = throwing_slow_hook;
    bool driven = is("driven") || is("drop-at-cancel") || is("drop-at-refusal") || is("unfired");
    if (driven)
        config.mode = SW_MODE_DRIVEN;
    sw_service *service = nullptr;
    OK(sw_service_start(&config, &service));

    sw_timer_spec spec;
    sw_timer_spec_init(&spec);
    spec.callback = quiet;
    if (is("driven") || is("threaded"))
        spec.callback = throwing;
    if (is("slow-hook"))
        spec.callback = slow;
    if (is("stuck-hook")) {
        OK(sw_service_on_stuck(service, throwing_stuck_hook, nullptr));
        spec.callback = endless;
    }
    if (is("drop-at-cancel") || is("drop-after-fire") || is("drop-at-refusal"))
        spec.drop = throwing_drop;
    if (is("unfired") || is("drop-at-cancel"))
        spec.delay_ns = SW_NEVER;
    sw_timer timer = SW_TIMER_NONE;
    if (is("drop-at-refusal"))
        sw_timer_start_spec(nullptr, &spec, &timer);
    OK(sw_timer_start_spec(service, &spec, &timer));
    if (is("drop-at-cancel"))
        sw_timer_cancel(service, timer);
    if (is("driven"))
        sw_shard_poll(service, 0, 0, nullptr);
    if (is("unfired"))
        sw_service_stop(service, throwing_unfired, nullptr, nullptr);
    if (is("stop-hook"))
        sw_service_stop(service, nullptr, nullptr, nullptr);
    for (int tries = 0; is("stuck-hook") && tries < 3000; tries++) {
        sw_stats stats;
        stats.size = sizeof stats;
        OK(sw_stats_read(service, 0, &stats));
        usleep(10000);
    }
    sleep(30);
    std::fprintf(stderr, "%s: nothing ended the process\n", argv[1]);
    return 1;
}
