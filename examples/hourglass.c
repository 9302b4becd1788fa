/*
 * An hourglass: a timer that arms itself again, with a new interval each time, goes on after a
 * failure, and stops when it is told to, from outside or in its own callback.
 *
 *     cc examples/hourglass.c $(pkg-config --cflags --libs shardwheel) -o hourglass
 *
 * A glass belongs to its callback while the timer lives; after `sw_timer_cancel_wait` it is
 * main's again, and what the callback wrote can be seen.
 */
#define _POSIX_C_SOURCE 200809L

#include "shardwheel.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const uint64_t MS = 1000000;

struct glass {
    const char *name;
    sw_service *service;
    sw_timer timer;
    uint64_t interval_ns;
    unsigned turns;
    int failures;
    unsigned last; /* the turn at which it tells itself to stop; 0: it does not */
};

static void must(sw_status status)
{
    if (status < SW_OK) {
        fprintf(stderr, "%s\n", sw_status_text(status));
        exit(1);
    }
}

/* What is done at each turn. The third fails. */
static int work(unsigned turn)
{
    return turn == 3 ? -1 : 0;
}

static void turn(void *ctx, const sw_expiry *expiry)
{
    struct glass *glass = ctx;
    glass->turns += 1;
    glass->interval_ns = (30 + glass->turns % 7 * 10) * MS;
    /* Inside its own callback a reset arms the timer again. Done first, it holds whatever follows. */
    must(sw_timer_reset(glass->service, expiry->timer, glass->interval_ns));

    printf("%s: turn %u, %.2f ms late, the next in %.0f ms\n", glass->name, glass->turns,
           (double)(expiry->now_ns - expiry->deadline_ns) / 1e6, (double)glass->interval_ns / 1e6);
    if (work(glass->turns) != 0) {
        glass->failures += 1;
        return; /* the fourth turn comes all the same */
    }
    if (glass->turns == glass->last) {
        /* SW_RUNNING: this turn is running; there will be no other. */
        sw_status status = sw_timer_cancel(glass->service, expiry->timer);
        printf("%s: no more (%s)\n", glass->name, sw_status_text(status));
    }
}

int main(void)
{
    sw_service *service;
    must(sw_service_start(NULL, &service));
    struct glass ours = {.name = "ours", .service = service, .interval_ns = 30 * MS};
    struct glass its_own = ours;
    its_own.name = "its own";
    its_own.last = 5;
    must(sw_timer_start(service, ours.interval_ns, turn, &ours, &ours.timer));
    must(sw_timer_start(service, its_own.interval_ns, turn, &its_own, &its_own.timer));

    /* A while, and then until that glass has stopped itself. */
    const struct timespec a_while = {0, 500000000};
    uint64_t remaining;
    do {
        nanosleep(&a_while, NULL);
    } while (sw_timer_remaining(service, its_own.timer, &remaining) != SW_NOT_FOUND);

    /* Afterwards it is not running, and will not run again. */
    sw_status outside = sw_timer_cancel_wait(service, ours.timer);
    sw_status inside = sw_timer_cancel_wait(service, its_own.timer);
    must(outside);
    must(inside);
    printf("ours stopped: %s; its own had stopped: %s\n", sw_status_text(outside),
           sw_status_text(inside));
    printf("turns that failed: %d\n", ours.failures + its_own.failures);
    sw_service_free(service);
    return its_own.turns == its_own.last ? 0 : 1;
}
