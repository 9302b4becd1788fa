/*
 * std::chrono in, nanoseconds out: up, never down; saturated, never wrapped. Most of it is checked
 * while this compiles.
 */
#include "shardwheel.hpp"

#include "../check.h"

#include <cmath>

namespace {

using namespace std::chrono_literals;
using sw::detail::nanoseconds;
using std::chrono::duration;

using picoseconds = duration<std::int64_t, std::pico>;
using thirds = duration<std::int64_t, std::ratio<1, 3>>;

static_assert(nanoseconds(1ns) == 1);
static_assert(nanoseconds(30s) == 30 * SECOND);
static_assert(nanoseconds(0h) == 0);
static_assert(nanoseconds(-5s) == 0);

/* Finer than a nanosecond, and what no nanosecond meets. */
static_assert(nanoseconds(picoseconds(1)) == 1);
static_assert(nanoseconds(picoseconds(1000)) == 1);
static_assert(nanoseconds(picoseconds(1001)) == 2);
static_assert(nanoseconds(thirds(1)) == 333333334);
static_assert(nanoseconds(thirds(3)) == SECOND);

/* Floating point. */
static_assert(nanoseconds(duration<double>(0.5)) == SECOND / 2);
static_assert(nanoseconds(duration<double, std::nano>(1.25)) == 2);
static_assert(nanoseconds(duration<float>(-1.0F)) == 0);
static_assert(nanoseconds(duration<double>(1e30)) == SW_NEVER);

/* The end of the range. */
static_assert(nanoseconds(sw::never) == SW_NEVER);
static_assert(nanoseconds(sw::never - 1ns) == SW_NEVER / 2 - 1);
static_assert(nanoseconds(std::chrono::hours::max()) == SW_NEVER);
static_assert(nanoseconds(std::chrono::hours(2562047)) == UINT64_C(2562047) * 3600 * SECOND);
static_assert(nanoseconds(std::chrono::hours(2562048)) == SW_NEVER);
static_assert(nanoseconds(duration<std::uint64_t, std::nano>(SW_NEVER)) == SW_NEVER);
static_assert(nanoseconds(sw::time_point::max()) == SW_NEVER);

static_assert(sw::detail::duration(SW_NEVER) == sw::never);
static_assert(sw::detail::duration(UINT64_C(1) << 63) == sw::never);
static_assert(sw::detail::duration(7) == 7ns);

} // namespace

int main()
{
    EQUAL(nanoseconds(duration<double>(std::nan(""))), 0);
    EQUAL(nanoseconds(duration<double>(HUGE_VAL)), SW_NEVER);

    sw_service *native = nullptr;
    OK(sw_service_start(nullptr, &native));
    sw::service service(native);
    const auto before = sw::from_steady(std::chrono::steady_clock::now());
    const auto now = service.now();
    const auto after = sw::from_steady(std::chrono::steady_clock::now());
    CHECK(before <= now && now <= after);
    return 0;
}
