/*
 * A game server's tick loop, 20 times a second: 100,000 entities with cooldowns, buffs and
 * respawns. In each tick thousands of these timers are started, pushed out, shortened and
 * cancelled; what has come due is taken from a queue inside the tick, so that the world is touched
 * at one place and in one order.
 *
 *     game MODE SHARDS TICKS SEED LOG
 *
 * MODE "replay": on the manual clock, as fast as it goes. The same seed gives the same log, byte
 * for byte, with any number of shards: between shards there is no order, so what is due in a tick
 * is sorted by deadline and entity. MODE "raw" does not sort: the same log for one shard. MODE
 * "live": on the real clock, 20 ticks a second.
 *
 * Ground rules: one thread does everything and owns all shards exclusively. The world keeps for
 * each timer when it is due, and checks each event against that: each comes once, in the first
 * tick that is not before its deadline.
 *
 * Prints its accounts, a name and a number in each line.
 */
#include "../check.h"
#include "shardwheel.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t entities = 100000;
constexpr unsigned actions_each_tick = 5000;
constexpr nanoseconds tick = 50ms;

enum kind : unsigned char { cooldown, buff, respawn, kinds };
constexpr std::array<char, kinds> letters = {'C', 'B', 'R'};

/** The same numbers on every machine, unlike those of <random>'s distributions. */
class dice {
public:
    explicit dice(std::uint64_t seed) : state_(seed) {}

    std::uint64_t below(std::uint64_t limit)
    {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t x = state_;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        return (x ^ (x >> 31)) % limit;
    }

    milliseconds between(milliseconds least, milliseconds most)
    {
        const auto range = static_cast<std::uint64_t>((most - least).count()) + 1;
        return least + milliseconds(static_cast<std::int64_t>(below(range)));
    }

private:
    std::uint64_t state_;
};

/** One timer of an entity, and when it is due. Its address is what the queue hands back. */
struct slot {
    sw::timer timer;
    std::uint32_t entity = 0;
    kind what = cooldown;
    bool armed = false;
    sw::time_point deadline{};
};

struct entity {
    std::array<slot, kinds> slots;
    int health = 3;
};

struct accounts {
    std::uint64_t started = 0, pushed_out = 0, shortened = 0, cancelled = 0, expired = 0;
    std::uint64_t early = 0, late = 0, stray = 0;
};

class world {
public:
    world(sw::timers timers, sw::queue &due, std::uint64_t seed, std::FILE *log, bool exact)
        : timers_(timers), due_(due), dice_(seed), log_(log), exact_(exact), all_(entities)
    {
        for (std::uint32_t i = 0; i < entities; i++) {
            for (unsigned what = 0; what < kinds; what++) {
                all_[i].slots[what].entity = i;
                all_[i].slots[what].what = static_cast<kind>(what);
            }
        }
    }

    /** What the players do in one tick. */
    void act()
    {
        for (unsigned i = 0; i < actions_each_tick; i++) {
            entity &one = all_[dice_.below(entities)];
            if (one.health == 0)
                continue;
            slot &spell = one.slots[cooldown], &strength = one.slots[buff];
            switch (dice_.below(10)) {
            case 0: case 1: case 2: // casts, if it may
                if (!spell.armed)
                    start(spell, dice_.between(500ms, 8s));
                break;
            case 3: case 4: case 5: // is strengthened, or stays so for longer
                if (strength.armed)
                    reset(strength, 6s);
                else
                    start(strength, dice_.between(1s, 6s));
                break;
            case 6: // hastened: what is left of the cooldown is cut
                if (spell.armed)
                    reset(spell, dice_.between(1ms, 400ms));
                break;
            case 7:
                cancel(strength);
                break;
            default: strike(one);
            }
        }
    }

    /** What has come due since the last tick; `sorted`: in an order that is the world's own. */
    void expire(std::uint64_t number, sw::time_point last, bool sorted)
    {
        expired_.clear();
        for (std::uint32_t i = 0; i < timers_.shard_count(); i++)
            CHECK(timers_.shard(i).poll().has_value());
        do {
            CHECK(due_taken());
        } while (!batch_.empty());
        if (sorted)
            std::sort(expired_.begin(), expired_.end(), before);
        for (slot *each : expired_) {
            // On the manual clock nothing is late: it was not due in the tick before.
            accounts_.late += exact_ && each->deadline <= last;
            apply(*each, number);
        }
    }

    const accounts &books() const { return accounts_; }

private:
    static bool before(const slot *left, const slot *right)
    {
        if (left->deadline != right->deadline)
            return left->deadline < right->deadline;
        if (left->entity != right->entity)
            return left->entity < right->entity;
        return left->what < right->what;
    }

