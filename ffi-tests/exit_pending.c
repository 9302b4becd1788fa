/*
 * Returns from main with timers pending and firing: the process ends cleanly and at once.
 */
#define _POSIX_C_SOURCE 200809L

#include "latch.h"

static struct latch fired = LATCH;

static void fire(void *ctx, const sw_expiry *expiry)
{
    (void)ctx, (void)expiry;
    latch_add(&fired);
}

int main(void)
{
    sw_service *service = NULL;
    OK(sw_service_start(NULL, &service));
    for (int i = 0; i < 1000; i++)
        OK(sw_timer_start(service, 3600 * SECOND, fire, NULL, NULL));
    OK(sw_timer_start_every(service, MS, fire, NULL, NULL));
    latch_wait(&fired, 3);
    return 0;
}
