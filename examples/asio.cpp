/*
 * Timeouts on Boost.Asio: a heartbeat, and a session that ends when it has been idle for too long.
 *
 *     c++ -std=c++17 examples/asio.cpp $(pkg-config --cflags --libs shardwheel) -pthread -o asio
 *
 * All runs on one thread, the one that runs the context: what callbacks share needs no lock.
 */
#include "shardwheel/asio.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

const std::uint64_t ms = 1000000;

struct session {
    boost::asio::io_context context;
    sw_service *service = nullptr;
    sw_timer idle = SW_TIMER_NONE;
    int beats = 0;

    /// Each beat counts as traffic: the idle time-out is pushed out. After the third they stop.
    void on_beat(sw_timer beat)
    {
        std::printf("beat %d\n", ++beats);
        sw_timer_reset(service, idle, 150 * ms);
        if (beats == 3) sw_timer_cancel(service, beat);
    }

    void on_idle()
    {
        std::printf("the session is idle\n");
        context.stop();
    }
};

void must(bool worked)
{
    if (!worked) {
        std::fprintf(stderr, "it did not work\n");
        std::exit(1);
    }
}

void beat(void *ctx, const sw_expiry *expiry)
{
    static_cast<session *>(ctx)->on_beat(expiry->timer);
}

void idle(void *ctx, const sw_expiry *)
{
    static_cast<session *>(ctx)->on_idle();
}

} // namespace

int main()
{
    session ours;
    sw_config config;
    sw_config_init(&config);
    config.mode = SW_MODE_DRIVEN; // no threads: the context does it
    config.shards = 1;
    must(sw_service_start(&config, &ours.service) == SW_OK);
    must(sw_shard_attach(ours.service, 0, SW_ATTACH_SHARED) == SW_OK);

    {
        sw::asio_shard timers(ours.context.get_executor(), ours.service, 0);
        must(!timers.start());
        must(sw_timer_start_every(ours.service, 100 * ms, beat, &ours, nullptr) == SW_OK);
        must(sw_timer_start(ours.service, 150 * ms, idle, &ours, &ours.idle) == SW_OK);
        ours.context.run();
    }
    sw_service_free(ours.service);
}
