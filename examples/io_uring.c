/*
 * Timeouts beside io_uring, in the two ways of io_uring.md: a heartbeat, and a session that ends
 * when it has been idle for too long.
 *
 *     cc examples/io_uring.c $(pkg-config --cflags --libs shardwheel) -luring -o uring
 *     ./uring timeout
 *     ./uring fd
 *
 * All runs on one thread, the ring's: what callbacks share needs no lock.
 */
#define _GNU_SOURCE

#include "shardwheel.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET = 1024, TIMERS = 1 }; /* TIMERS: the user data that marks the shard's descriptor */

static const uint64_t MS = 1000000, SECOND = 1000000000;

static struct io_uring ring;
static sw_service *service;
static sw_timer idle;
static int beats, over;

static void must(int worked)
{
    if (!worked) {
        fprintf(stderr, "it did not work\n");
        exit(1);
    }
}

/* Each beat counts as traffic: the idle time-out is pushed out. After the third they stop. */
static void beat(void *ctx, const sw_expiry *expiry)
{
    (void)ctx;
    printf("beat %d\n", ++beats);
    sw_timer_reset(service, idle, 150 * MS);
    if (beats == 3) sw_timer_cancel(service, expiry->timer);
}

static void on_idle(void *ctx, const sw_expiry *expiry)
{
    (void)expiry;
    printf("%s is idle\n", (const char *)ctx);
    over = 1;
}

/* Asks to be told once when the shard has something to do. */
static void watch(int fd)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    must(sqe != NULL);
    io_uring_prep_poll_add(sqe, fd, POLLIN);
    io_uring_sqe_set_data64(sqe, TIMERS);
}

/* Looks at the completions that are there; answers whether the shard's was among them. */
static int complete(void)
{
    struct io_uring_cqe *cqe;
    int due = 0;
    while (io_uring_peek_cqe(&ring, &cqe) == 0) {
        if (io_uring_cqe_get_data64(cqe) == TIMERS) due = 1;
        /* else: one of the host's own */
        io_uring_cqe_seen(&ring, cqe);
    }
    return due;
}

/* One turn: waits until something completes, or until the shard's next deadline. */
static void turn_by_timeout(void)
{
    uint64_t next;
    must(sw_shard_next(service, 0, &next) == SW_OK);
    uint64_t now = sw_clock_now(service), left = next > now ? next - now : 0;
    struct __kernel_timespec time = {(long long)(left / SECOND), (long long)(left % SECOND)};
    struct io_uring_cqe *cqe;
    int error = io_uring_submit_and_wait_timeout(&ring, &cqe, 1, next == SW_NEVER ? NULL : &time,
                                                 NULL);
    must(error >= 0 || error == -ETIME || error == -EINTR);
    complete();
    must(sw_shard_poll(service, 0, BUDGET, NULL) == SW_OK);
}

/* One turn: waits until something completes; the shard's descriptor is one of the things. */
static void turn_by_fd(int fd)
{
    int error = io_uring_submit_and_wait(&ring, 1);
    must(error >= 0 || error == -EINTR);
    if (!complete()) return;
    must(sw_shard_poll(service, 0, BUDGET, NULL) == SW_OK);
    watch(fd);
}

int main(int argc, char **argv)
{
    int by_fd = argc == 2 && strcmp(argv[1], "fd") == 0;
    int refused = io_uring_queue_init(64, &ring, 0);
    if (refused < 0) {
        fprintf(stderr, "io_uring is not to be had here: %s\n", strerror(-refused));
        return 77;
    }
    sw_config config;
    sw_config_init(&config);
    config.mode = SW_MODE_DRIVEN; /* no threads: the ring's does it */
    config.shards = 1;
    must(sw_service_start(&config, &service) == SW_OK);
    /* Without the descriptor nobody could wake the ring, so nobody else may start timers here. */
    must(sw_shard_attach(service, 0, by_fd ? SW_ATTACH_SHARED : SW_ATTACH_EXCLUSIVE) == SW_OK);
    must(sw_timer_start_every(service, 100 * MS, beat, NULL, NULL) == SW_OK);
    must(sw_timer_start(service, 150 * MS, on_idle, "the session", &idle) == SW_OK);

    int turns = 0, fd = -1;
    if (by_fd) {
        must(sw_shard_fd(service, 0, &fd) == SW_OK);
        watch(fd);
    }
    for (; !over; turns++) {
        if (by_fd)
            turn_by_fd(fd);
        else
            turn_by_timeout();
    }
    printf("%d turns\n", turns);
    io_uring_queue_exit(&ring);
    sw_service_free(service);
    return 0;
}
