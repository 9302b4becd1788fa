/*
 * Order time-outs: 100,000 orders are placed, most are paid in time, and each of the rest is
 * closed exactly once.
 *
 *     cc examples/orders.c $(pkg-config --cflags --libs shardwheel) -pthread -o orders
 *
 * An order belongs to two who may come at the same moment: its payer, and its time-out. The answer
 * of `sw_timer_cancel` says who was first, so the order itself needs no lock: `paid` is written by
 * the payer alone, `closed` by the time-out's callback alone, and both are read when the service
 * has been stopped, which waits for the callbacks.
 */
#define _POSIX_C_SOURCE 200809L

#include "shardwheel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ORDERS = 100000, PAYERS = 2 };

static const uint64_t MS = 1000000;

struct order {
    sw_timer timeout;
    int paid;
    int closed;
};

static sw_service *service;
static struct order orders[ORDERS];

static void must(sw_status status)
{
    if (status != SW_OK) {
        fprintf(stderr, "%s\n", sw_status_text(status));
        exit(1);
    }
}

/* Nobody has paid: runs on a wheel's thread, or, if the payment was first, never. */
static void close_order(void *ctx, const sw_expiry *expiry)
{
    struct order *order = ctx;
    (void)expiry;
    order->closed += 1;
}

/* Pays every order of its share but each tenth. */
static void *pay(void *first)
{
    for (struct order *order = first; order < orders + ORDERS; order += PAYERS) {
        if ((order - orders) % 10 != 0)
            order->paid = sw_timer_cancel(service, order->timeout) == SW_OK;
    }
    return NULL;
}

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

int main(void)
{
    must(sw_service_start(NULL, &service));
    for (int i = 0; i < ORDERS; i++) {
        /* Some are in such a hurry that their payment may be too late. */
        uint64_t wait = i % 10 == 1 ? (uint64_t)i / 1000 * MS : 500 * MS;
        must(sw_timer_start(service, wait, close_order, &orders[i], &orders[i].timeout));
    }

    pthread_t payers[PAYERS];
    for (int i = 0; i < PAYERS; i++) {
        if (pthread_create(&payers[i], NULL, pay, &orders[i]) != 0) return 1;
    }
    for (int i = 0; i < PAYERS; i++)
        pthread_join(payers[i], NULL);

    sw_stats stats = {.size = sizeof stats};
    do {
        sleep_ms(10);
        must(sw_stats_read(service, SW_SHARD_ANY, &stats));
    } while (stats.pending > 0);
    must(sw_service_stop(service, NULL, NULL, NULL));

    int paid = 0, closed = 0, wrong = 0;
    for (int i = 0; i < ORDERS; i++) {
        paid += orders[i].paid;
        closed += orders[i].closed;
        wrong += orders[i].paid + orders[i].closed != 1;
    }
    printf("%d orders: %d paid, %d closed, %d wrong\n", ORDERS, paid, closed, wrong);
    sw_service_free(service);
    return wrong == 0 ? 0 : 1;
}