    bool due_taken()
    {
        if (!due_.poll(batch_))
            return false;
        for (sw::event event : batch_) {
            slot *one = event.object<slot>();
            const sw::expiry expiry = event.expiry();
            accounts_.stray += !one->armed || expiry.timer() != one->timer.handle() ||
                               expiry.deadline() != one->deadline;
            accounts_.early += timers_.now() < one->deadline || expiry.now() < one->deadline;
            one->armed = false;
            accounts_.expired += 1;
            expired_.push_back(one);
        }
        return true;
    }

    void apply(slot &one, std::uint64_t number)
    {
        note(number, letters[one.what], one.entity);
        if (one.what == respawn)
            all_[one.entity].health = 3;
    }

    void note(std::uint64_t number, char what, std::uint32_t who)
    {
        std::fprintf(log_, "%llu %c %lu\n", static_cast<unsigned long long>(number), what,
                     static_cast<unsigned long>(who));
    }

    void start(slot &one, milliseconds delay)
    {
        const auto on = sw::timer_options().shard(one.entity % timers_.shard_count());
        one.deadline = timers_.now() + delay;
        auto started = timers_.at(one.deadline, due_, &one, on);
        CHECK(started.has_value());
        one.timer = *std::move(started);
        one.armed = true;
        accounts_.started += 1;
    }

    void reset(slot &one, milliseconds delay)
    {
        const sw::time_point deadline = timers_.now() + delay;
        CHECK(one.timer.reset_at(deadline) == sw::status::ok);
        (deadline < one.deadline ? accounts_.shortened : accounts_.pushed_out) += 1;
        one.deadline = deadline;
    }

    void cancel(slot &one)
    {
        if (!one.armed)
            return;
        CHECK(one.timer.cancel() == sw::status::ok);
        one.armed = false;
        accounts_.cancelled += 1;
    }

    void strike(entity &one)
    {
        one.health -= 1;
        if (one.health > 0)
            return;
        cancel(one.slots[cooldown]);
        cancel(one.slots[buff]);
        start(one.slots[respawn], dice_.between(2s, 5s));
    }

    sw::timers timers_;
    sw::queue &due_;
    dice dice_;
    std::FILE *log_;
    bool exact_;
    accounts accounts_;
    sw::event_batch<1024> batch_;
    std::vector<slot *> expired_;
    std::vector<entity> all_;
};

void tell(const char *name, std::uint64_t number)
{
    std::printf("%s %llu\n", name, static_cast<unsigned long long>(number));
}

void report(const accounts &books, const sw_stats &stats, nanoseconds longest)
{
    tell("started", books.started);
    tell("pushed-out", books.pushed_out);
    tell("shortened", books.shortened);
    tell("cancelled", books.cancelled);
    tell("expired", books.expired);
    tell("pending", stats.pending);
    tell("early", books.early);
    tell("late", books.late);
    tell("stray", books.stray);
    tell("longest-tick-us", static_cast<std::uint64_t>(longest.count()) / 1000);
    std::fflush(stdout);
    EQUAL(books.early + books.late + books.stray, 0);
    EQUAL(stats.started, books.started);
    EQUAL(stats.ended_by_fire, books.expired);
    EQUAL(stats.cancelled, books.cancelled);
    EQUAL(stats.pending, books.started - books.expired - books.cancelled);
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc == 6);
    const bool live = std::strcmp(argv[1], "live") == 0, raw = std::strcmp(argv[1], "raw") == 0;
    const auto shards = static_cast<std::uint32_t>(std::atoi(argv[2]));
    const auto ticks = static_cast<std::uint64_t>(std::atoi(argv[3]));
    std::FILE *log = std::fopen(argv[5], "wb");
    CHECK(log != nullptr);

    sw::service_options options;
    options.shards(shards).driven();
    if (!live)
        options.manual_clock();
    sw::service service = sw::service::start(options).value();
    std::vector<sw::attachment> owned;
    for (std::uint32_t i = 0; i < shards; i++)
        owned.push_back(service.shard(i).attach(sw::sharing::exclusive).value());
    sw::queue due = service.make_queue().value();
    world world(service, due, static_cast<std::uint64_t>(std::atoi(argv[4])), log, !live);

    nanoseconds longest{0};
    const auto begun = std::chrono::steady_clock::now();
    for (std::uint64_t number = 1; number <= ticks; number++) {
        const sw::time_point last = service.now();
        if (live)
            std::this_thread::sleep_until(begun + tick * static_cast<std::int64_t>(number));
        else
            CHECK(service.advance(tick) == sw::status::ok);
        const auto woken = std::chrono::steady_clock::now();
        world.expire(number, last, !raw);
        world.act();
        longest = std::max<nanoseconds>(longest, std::chrono::steady_clock::now() - woken);
    }
    CHECK(std::fclose(log) == 0);
    report(world.books(), service.stats().value(), longest);
    return 0;
}
