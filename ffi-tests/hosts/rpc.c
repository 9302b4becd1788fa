/*
 * An RPC client: a million calls in flight from several threads, each with a time-out that 99 of
 * 100 replies cancel; the rest are tried again, after a back-off with jitter, and given up in the end.
 *
 *     rpc CALLERS IN_FLIGHT CALLS TIMEOUT_MS
 *
 * There is no network: whether the reply to an attempt is lost, and how long it takes, is a hash of
 * the call and the attempt. So the number of time-outs is known beforehand, unless a reply came
 * too late; and who was first, reply or time-out, the library decides.
 *
 * Ground rules. A call's first attempt belongs to its caller, until the answer of
 * `sw_timer_cancel` is not SW_OK: then the time-out has begun, and the call belongs to the shard
 * where it fired. All that follows (back-off, next attempt, its reply, its time-out) are timers
 * that are started in this shard's callbacks and so stay on it; callbacks of one shard never
 * overlap. That is why neither calls nor accounts need locks or atomics.
 *
 * Prints its accounts, a name and a number in each line.
 */
#define _POSIX_C_SOURCE 200809L

#include "../check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { ATTEMPTS = 4, CALLERS = 64, SHARDS = 256 };

static const uint64_t BACK_OFF = 10000000; /* doubled by each attempt */

struct call {
    uint64_t sent;  /* the clock just before the attempt's timer was started */
    sw_timer timer; /* the time-out of the attempt, from the second on */
    sw_timer reply; /* and the reply that is under way; SW_TIMER_NONE: none */
    unsigned attempt;
    unsigned ended; /* how often it ended */
};

struct caller {
    pthread_t thread;
    struct call *calls;
    sw_timer *timers; /* of the first attempts */
    size_t count, window;
    uint64_t answered;
    uint64_t late; /* replies that came when the time-out had begun */
};

/* What the callbacks of one shard count. */
struct account {
    uint64_t timeouts, early, back_offs, replies, late, given_up;
    char padding[64];
};

static sw_service *service;
static struct call *calls;
static struct account accounts[SHARDS];
static uint64_t timeout_ns;
static atomic_size_t open_calls;
static pthread_barrier_t all_sent;
static uint64_t in_flight; /* timers pending, when all callers have filled their windows */

