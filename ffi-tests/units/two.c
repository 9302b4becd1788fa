/* A unit of C in a program that has several. */
#include <shardwheel.h>

sw_status unit_two(sw_service *service);

sw_status unit_two(sw_service *service)
{
    sw_stats stats = {0};
    stats.size = sizeof stats;
    return sw_stats_read(service, SW_SHARD_ANY, &stats);
}
