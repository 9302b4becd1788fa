/*
 * What the proxy and its load share: the clock, sockets on loopback, and the protocol.
 *
 * A request is one line, "WORD BYTES ID\n", of less than LINE bytes; its response is BYTES times
 * 'x'. The WORD tells the origin how to answer; "hole" is sent to an origin that never accepts. On
 * one connection requests follow each other. When a time-out ends a connection, the proxy's last
 * words are '!' and its name.
 */
#ifndef NET_H
#define NET_H

#include "../../check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 48, BACKLOG = 4096 };

static inline uint64_t now_ns(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* An address of this machine; `host` from 1 to 254 spreads connections over addresses, because
 * the ports for each are limited. */
static inline struct sockaddr_in loopback(unsigned host, uint16_t port)
{
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(UINT32_C(0x7f000000) + host);
    address.sin_port = htons(port);
    return address;
}

/* Listens on every loopback address; `port` 0: any, and it is written there. */
static inline int listen_at(uint16_t *port, int backlog)
{
    struct sockaddr_in address = loopback(0, *port);
    socklen_t length = sizeof address;
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(fd, backlog) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* Begins to connect; answers the descriptor, or -1 with `errno`. */
static inline int connect_to(unsigned host, uint16_t port)
{
    struct sockaddr_in address = loopback(host, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

/* Lets the system hold no more than this for a connection, so that a reader's pace is felt by who
 * writes to it. `what`: SO_SNDBUF or SO_RCVBUF. */
static inline void keep_short(int fd, int what)
{
    int bytes = 131072;
    CHECK(setsockopt(fd, SOL_SOCKET, what, &bytes, sizeof bytes) == 0);
}

/* Raises the limit of descriptors to `wanted`, beyond the hard limit if the system lets this process, else
 * as far as it goes; answers it. */
static inline uint64_t raise_limit(uint64_t wanted)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_cur >= wanted) return limit.rlim_cur;
    struct rlimit raised = {wanted, limit.rlim_max > wanted ? limit.rlim_max : wanted};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return wanted;
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    return limit.rlim_cur;
}

#endif
