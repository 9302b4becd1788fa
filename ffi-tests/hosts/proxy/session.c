/*
 * One connection of the proxy: waits for a request line, connects to the origin, relays the
 * response, waits for the next request. In each of these states one time-out runs.
 */
#define _GNU_SOURCE

#include "proxy.h"

#include <sys/epoll.h>

const char *const kind_names[KINDS] = {"request", "connect", "idle", "keep-alive"};

static void on_timeout(void *ctx, const sw_expiry *expiry);

static void arm(struct session *session, enum kind kind)
{
    struct worker *worker = session->worker;
    sw_timer timer;
    session->kind = kind;
    session->since = now_ns();
    OK(sw_timer_start(worker->service, worker->timeout_ns, on_timeout, session, &timer));
    /* Relaxed: another worker only wants the number. */
    atomic_store_explicit(&session->timer, timer, memory_order_relaxed);
    session->armed = true;
    worker->accounts[kind].started += 1;
}

/* Only another worker, at the end, can have been here first. */
static bool ours(sw_status status)
{
    if (status == SW_OK) return true;
    CHECK(status == SW_NOT_FOUND && atomic_load(&stopping));
    return false;
}

static void disarm(struct session *session)
{
    struct worker *worker = session->worker;
    if (!session->armed) return;
    session->armed = false;
    if (ours(sw_timer_cancel(worker->service, session->timer)))
        worker->accounts[session->kind].cancelled += 1;
}

/* Something was read or written: the connection is not idle. */
static void push_out(struct session *session)
{
    struct worker *worker = session->worker;
    session->since = now_ns();
    if (ours(sw_timer_reset(worker->service, session->timer, worker->timeout_ns)))
        worker->accounts[IDLE].pushed += 1;
}

static void on_timeout(void *ctx, const sw_expiry *expiry)
{
    struct session *session = ctx;
    struct worker *worker = session->worker;
    if (!session->armed || expiry->timer != session->timer) {
        worker->stray += 1;
        return;
    }
    if (now_ns() - session->since < worker->timeout_ns) worker->early += 1;
    session->armed = false;
    worker->accounts[session->kind].fired += 1;

    /* What has arrived and is not read would turn the last words into a reset. */
    while (recv(session->client, worker->buffer, CHUNK, 0) > 0) continue;
    char words[LINE];
    int length = snprintf(words, sizeof words, "!%s\n", kind_names[session->kind]);
    if (send(session->client, words, (size_t)length, MSG_NOSIGNAL) != length)
        worker->accounts[session->kind].unsaid += 1;
    session_end(session, &worker->timed_out);
}

static void watch(struct session *session, bool origin, int how, uint32_t events)
{
    /* The lowest bit tells the two descriptors of a session apart. */
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = events;
    event.data.u64 = (uint64_t)(uintptr_t)session | (origin ? 1 : 0);
    int fd = origin ? session->origin : session->client;
    CHECK(epoll_ctl(session->worker->epoll, how, fd, &event) == 0);
}

void session_begin(struct worker *worker, int client)
{
    struct session *session = worker->vacant;
    if (session != NULL) {
        worker->vacant = session->next;
    } else {
        size_t used = atomic_load_explicit(&worker->used, memory_order_relaxed);
        CHECK(used < worker->slots);
        session = &worker->sessions[used];
        session->worker = worker;
        /* Release: with the read of the worker that goes through the sessions at the end. */
        atomic_store_explicit(&worker->used, used + 1, memory_order_release);
    }
    session->client = client;
    keep_short(client, SO_SNDBUF);
    session->origin = -1;
    session->line_length = 0;
    worker->accepted += 1;
    watch(session, false, EPOLL_CTL_ADD, EPOLLIN);
    arm(session, REQUEST);
}

void session_end(struct session *session, uint64_t *count)
{
    struct worker *worker = session->worker;
    disarm(session);
    close(session->client);
    if (session->origin >= 0) close(session->origin);
    free(session->held);
    session->held = NULL;
    session->client = -1;
    session->origin = -1;
    /* Events of this turn may still name it. */
    session->next = worker->closed;
    worker->closed = session;
    *count += 1;
}

