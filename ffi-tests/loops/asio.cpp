/*
 * The scenario on a Boost.Asio context. A turn is a handler that has run.
 */
#include "scenario.h"
#include "shardwheel/asio.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>

static boost::asio::io_context context;
static std::unique_ptr<sw::asio_shard> timers;
static unsigned long turns;
static bool quitting;

static void start_watch(sw_service *of)
{
    sw::asio_shard none(context.get_executor(), of, 7);
    CHECK(none.start() == boost::system::errc::invalid_argument);
    timers.reset(new sw::asio_shard(context.get_executor(), of, 0));
    CHECK(!timers->start());
}

static void stop_watch()
{
    timers.reset();
}

static sw_status refused()
{
    return timers->refused();
}

static void run()
{
    quitting = false;
    context.restart();
    while (!quitting && context.run_one() == 1)
        turns += 1;
}

static void quit()
{
    quitting = true;
}

static unsigned long turned()
{
    return turns;
}

int main()
{
    const struct loop calls = {start_watch, stop_watch, refused, run, quit, turned};
    scenario(&calls);
    return 0;
}
