/*
 * Starts the proxy and its load, stops the proxy when all clients but the rest are over, and says
 * what became of whom.
 *
 *     load PROXY CONNECTIONS TIMEOUT_MS
 *
 * Prints the proxy's accounts and its own, a name and a number in each line. Ends with 1 if a
 * client heard other last words than it must, or too early.
 *
 * What a client must hear supposes that this thread, which is also the origin, is in time. On a
 * machine so busy that a step of it came T/8 too late, a client that was timed out otherwise is
 * excused, and counted. Too early is never excused.
 */
#define _GNU_SOURCE

#include "load.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { EVENTS = 512, AT_ONCE = 100 };

struct load load;

/* Of 100 clients; the bulk readers come on top. */
static const unsigned share[BEHAVIOURS] = {
    [SILENT] = 40, [SLOW] = 16, [HOLE] = 4, [STALL] = 7, [QUIET] = 6, [BUSY] = 6,
    [DRIP] = 4, [LEAVES_ASKING] = 4, [LEAVES_READING] = 4, [RESETS] = 2, [REST] = 7,
};

enum { BULK_READERS = 8 };

static int shard_fd;
static struct ready due;
static pid_t proxy;
static unsigned begun;

void watch(int fd, struct ready *ready, int how, uint32_t events)
{
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = events;
    event.data.ptr = ready;
    CHECK(epoll_ctl(load.epoll, how, fd, &event) == 0);
}

void note_late(const sw_expiry *expiry)
{
    uint64_t late = sw_clock_now(load.service) - expiry->deadline_ns;
    if (late > load.slowest) load.slowest = late;
}

static void shard_due(struct ready *self, uint32_t events)
{
    (void)self;
    (void)events;
    OK(sw_shard_poll(load.service, 0, 0, NULL));
}

static void turn(void)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(load.epoll, events, EVENTS, -1);
    CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; i++) {
        struct ready *ready = events[i].data.ptr;
        ready->ready(ready, events[i].events);
    }
}

static enum behaviour behaviour_of(unsigned id)
{
    unsigned at = id % 100;
    if (id < BULK_READERS) return BULK;
    for (int behaviour = 0; behaviour < BEHAVIOURS; behaviour++) {
        if (at < share[behaviour]) return (enum behaviour)behaviour;
        at -= share[behaviour];
    }
    return SILENT;
}

/* Opens some more, so that the proxy keeps up: everybody's but the rest's, or the rest's. */
static void open_some(void *ctx, const sw_expiry *expiry)
{
    const bool *rest = ctx;
    for (unsigned opened = 0; opened < (*rest ? 1 : AT_ONCE) && begun < load.count; begun++) {
        if ((behaviour_of(begun) == REST) == *rest) {
            client_begin(begun, behaviour_of(begun));
            opened += 1;
        }
    }
    if (begun == load.count) OK(sw_timer_cancel(load.service, expiry->timer));
}

static void open_all(bool rest, uint64_t over_ns, unsigned steps)
{
    begun = 0;
    uint64_t period = over_ns / (steps > 0 ? steps : 1);
    OK(sw_timer_start_every(load.service, period > 0 ? period : 1, open_some, &rest, NULL));
    while (begun < load.count || load.connecting > 0 || (!rest && load.open > 0))
        turn();
}

/* A listener that is full and stays so: who connects to it waits for ever. */
static uint16_t hole_begin(int fds[4])
{
    uint16_t port = 0;
    fds[0] = listen_at(&port, 0);
    for (int i = 1; i < 4; i++)
        CHECK((fds[i] = connect_to(1, port)) >= 0);
    return port;
}

