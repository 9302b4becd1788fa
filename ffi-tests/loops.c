/*
 * A host's own loop: queues, descriptors for poll(2), and threads that own shards.
 */
#define _POSIX_C_SOURCE 200809L

#include "driven.h"

#include <poll.h>
#include <pthread.h>

static bool readable(int fd, int wait_ms)
{
    struct pollfd one = {fd, POLLIN, 0};
    int ready = poll(&one, 1, wait_ms);
    CHECK(ready >= 0);
    CHECK(ready == 0 || one.revents == POLLIN);
    return ready == 1;
}

static void queues(void)
{
    sw_service *service = manual(1);
    struct seen seen[3];
    memset(seen, 0, sizeof seen);
    sw_queue *queue = NULL;
    sw_event events[4];
    size_t taken = 99;
    int fd = -1;

    OK(sw_queue_new(service, &queue));
    OK(sw_queue_fd(queue, &fd));
    CHECK(fd >= 0 && !readable(fd, 0));
    OK(sw_queue_poll(queue, events, 4, &taken));
    EQUAL(taken, 0);

    sw_timer timers[3];
    sw_timer_spec spec;
    sw_timer_spec_init(&spec);
    spec.queue = queue;
    spec.drop = note_drop;
    for (unsigned i = 0; i < 3; i++) {
        spec.delay_ns = (3 - i) * MS;
        spec.ctx = &seen[i];
        OK(sw_timer_start_spec(service, &spec, &timers[i]));
    }
    OK(sw_clock_advance(service, 3 * MS));
    EQUAL(poll_all(service, 0), 3);
    CHECK(readable(fd, 10000));
    /* A timer whose event waits can still be cancelled; the others come oldest first. */
    OK(sw_timer_cancel(service, timers[1]));
    EQUAL(seen[1].drops, 1);
    OK(sw_queue_poll(queue, events, 1, &taken));
    EQUAL(taken, 1);
    EQUAL(events[0].expiry.timer, timers[2]);
    EQUAL(events[0].expiry.deadline_ns, MS);
    CHECK(events[0].ctx == &seen[2]);
    OK(sw_queue_poll(queue, events, 4, &taken));
    EQUAL(taken, 1);
    CHECK(events[0].ctx == &seen[0]);
    CHECK(!readable(fd, 0));
    EQUAL(seen[0].drops + seen[2].drops, 0);
    STATUS(sw_timer_cancel(service, timers[0]), SW_NOT_FOUND);

    /* Freed: what would have come there is cancelled. */
    spec.ctx = &seen[0];
    OK(sw_timer_start_spec(service, &spec, &timers[0]));
    OK(sw_queue_free(queue));
    EQUAL(seen[0].drops, 1);
    STATUS(sw_timer_cancel(service, timers[0]), SW_NOT_FOUND);

    /* A queue that is left goes with its service. */
    OK(sw_queue_new(service, &queue));
    spec.queue = queue;
    OK(sw_timer_start_spec(service, &spec, NULL));
    OK(sw_service_free(service));
    EQUAL(seen[0].drops, 2);
}

static void descriptors(void)
{
    sw_service *service = manual(1);
    struct seen seen = {0};
    int fd = -1;

    OK(sw_shard_fd(service, 0, &fd));
    CHECK(fd >= 0);
    EQUAL(poll_all(service, 0), 0);
    CHECK(!readable(fd, 0));
    OK(sw_timer_start(service, 0, note, &seen, NULL));
    CHECK(readable(fd, 10000));
    EQUAL(poll_all(service, 0), 1);
    CHECK(!readable(fd, 0));
    OK(sw_service_free(service));

    /* A real clock makes it readable by itself. */
    sw_config config;
    sw_config_init(&config);
    config.mode = SW_MODE_DRIVEN;
    config.shards = 1;
    OK(sw_service_start(&config, &service));
    OK(sw_shard_fd(service, 0, &fd));
    OK(sw_timer_start(service, 20 * MS, note, &seen, NULL));
    uint64_t deadline = sw_clock_now(service) + 30 * SECOND;
    seen.calls = 0;
    while (seen.calls == 0) {
        CHECK(readable(fd, 10000));
        OK(sw_shard_poll(service, 0, 0, NULL));
        CHECK(sw_clock_now(service) < deadline);
    }
    CHECK(seen.last.now_ns >= seen.last.deadline_ns);
    STATUS(sw_clock_advance(service, 1), SW_UNSUPPORTED);
    OK(sw_service_free(service));
}

static void *stranger(void *arg)
{
    sw_service *service = arg;
    struct seen seen = {0};
    sw_timer_spec spec;
    sw_timer_spec_init(&spec);
    spec.shard = 1;
    spec.callback = note;
    spec.ctx = &seen;
    spec.drop = note_drop;
    STATUS(sw_timer_start_spec(service, &spec, NULL), SW_BUSY);
    EQUAL(seen.drops, 1);
    STATUS(sw_shard_poll(service, 1, 0, NULL), SW_BUSY);
    STATUS(sw_shard_attach(service, 1, SW_ATTACH_SHARED), SW_BUSY);
    STATUS(sw_shard_detach(service, 1), SW_BUSY);
    return NULL;
}

static void attachments(void)
{
    sw_service *service = manual(2);
    struct seen seen = {0};
    sw_timer timer = SW_TIMER_NONE;
    pthread_t thread;

    STATUS(sw_shard_detach(service, 1), SW_INVALID);
    OK(sw_shard_attach(service, 1, SW_ATTACH_SHARED));
    OK(sw_timer_start(service, MS, note, &seen, &timer));
    EQUAL(sw_timer_shard(timer), 1);
    OK(sw_shard_attach(service, 1, SW_ATTACH_EXCLUSIVE));
    CHECK(pthread_create(&thread, NULL, stranger, service) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(sw_clock_advance(service, MS));
    EQUAL(poll_all(service, 1), 1);
    OK(sw_shard_detach(service, 1));
    STATUS(sw_shard_detach(service, 1), SW_INVALID);
    OK(sw_service_free(service));
}

int main(void)
{
    queues();
    descriptors();
    attachments();
    return 0;
}
