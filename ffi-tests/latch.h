/*
 * A counter that threads wait on: what one thread did before `latch_add` is seen by another after
 * `latch_wait`.
 */
#ifndef LATCH_H
#define LATCH_H

#include "check.h"

#include <pthread.h>
#include <time.h>

struct latch {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned count;
};

#define LATCH {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}

static inline void latch_add(struct latch *latch)
{
    CHECK(pthread_mutex_lock(&latch->lock) == 0);
    latch->count += 1;
    CHECK(pthread_cond_broadcast(&latch->moved) == 0);
    CHECK(pthread_mutex_unlock(&latch->lock) == 0);
}

/* Waits until the count is at least `count`; half a minute is too long. */
static inline void latch_wait(struct latch *latch, unsigned count)
{
    struct timespec limit;
    CHECK(clock_gettime(CLOCK_REALTIME, &limit) == 0);
    limit.tv_sec += 30;
    CHECK(pthread_mutex_lock(&latch->lock) == 0);
    while (latch->count < count)
        CHECK(pthread_cond_timedwait(&latch->moved, &latch->lock, &limit) == 0);
    CHECK(pthread_mutex_unlock(&latch->lock) == 0);
}

static inline unsigned latch_count(struct latch *latch)
{
    CHECK(pthread_mutex_lock(&latch->lock) == 0);
    unsigned count = latch->count;
    CHECK(pthread_mutex_unlock(&latch->lock) == 0);
    return count;
}

#endif