static uint64_t now_ns(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* A number that looks random, for an attempt and a purpose. */
static uint64_t roll(size_t id, unsigned attempt, unsigned purpose)
{
    uint64_t x = (uint64_t)id << 8 | attempt << 4 | purpose;
    x = (x + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 29) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 32;
}

/* One in a hundred; of those that are tried again, one in three. */
static bool is_lost(size_t id, unsigned attempt)
{
    return roll(id, attempt, 0) % (attempt == 0 ? 100 : 3) == 0;
}

/* The first attempt is patient; later ones are in a hurry. */
static uint64_t patience(unsigned attempt)
{
    return attempt == 0 ? timeout_ns : timeout_ns / 8;
}

static size_t id_of(const struct call *call)
{
    return (size_t)(call - calls);
}

static struct account *account_of(const sw_expiry *expiry)
{
    return &accounts[sw_timer_shard(expiry->timer)];
}

static void end_on_shard(struct call *call)
{
    call->ended += 1;
    /* Release: with the acquire of main, who then reads the calls. */
    atomic_fetch_sub_explicit(&open_calls, 1, memory_order_release);
}

static void on_timeout(void *ctx, const sw_expiry *expiry);

static void on_reply(void *ctx, const sw_expiry *expiry)
{
    struct call *call = ctx;
    /* Reply and time-out are on one shard: whichever comes first finds the other there. */
    OK(sw_timer_cancel(service, call->timer));
    account_of(expiry)->replies += 1;
    end_on_shard(call);
}

static void on_back_off(void *ctx, const sw_expiry *expiry)
{
    struct call *call = ctx;
    size_t id = id_of(call);
    account_of(expiry)->back_offs += 1;
    call->sent = now_ns();
    OK(sw_timer_start(service, patience(call->attempt), on_timeout, call, &call->timer));
    CHECK(sw_timer_shard(call->timer) == sw_timer_shard(expiry->timer));
    if (!is_lost(id, call->attempt)) {
        uint64_t latency = roll(id, call->attempt, 1) % (patience(call->attempt) / 2);
        OK(sw_timer_start(service, latency, on_reply, call, &call->reply));
    }
}

/* The attempt has failed: back off, for a random part of a time that doubles with each attempt. */
static void on_timeout(void *ctx, const sw_expiry *expiry)
{
    struct call *call = ctx;
    struct account *account = account_of(expiry);
    account->timeouts += 1;
    if (now_ns() - call->sent < patience(call->attempt)) account->early += 1;
    if (call->reply != SW_TIMER_NONE) {
        OK(sw_timer_cancel(service, call->reply));
        call->reply = SW_TIMER_NONE;
        account->late += 1;
    }
    call->attempt += 1;
    if (call->attempt == ATTEMPTS) {
        account->given_up += 1;
        end_on_shard(call);
        return;
    }
    uint64_t most = BACK_OFF << call->attempt;
    uint64_t pause = roll(id_of(call), call->attempt, 2) % most;
    OK(sw_timer_start(service, pause, on_back_off, call, NULL));
}

static void send_call(struct caller *caller, size_t i)
{
    struct call *call = &caller->calls[i];
    call->sent = now_ns();
    OK(sw_timer_start(service, patience(0), on_timeout, call, &caller->timers[i]));
}

/* The reply to the first attempt, if it is not lost. */
static void receive(struct caller *caller, size_t i)
{
    struct call *call = &caller->calls[i];
    if (is_lost(id_of(call), 0)) return;
    sw_status status = sw_timer_cancel(service, caller->timers[i]);
    if (status == SW_OK) {
        call->ended += 1;
        caller->answered += 1;
    } else {
        CHECK(status == SW_RUNNING || status == SW_NOT_FOUND);
        caller->late += 1;
    }
}

static void *run_caller(void *arg)
{
    struct caller *caller = arg;
    for (size_t i = 0; i < caller->window; i++)
        send_call(caller, i);
    if (pthread_barrier_wait(&all_sent) == PTHREAD_BARRIER_SERIAL_THREAD) {
        sw_stats stats = {.size = sizeof stats};
        OK(sw_stats_read(service, SW_SHARD_ANY, &stats));
        in_flight = stats.pending;
    }
    pthread_barrier_wait(&all_sent);

    for (size_t i = 0; i < caller->count; i++) {
        receive(caller, i);
        if (i + caller->window < caller->count) send_call(caller, i + caller->window);
    }
    atomic_fetch_sub_explicit(&open_calls, caller->answered, memory_order_release);
    return NULL;
}

static void tell(const char *name, uint64_t number)
{
    printf("%s %llu\n", name, (unsigned long long)number);
}

/* What must happen if no reply is late. */
static void foresee(size_t count)
{
    uint64_t timeouts = 0, given_up = 0;
    for (size_t id = 0; id < count; id++) {
        unsigned attempt = 0;
        while (attempt < ATTEMPTS && is_lost(id, attempt))
            attempt += 1;
        timeouts += attempt;
        given_up += attempt == ATTEMPTS;
    }
    tell("foreseen.timeouts", timeouts);
    tell("foreseen.given-up", given_up);
}

/* Every timer and every call must be accounted for. */
static void report(const struct caller *callers, unsigned number, size_t count)
{
    struct account sum;
    memset(&sum, 0, sizeof sum);
    for (unsigned i = 0; i < SHARDS; i++) {
        sum.timeouts += accounts[i].timeouts;
        sum.early += accounts[i].early;
        sum.back_offs += accounts[i].back_offs;
        sum.replies += accounts[i].replies;
        sum.late += accounts[i].late;
        sum.given_up += accounts[i].given_up;
    }
    uint64_t answered = 0, late = 0, wrong = 0;
    for (unsigned i = 0; i < number; i++) {
        answered += callers[i].answered;
        late += callers[i].late;
    }
    for (size_t id = 0; id < count; id++)
        wrong += calls[id].ended != 1;
    tell("calls", count);
    tell("answered", answered);
    tell("late", late + sum.late);
    tell("timeouts", sum.timeouts);
    tell("early", sum.early);
    tell("back-offs", sum.back_offs);
    tell("answered-again", sum.replies);
    tell("given-up", sum.given_up);
    tell("wrong", wrong);
    fflush(stdout);

    sw_stats stats = {.size = sizeof stats};
    OK(sw_stats_read(service, SW_SHARD_ANY, &stats));
    EQUAL(sum.early + wrong, 0);
    EQUAL(count, answered + sum.replies + sum.given_up);
    EQUAL(sum.timeouts, sum.back_offs + sum.given_up);
    /* After each back-off an attempt, and perhaps a reply to it, which may be late. */
    EQUAL(stats.ended_by_fire, sum.timeouts + sum.back_offs + sum.replies);
    EQUAL(stats.cancelled, answered + sum.replies + sum.late);
    EQUAL(stats.started, count + 2 * sum.back_offs + sum.replies + sum.late);
    EQUAL(stats.pending + stats.returned, 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    unsigned number = (unsigned)atoi(argv[1]);
    size_t window = (size_t)atol(argv[2]) / (number > 0 ? number : 1);
    size_t share = (size_t)atol(argv[3]) / (number > 0 ? number : 1);
    timeout_ns = (uint64_t)atol(argv[4]) * MS;
    size_t count = share * number;
    CHECK(number > 0 && number <= CALLERS && window > 0 && window <= share);
    CHECK(timeout_ns >= MS);

    calls = calloc(count, sizeof *calls);
    sw_timer *timers = calloc(count, sizeof *timers);
    CHECK(calls != NULL && timers != NULL);
    atomic_store(&open_calls, count);
    CHECK(pthread_barrier_init(&all_sent, NULL, number) == 0);
    OK(sw_service_start(NULL, &service));
    CHECK(sw_shard_count(service) <= SHARDS);

    static struct caller callers[CALLERS];
    uint64_t begun = now_ns();
    for (unsigned i = 0; i < number; i++) {
        callers[i].calls = calls + i * share;
        callers[i].timers = timers + i * share;
        callers[i].count = share;
        callers[i].window = window;
        CHECK(pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]) == 0);
    }
    for (unsigned i = 0; i < number; i++)
        CHECK(pthread_join(callers[i].thread, NULL) == 0);
    uint64_t took = now_ns() - begun;

    const struct timespec pause = {0, 5000000};
    while (atomic_load_explicit(&open_calls, memory_order_acquire) > 0)
        nanosleep(&pause, NULL);
    OK(sw_service_stop(service, NULL, NULL, NULL));

    tell("in-flight", in_flight);
    tell("calling-ms", took / MS);
    foresee(count);
    report(callers, number, count);
    OK(sw_service_free(service));
    free(calls);
    free(timers);
    return 0;
}
