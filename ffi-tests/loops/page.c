/*
 * The two loops of examples/io_uring.md, as they stand there: `tests/loops.rs` puts the page's code in
 * the places that are marked here. Each must come to a timer's callback, and the first must sleep
 * until then.
 */
#define _GNU_SOURCE

#include "shardwheel.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMERS = 1 };

static struct io_uring ring;
static sw_service *service;
static const uint32_t shard = 0;
static const size_t budget = 64;
static int fd;

static void check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static void fire(void *ctx, const sw_expiry *expiry)
{
    (void)expiry;
    *(int *)ctx += 1;
}

static void by_timeout(void)
{
    struct io_uring_cqe *cqe;
    /* PAGE 1 */
}

static void by_fd(void)
{
    /* PAGE 2 */
}

static int turns(uint32_t attach, void turn(void))
{
    int fired = 0, count = 0;
    check(sw_shard_attach(service, shard, attach) == SW_OK, "attach");
    check(sw_timer_start(service, 50000000, fire, &fired, NULL) == SW_OK, "start");
    for (; fired == 0; count++) {
        struct io_uring_cqe *cqe;
        turn();
        while (io_uring_peek_cqe(&ring, &cqe) == 0) {
            check(io_uring_cqe_get_data64(cqe) == TIMERS, "whose completion?");
            io_uring_cqe_seen(&ring, cqe);
        }
    }
    check(fired == 1, "once");
    check(sw_shard_detach(service, shard) == SW_OK, "detach");
    return count;
}

int main(void)
{
    int refused = io_uring_queue_init(8, &ring, 0);
    if (refused < 0) {
        fprintf(stderr, "io_uring is not to be had here: %s\n", strerror(-refused));
        return 77;
    }
    sw_config config;
    sw_config_init(&config);
    config.mode = SW_MODE_DRIVEN;
    config.shards = 1;
    check(sw_service_start(&config, &service) == SW_OK, "a service");
    printf("by timeout: %d turns\n", turns(SW_ATTACH_EXCLUSIVE, by_timeout));
    check(sw_shard_fd(service, shard, &fd) == SW_OK, "a descriptor");
    printf("by descriptor: %d turns\n", turns(SW_ATTACH_SHARED, by_fd));
    io_uring_queue_exit(&ring);
    check(sw_service_free(service) == SW_OK, "freed");
    return 0;
}
