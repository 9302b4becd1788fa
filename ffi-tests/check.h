/*
 * Checks for the test programs: the first that fails prints its place and ends the program with 1.
 */
#ifndef CHECK_H
#define CHECK_H

#include "shardwheel.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* What a call answered, in words. */
#define STATUS(call, expected)                                                                     \
    do {                                                                                           \
        sw_status status_ = (call);                                                                \
        if (status_ != (expected)) {                                                               \
            fprintf(stderr, "%s:%d: %s: %d (%s), not %d (%s)\n", __FILE__, __LINE__, #call,        \
                    (int)status_, sw_status_text(status_), (int)(expected),                        \
                    sw_status_text(expected));                                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define OK(call) STATUS(call, SW_OK)

/* Two numbers that must be equal. */
#define EQUAL(left, right)                                                                         \
    do {                                                                                           \
        unsigned long long left_ = (left), right_ = (right);                                       \
        if (left_ != right_) {                                                                     \
            fprintf(stderr, "%s:%d: %s is %llu, not %llu\n", __FILE__, __LINE__, #left, left_,     \
                    right_);                                                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

#endif
