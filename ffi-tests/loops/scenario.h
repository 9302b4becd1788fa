/*
 * What a driven shard must do on anybody's loop, whichever it is: callbacks on the loop's thread,
 * never early, woken by other threads, in slices when many are due, and no wake-up for nothing.
 *
 * A program for one loop fills in `struct loop` and calls `scenario`. Everything runs on the
 * loop's thread, but `stranger`. A turn is one wait of the loop that has ended.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "../latch.h"

#include <string.h>

enum { TIMERS = 20, ROUNDS = 200, STORM = 5000 };

struct loop {
    void (*start)(sw_service *service); /* watches shard 0 */
    void (*stop)(void);
    sw_status (*refused)(void);
    void (*run)(void);  /* until `quit` */
    void (*quit)(void); /* called by a callback */
    unsigned long (*turns)(void);
};

static const struct loop *on;
static sw_service *wheels;
static pthread_t loop_thread;
static unsigned long fired;
static unsigned long fired_by_then; /* at which `run` ends */

static uint64_t cpu_time(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void fire(void *ctx, const sw_expiry *expiry)
{
    (void)ctx;
    CHECK(pthread_equal(pthread_self(), loop_thread));
    CHECK(expiry->now_ns >= expiry->deadline_ns);
    CHECK(sw_clock_now(wheels) >= expiry->deadline_ns);
    fired += 1;
    if (fired == fired_by_then) on->quit();
}

/* Runs until so many timers have fired; answers how many turns that took. */
static unsigned long run_until(unsigned long count)
{
    unsigned long before = on->turns();
    fired = 0;
    fired_by_then = count;
    on->run();
    EQUAL(fired, count);
    return on->turns() - before;
}

static sw_timer start(uint64_t delay_ns)
{
    sw_timer timer = SW_TIMER_NONE;
    OK(sw_timer_start(wheels, delay_ns, fire, NULL, &timer));
    return timer;
}

/*
 * One after the other: a turn for each, and one more for each level that it comes down, which is
 * two at the most for delays below 4096 ticks.
 */
static void apart(void)
{
    for (unsigned i = 1; i <= TIMERS; i++)
        start(i * 10 * MS);
    unsigned long turns = run_until(TIMERS);
    printf("%d timers apart: %lu turns\n", TIMERS, turns);
    CHECK(turns <= 3 * TIMERS);
}

/* While nothing is due the loop sleeps, though timers are pending and pushed out. */
static void idle(void)
{
    sw_timer hour = start(3600 * SECOND);
    sw_timer minute = start(60 * SECOND);
    OK(sw_timer_reset(wheels, minute, 120 * SECOND));
    start(400 * MS);
    uint64_t cpu = cpu_time();
    unsigned long turns = run_until(1);
    cpu = cpu_time() - cpu;
    printf("idle: %lu turns\n", turns);
    CHECK(turns <= 3);
    CHECK(cpu < 200 * MS);
    OK(sw_timer_cancel(wheels, hour));
    OK(sw_timer_cancel(wheels, minute));
}

static void *stranger(void *arg)
{
    const sw_timer *hour = (const sw_timer *)arg;
    struct timespec pause = {0, 50000000};
    /* Later ones, which need not wake the loop, and then one that must. */
    for (unsigned i = 0; i < 1000; i++) {
        start((7200 + i) * SECOND);
        OK(sw_timer_reset(wheels, *hour, (3600 + i) * SECOND));
    }
    CHECK(nanosleep(&pause, NULL) == 0);
    start(MS);
    return NULL;
}

static void from_elsewhere(void)
{
    sw_timer hour = start(3600 * SECOND);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, stranger, &hour) == 0);
    unsigned long turns = run_until(1);
    CHECK(pthread_join(thread, NULL) == 0);
    printf("from elsewhere: %lu turns\n", turns);
    CHECK(turns <= 4);
    OK(sw_timer_cancel(wheels, hour));
}

static struct latch answered = LATCH;

static void answer(void *ctx, const sw_expiry *expiry)
{
    fire(ctx, expiry);
    latch_add(&answered);
}

static void *questioner(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        OK(sw_timer_start(wheels, i % 3 * MS, answer, NULL, NULL));
        latch_wait(&answered, i + 1);
    }
    return NULL;
}

/* To and fro: each time the loop sleeps for long, and each time it must wake. */
static void to_and_fro(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, questioner, NULL) == 0);
    unsigned long turns = run_until(ROUNDS);
    CHECK(pthread_join(thread, NULL) == 0);
    printf("%d to and fro: %lu turns\n", ROUNDS, turns);
    CHECK(turns <= 3 * ROUNDS);
}

/* Many at once: in slices of at most 1024, between which the loop turns. */
static void storm(void)
{
    uint64_t deadline = sw_clock_now(wheels) + 20 * MS;
    for (unsigned i = 0; i < STORM; i++)
        OK(sw_timer_start_at(wheels, deadline, fire, NULL, NULL));
    unsigned long turns = run_until(STORM);
    printf("%d timers at once: %lu turns\n", STORM, turns);
    CHECK(turns >= STORM / 1024 + 1);
    CHECK(turns <= STORM / 1024 + 5);
}

static void stop_and_quit(void *ctx, const sw_expiry *expiry)
{
    (void)ctx;
    (void)expiry;
    on->stop();
    on->quit();
}

/* Stopped in a callback and watched again; what came due meanwhile comes then. */
static void again(void)
{
    OK(sw_timer_start(wheels, 0, stop_and_quit, NULL, NULL));
    on->run();
    start(0);
    on->start(wheels);
    CHECK(run_until(1) <= 2);
}

static struct latch stolen = LATCH, done = LATCH;

static void *thief(void *arg)
{
    (void)arg;
    OK(sw_shard_attach(wheels, 0, SW_ATTACH_SHARED));
    start(0);
    latch_add(&stolen);
    latch_wait(&done, 1);
    return NULL;
}

/* A shard that has become another thread's is let go of: nobody could poll it, and the loop would
 * spin. It has nothing else, so `run` returns. */
static void stolen_away(void)
{
    pthread_t thread;
    OK(sw_shard_detach(wheels, 0));
    CHECK(pthread_create(&thread, NULL, thief, NULL) == 0);
    latch_wait(&stolen, 1);
    fired = 0;
    on->run();
    EQUAL(fired, 0);
    CHECK(on->refused() == SW_BUSY);
    latch_add(&done);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void scenario(const struct loop *loop)
{
    on = loop;
    loop_thread = pthread_self();
    sw_config config;
    sw_config_init(&config);
    config.mode = SW_MODE_DRIVEN;
    config.shards = 1;
    OK(sw_service_start(&config, &wheels));
    OK(sw_shard_attach(wheels, 0, SW_ATTACH_SHARED));
    on->start(wheels);
    apart();
    idle();
    from_elsewhere();
    to_and_fro();
    storm();
    again();
    CHECK(on->refused() == SW_OK);
    stolen_away();
    on->stop();
    OK(sw_service_free(wheels));
    printf("done\n");
}

#endif
