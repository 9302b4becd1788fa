/*
 * The proxy's workers and its end.
 *
 *     proxy ORIGIN_PORT HOLE_PORT TIMEOUT_MS WORKERS SESSIONS
 *
 * Prints "port N", serves until SIGTERM, then prints its accounts, a name and a number in each
 * line, and checks them against the library's. See proxy.h for who owns what.
 *
 * At the end each worker cancels the timers of its neighbour, who is still at work: every timer is
 * cancelled by one of the two, or has fired, and the library says which.
 */
#define _GNU_SOURCE

#include "proxy.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { EVENTS = 1024, BATCHES = 64, BUDGET = 1024, WORKERS = 64 };

atomic_bool stopping;
static pthread_barrier_t withdrawn;

static void add(const struct worker *worker, int fd, const void *what)
{
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    event.data.u64 = (uint64_t)(uintptr_t)what;
    CHECK(epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

/* Answers whether there may be more. */
static bool accept_some(struct worker *worker)
{
    for (int i = 0; i < 64; i++) {
        int client = accept4(worker->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client < 0) {
            CHECK(errno == EAGAIN || errno == ECONNABORTED);
            return errno != EAGAIN;
        }
        session_begin(worker, client);
    }
    return true;
}

static void session_ready(uint64_t data, uint32_t events)
{
    struct session *session = (struct session *)(uintptr_t)(data & ~UINT64_C(1));
    bool origin = (data & 1) != 0;
    if (session->client < 0) return; /* ended earlier in this turn */
    if (origin)
        session_origin_ready(session, events);
    else
        session_client_ready(session, events);
}

/* Those that ended can be used again. */
static void sweep(struct worker *worker)
{
    while (worker->closed != NULL) {
        struct session *session = worker->closed;
        worker->closed = session->next;
        session->next = worker->vacant;
        worker->vacant = session;
    }
}

/* Until the proxy is to end. What has arrived is looked at before what is due: a peer that was in
 * time is not punished because this thread was not. */
static void serve(struct worker *worker)
{
    struct epoll_event events[EVENTS];
    bool due = false;
    for (int batches = 0; !atomic_load(&stopping);) {
        int count = epoll_wait(worker->epoll, events, EVENTS, -1);
        CHECK(count >= 0 || errno == EINTR);
        for (int i = 0; i < count; i++) {
            uint64_t data = events[i].data.u64;
            if (data == (uintptr_t)&worker->shard_fd)
                due = true;
            else if (data == (uintptr_t)&worker->listener)
                accept_some(worker);
            else if (data != (uintptr_t)&worker->wake)
                session_ready(data, events[i].events);
        }
        if (due && (count < EVENTS || ++batches == BATCHES)) {
            OK(sw_shard_poll(worker->service, worker->shard, BUDGET, NULL));
            due = false;
            batches = 0;
        }
        sweep(worker);
    }
}

/* Cancels every timer of another worker's, as far as it is still to be cancelled. */
static void withdraw(struct worker *worker, const struct worker *of)
{
    /* Acquire: the sessions up to there are as their owner made them. */
    size_t used = atomic_load_explicit(&of->used, memory_order_acquire);
    for (size_t i = 0; i < used; i++) {
        /* Relaxed: a stale handle is as good as none. */
        sw_timer timer = atomic_load_explicit(&of->sessions[i].timer, memory_order_relaxed);
        sw_status status = sw_timer_cancel(worker->service, timer);
        worker->withdrawn += status == SW_OK;
        CHECK(status == SW_OK || status == SW_NOT_FOUND || status == SW_RUNNING);
    }
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    OK(sw_shard_attach(worker->service, worker->shard, SW_ATTACH_SHARED));
    serve(worker);

    while (accept_some(worker)) continue; /* they are told too */
    if (worker->neighbour != worker) withdraw(worker, worker->neighbour);
    /* Due, and perhaps withdrawn meanwhile. */
    OK(sw_shard_poll(worker->service, worker->shard, 0, NULL));
    int waited = pthread_barrier_wait(&withdrawn);
    CHECK(waited == 0 || waited == PTHREAD_BARRIER_SERIAL_THREAD);

    for (size_t i = 0; i < worker->used; i++) {
        if (worker->sessions[i].client >= 0)
            session_end(&worker->sessions[i], &worker->shut_down);
    }
    OK(sw_shard_detach(worker->service, worker->shard));
    return NULL;
}

static void prepare(struct worker *worker, uint16_t *port)
{
    worker->sessions = calloc(worker->slots, sizeof *worker->sessions);
    worker->epoll = epoll_create1(EPOLL_CLOEXEC);
    worker->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    worker->listener = listen_at(port, BACKLOG);
    CHECK(worker->sessions != NULL && worker->epoll >= 0 && worker->wake >= 0);
    OK(sw_shard_fd(worker->service, worker->shard, &worker->shard_fd));
    add(worker, worker->shard_fd, &worker->shard_fd);
    add(worker, worker->listener, &worker->listener);
    add(worker, worker->wake, &worker->wake);
}

static void dismiss(struct worker *worker)
{
    close(worker->listener);
    close(worker->epoll);
    close(worker->wake);
    free(worker->sessions);
}

static void tell(const char *name, const char *what, uint64_t number)
{
    printf("proxy.%s%s %llu\n", name, what, (unsigned long long)number);
}

/* Adds up what the workers counted; every timer must be accounted for, here and in the library. */
static void report(struct worker *const *workers, unsigned count, sw_service *service)
{
    struct account sum[KINDS], all = {0, 0, 0, 0, 0};
    uint64_t accepted = 0, timed_out = 0, gone = 0, failed = 0, shut_down = 0;
    uint64_t taken_back = 0, early = 0, stray = 0, held = 0;
    memset(sum, 0, sizeof sum);
    for (unsigned i = 0; i < count; i++) {
        const struct worker *worker = workers[i];
        for (int kind = 0; kind < KINDS; kind++) {
            sum[kind].started += worker->accounts[kind].started;
            sum[kind].pushed += worker->accounts[kind].pushed;
            sum[kind].fired += worker->accounts[kind].fired;
            sum[kind].cancelled += worker->accounts[kind].cancelled;
            sum[kind].unsaid += worker->accounts[kind].unsaid;
        }
        accepted += worker->accepted;
        timed_out += worker->timed_out;
        gone += worker->gone;
        failed += worker->failed;
        shut_down += worker->shut_down;
        taken_back += worker->withdrawn;
        early += worker->early;
        stray += worker->stray;
        held += worker->held;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        tell(kind_names[kind], ".started", sum[kind].started);
        tell(kind_names[kind], ".pushed", sum[kind].pushed);
        tell(kind_names[kind], ".fired", sum[kind].fired);
        tell(kind_names[kind], ".cancelled", sum[kind].cancelled);
        tell(kind_names[kind], ".unsaid", sum[kind].unsaid);
        all.started += sum[kind].started;
        all.fired += sum[kind].fired;
        all.cancelled += sum[kind].cancelled;
    }
    tell("accepted", "", accepted);
    tell("timed-out", "", timed_out);
    tell("gone", "", gone);
    tell("failed", "", failed);
    tell("shut-down", "", shut_down);
    tell("withdrawn", "", taken_back);
    tell("early", "", early);
    tell("stray", "", stray);
    tell("held", "", held);
    fflush(stdout);

    sw_stats stats = {.size = sizeof stats};
    OK(sw_stats_read(service, SW_SHARD_ANY, &stats));
    EQUAL(early + stray, 0);
    EQUAL(all.fired, timed_out);
    EQUAL(accepted, timed_out + gone + failed + shut_down);
    EQUAL(all.started, all.fired + all.cancelled + taken_back);
    EQUAL(stats.started, all.started);
    EQUAL(stats.ended_by_fire, all.fired);
    EQUAL(stats.cancelled, all.cancelled + taken_back);
    EQUAL(stats.pending, 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 6);
    raise_limit((uint64_t)atoi(argv[5]) * 2 + 300);
    unsigned count = (unsigned)atoi(argv[4]);
    CHECK(count > 0 && count <= WORKERS);
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    CHECK(pthread_sigmask(SIG_BLOCK, &end, NULL) == 0); /* in all threads to come */

    sw_config config;
    sw_config_init(&config);
    config.mode = SW_MODE_DRIVEN;
    config.shards = count;
    sw_service *service;
    OK(sw_service_start(&config, &service));
    CHECK(pthread_barrier_init(&withdrawn, NULL, count) == 0);

    struct worker *workers[WORKERS];
    uint16_t port = 0;
    for (unsigned i = 0; i < count; i++) {
        struct worker *worker = workers[i] = calloc(1, sizeof *worker);
        CHECK(worker != NULL);
        worker->service = service;
        worker->shard = i;
        worker->origin_port = (uint16_t)atoi(argv[1]);
        worker->hole_port = (uint16_t)atoi(argv[2]);
        worker->timeout_ns = (uint64_t)atoi(argv[3]) * MS;
        worker->slots = (size_t)atoi(argv[5]);
        prepare(worker, &port);
    }
    for (unsigned i = 0; i < count; i++) {
        workers[i]->neighbour = workers[(i + 1) % count];
        CHECK(pthread_create(&workers[i]->thread, NULL, work, workers[i]) == 0);
    }
    printf("port %u\n", port);
    fflush(stdout);

    int signal = 0;
    CHECK(sigwait(&end, &signal) == 0);
    atomic_store(&stopping, true);
    for (unsigned i = 0; i < count; i++)
        CHECK(eventfd_write(workers[i]->wake, 1) == 0);
    for (unsigned i = 0; i < count; i++)
        CHECK(pthread_join(workers[i]->thread, NULL) == 0);

    report(workers, count, service);
    for (unsigned i = 0; i < count; i++) {
        dismiss(workers[i]);
        free(workers[i]);
    }
    OK(sw_service_free(service));
    return 0;
}