/* The origin is connected: the request goes there. It is so short that it fits. */
static void ask(struct session *session)
{
    ssize_t sent = send(session->origin, session->line, session->line_length, MSG_NOSIGNAL);
    if (sent != (ssize_t)session->line_length) {
        session_end(session, &session->worker->failed);
        return;
    }
    session->line_length = 0;
    watch(session, true, EPOLL_CTL_MOD, EPOLLIN);
    arm(session, IDLE);
}

/* A whole line is there. */
static void request(struct session *session)
{
    struct worker *worker = session->worker;
    char word[LINE];
    unsigned long long bytes;
    session->line[session->line_length] = '\0';
    disarm(session);
    if (sscanf(session->line, "%47s %llu", word, &bytes) != 2 || bytes == 0) {
        session_end(session, &worker->failed);
        return;
    }
    session->left = bytes;
    if (session->origin >= 0) {
        ask(session);
        return;
    }
    bool hole = strcmp(word, "hole") == 0;
    unsigned host = 1 + (unsigned)(session - worker->sessions) % 8;
    session->origin = connect_to(host, hole ? worker->hole_port : worker->origin_port);
    if (session->origin < 0) {
        session_end(session, &worker->failed);
        return;
    }
    watch(session, true, EPOLL_CTL_ADD, EPOLLOUT);
    arm(session, CONNECT);
}

/* Passes on what is held; answers whether all of it went. */
static bool flush(struct session *session)
{
    while (session->held_from < session->held_to) {
        ssize_t sent = send(session->client, session->held + session->held_from,
                            session->held_to - session->held_from, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        push_out(session);
        session->held_from += (size_t)sent;
    }
    return true;
}

static void response_is_over(struct session *session)
{
    disarm(session);
    arm(session, KEEP_ALIVE);
}

void session_client_ready(struct session *session, uint32_t events)
{
    struct worker *worker = session->worker;
    if (session->held != NULL && (events & EPOLLOUT) != 0 && flush(session)) {
        free(session->held);
        session->held = NULL;
        watch(session, false, EPOLL_CTL_MOD, EPOLLIN);
        watch(session, true, EPOLL_CTL_MOD, EPOLLIN);
        if (session->left == 0) response_is_over(session);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;

    bool asking = session->kind == REQUEST || session->kind == KEEP_ALIVE;
    size_t room = LINE - 1 - session->line_length;
    ssize_t got = recv(session->client, session->line + session->line_length, room, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        session_end(session, &worker->gone);
        return;
    }
    session->line_length += (size_t)got;
    if (session->kind == KEEP_ALIVE) {
        disarm(session);
        arm(session, REQUEST);
    }
    if (asking && session->line[session->line_length - 1] == '\n')
        request(session);
    else if (!asking || session->line_length == LINE - 1)
        session_end(session, &worker->failed); /* a line too long, or too soon */
}

/* Sends on what was read; what the client does not take is held, and no more is read. */
static void relay(struct session *session, size_t length)
{
    char *buffer = session->worker->buffer;
    ssize_t sent = send(session->client, buffer, length, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        session_end(session, &session->worker->gone);
        return;
    }
    if (sent > 0) push_out(session);
    size_t done = sent > 0 ? (size_t)sent : 0;
    if (done < length) {
        session->worker->held += 1;
        session->held = malloc(length - done);
        CHECK(session->held != NULL);
        memcpy(session->held, buffer + done, length - done);
        session->held_from = 0;
        session->held_to = length - done;
        watch(session, false, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
        watch(session, true, EPOLL_CTL_MOD, 0);
    } else if (session->left == 0) {
        response_is_over(session);
    }
}

void session_origin_ready(struct session *session, uint32_t events)
{
    struct worker *worker = session->worker;
    if (session->kind == CONNECT) {
        int error = 0;
        socklen_t length = sizeof error;
        CHECK(getsockopt(session->origin, SOL_SOCKET, SO_ERROR, &error, &length) == 0);
        if (error != 0) {
            session_end(session, &worker->failed);
        } else if ((events & EPOLLOUT) != 0) {
            disarm(session);
            ask(session);
        }
        return;
    }
    size_t most = session->left < CHUNK ? (size_t)session->left : CHUNK;
    /* Between requests it has nothing to say: then this finds out whether it is gone. */
    ssize_t got = recv(session->origin, worker->buffer, most > 0 ? most : 1, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0 || session->kind != IDLE || session->held != NULL) {
        session_end(session, &worker->failed);
        return;
    }
    session->left -= (uint64_t)got;
    push_out(session);
    relay(session, (size_t)got);
}
