/* A unit of C++ in a program that has several. */
#include <shardwheel.hpp>

int unit_three(sw::timers timers);

int unit_three(sw::timers timers)
{
    int calls = 0;
    auto timer = *timers.after(std::chrono::milliseconds(1), [&calls] { calls += 1; });
    (void)timers.advance(std::chrono::seconds(1));
    (void)timers.shard(0).poll();
    return calls;
}
