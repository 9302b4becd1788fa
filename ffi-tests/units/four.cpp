/* One program of several units, which all include the headers: nothing is defined twice. */
#include <shardwheel.h>
#include <shardwheel.hpp>

#include "../check.h"

extern "C" sw_status unit_one(sw_service *service);
extern "C" sw_status unit_two(sw_service *service);
int unit_three(sw::timers timers);

int main()
{
    auto service = std::move(*sw::service::start(sw::service_options().manual_clock()));
    OK(unit_one(service.native()));
    OK(unit_two(service.native()));
    CHECK(unit_three(service) == 1);
    return 0;
}
