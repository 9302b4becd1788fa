/*
 * Two static libraries that are both written in Rust in one program: each with a standard library of
 * its own, and neither sees the other's.
 */
#define _POSIX_C_SOURCE 200809L

#include "../latch.h"

uint32_t second_sum(uint32_t count);

static struct latch fired = LATCH;

static void fire(void *ctx, const sw_expiry *expiry)
{
    (void)ctx, (void)expiry;
    EQUAL(second_sum(6), 100 + 0 + 1 + 2 + 4 + 5);
    latch_add(&fired);
}

int main(void)
{
    sw_service *service = NULL;
    OK(sw_service_start(NULL, &service));
    EQUAL(second_sum(2), 1);
    OK(sw_timer_start(service, MS, fire, NULL, NULL));
    latch_wait(&fired, 1);
    OK(sw_service_free(service));
    EQUAL(second_sum(100), 0);
    return 0;
}