static FILE *proxy_begin(const char *program, uint16_t origin, uint16_t hole, unsigned slots)
{
    int out[2];
    CHECK(pipe(out) == 0);
    proxy = fork();
    CHECK(proxy >= 0);
    if (proxy == 0) {
        char words[4][16];
        snprintf(words[0], sizeof words[0], "%u", (unsigned)origin);
        snprintf(words[1], sizeof words[1], "%u", (unsigned)hole);
        snprintf(words[2], sizeof words[2], "%u", (unsigned)(load.timeout_ns / MS));
        snprintf(words[3], sizeof words[3], "%u", slots);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execl(program, program, words[0], words[1], words[2], "2", words[3], (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *told = fdopen(out[0], "r");
    unsigned port = 0;
    char line[32];
    CHECK(told != NULL && fgets(line, sizeof line, told) != NULL);
    CHECK(sscanf(line, "port %u", &port) == 1);
    load.proxy_port = (uint16_t)port;
    return told;
}

static void proxy_end(FILE *told)
{
    char line[128];
    int status = 0;
    CHECK(kill(proxy, SIGTERM) == 0);
    while (fgets(line, sizeof line, told) != NULL)
        fputs(line, stdout);
    fclose(told);
    CHECK(waitpid(proxy, &status, 0) == proxy);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool is_expected(const struct client *client)
{
    const char *expected = client_expects(client->behaviour);
    if (expected != NULL) return strcmp(client->words, expected) == 0;
    /* Stopped, or timed out just before. */
    if (client->behaviour == REST && client->words_length == 0) return client->refused;
    if (client->behaviour == REST) return strcmp(client->words, "!request\n") == 0;
    return client->left && client->words_length == 0;
}

/* No time-out can be due earlier than this. One to connect or one for idling shows that the
 * request had arrived. */
static uint64_t earliest(const struct client *client)
{
    bool asked = strcmp(client->words, "!connect\n") == 0 || strcmp(client->words, "!idle\n") == 0;
    uint64_t since = client->waits_since;
    if (asked && client->asked > since) since = client->asked;
    return since + load.timeout_ns;
}

/* Whether a client's end is right. */
static bool right(const struct client *client, unsigned *excused)
{
    if (client->words_length > 0 && client->heard_at < earliest(client)) return false;
    if (is_expected(client)) return true;
    /* To one that does not read, last words cannot be said. */
    bool unsaid = client->behaviour == BULK && client->refused;
    if (load.slowest < load.timeout_ns / 8) return false;
    if (client->words_length == 0 && !unsaid) return false;
    *excused += 1;
    return true;
}

static int judge(void)
{
    static const char *const words[] = {"request", "connect", "idle", "keep-alive"};
    unsigned clients[BEHAVIOURS] = {0}, wrong = 0, excused = 0, left = 0, stopped = 0;
    unsigned long heard[4] = {0};
    for (unsigned i = 0; i < load.count; i++) {
        const struct client *client = &load.clients[i];
        clients[client->behaviour] += 1;
        if (client->words_length == 0 && client->left) left += 1;
        if (client->words_length == 0 && client->behaviour == REST) stopped += client->refused;
        for (int k = 0; k < 4; k++)
            heard[k] += client->words_length > 0 &&
                        strncmp(client->words + 1, words[k], strlen(words[k])) == 0;
        if (!right(client, &excused)) {
            wrong += 1;
            fprintf(stderr, "%s %u: %s%s\"%s\" %lld ns\n", behaviour_names[client->behaviour], i,
                    client->left ? "left " : "", client->refused ? "closed " : "", client->words,
                    (long long)(client->heard_at - earliest(client)));
        }
    }
    for (int behaviour = 0; behaviour < BEHAVIOURS; behaviour++)
        printf("clients.%s %u\n", behaviour_names[behaviour], clients[behaviour]);
    for (int k = 0; k < 4; k++)
        printf("heard.%s %lu\n", words[k], heard[k]);
    printf("left %u\nstopped %u\nmost-open %u\n", left, stopped, load.most_open);
    printf("slowest-ms %llu\n", (unsigned long long)(load.slowest / MS));
    printf("excused %u\nwrong %u\n", excused, wrong);
    return wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    unsigned wanted = (unsigned)atoi(argv[2]);
    load.timeout_ns = (uint64_t)atoi(argv[3]) * MS;
    CHECK(wanted >= 100 && load.timeout_ns > 0);

    /* A client takes one descriptor here and one in the proxy; where an origin is involved, two. */
    uint64_t limit = raise_limit((uint64_t)wanted * 132 / 100 + 300);
    uint64_t allowed = limit > 200 ? (limit - 200) * 100 / 132 : 0;
    load.count = wanted <= allowed ? wanted : (unsigned)allowed;
    printf("descriptors %llu\nwanted %u\nclients %u\n", (unsigned long long)limit, wanted,
           load.count);
    load.clients = calloc(load.count, sizeof *load.clients);
    CHECK(load.count >= 100 && load.clients != NULL);

    sw_config config;
    sw_config_init(&config);
    config.mode = SW_MODE_DRIVEN;
    config.shards = 1;
    OK(sw_service_start(&config, &load.service));
    OK(sw_shard_attach(load.service, 0, SW_ATTACH_SHARED));
    OK(sw_shard_fd(load.service, 0, &shard_fd));
    CHECK((load.epoll = epoll_create1(EPOLL_CLOEXEC)) >= 0);
    due.ready = shard_due;
    watch(shard_fd, &due, EPOLL_CTL_ADD, EPOLLIN);

    int hole[4];
    uint16_t origin_port = origin_begin(load.count);
    FILE *told = proxy_begin(argv[1], origin_port, hole_begin(hole), load.count);

    open_all(false, 0, 0);
    open_all(true, load.timeout_ns * 11 / 10, load.count * share[REST] / 100);
    proxy_end(told);
    while (load.open > 0)
        turn();

    origin_end();
    for (int i = 0; i < 4; i++)
        close(hole[i]);
    close(load.epoll);
    OK(sw_service_free(load.service));
    int result = judge();
    free(load.clients);
    return result;
}
