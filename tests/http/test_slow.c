/*  Clients that hold a place: how long each may take for its request and for the answer, on a clock turned by hand, and
 *  that there is a place for the next one whatever the others do. Real sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/http/conns.h"
#include "common/http/server.h"
#include "tests/test.h"

enum { CONNECTIONS = 32, HORDE = 200, LARGE = 8 << 20, PATIENCE_S = 20 };

typedef struct {
    tt_server_t *server;
    tt_clock_t clock;
    size_t asked, body; /* requests that came whole; bytes of the last one's body */
    char *large;
} stage_t;

/*  8 MiB of zeros that take no room. */
static int s_file(void)
{
    const int fd = memfd_create("large", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, LARGE), 0);
    return fd;
}

/*  /deny is refused at its head; /later is not answered; /large is 8 MiB of memory, /file as much of a file. */
static void s_on_head(void *ctx, const tt_server_request_t *r)
{
    stage_t *stage = ctx;
    assert_int_equal(r->size, 0);
    if (strcmp(r->path, "/deny") == 0)
        tt_server_reply(stage->server, r->id, 401, "text/plain", "no", 2);
}

static void s_on_request(void *ctx, const tt_server_request_t *r)
{
    stage_t *stage = ctx;
    stage->asked++;
    stage->body = r->size;
    if (strcmp(r->path, "/large") == 0)
        tt_server_reply(stage->server, r->id, 200, "text/plain", stage->large, LARGE);
    else if (strcmp(r->path, "/file") == 0)
        tt_server_reply_file(stage->server, r->id, "large", s_file(), LARGE);
    else if (strcmp(r->path, "/later") != 0)
        tt_server_reply(stage->server, r->id, 200, "text/plain", "ok", 2);
}

static int s_connect(const stage_t *stage)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)tt_server_port(stage->server))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void s_write(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/*  Serve until there is nothing to do but to wait. */
static void s_settle(stage_t *stage)
{
    struct pollfd wait = {.fd = tt_server_fd(stage->server), .events = POLLIN};
    while (poll(&wait, 1, tt_server_due_ms(stage->server) == 0 ? 0 : 50) > 0 || tt_server_due_ms(stage->server) == 0)
        tt_server_serve(stage->server);
}

/*  Serve when it asks for it, or when it is due, until `fd` has something to read; without one, once. */
static void s_serve(stage_t *stage, int fd)
{
    struct pollfd wait[] = {{.fd = tt_server_fd(stage->server), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    do {
        const bool due = tt_server_due_ms(stage->server) == 0;
        assert_true(poll(wait, TT_COUNT(wait), due ? 0 : PATIENCE_S * 1000) > 0 || due);
        if (due || wait[0].revents)
            tt_server_serve(stage->server);
    } while (fd >= 0 && !wait[1].revents);
}

/*  Serve until so many requests came whole. */
static void s_await(stage_t *stage, size_t asked)
{
    while (stage->asked < asked)
        s_serve(stage, -1);
}

static void s_pass(stage_t *stage, int64_t ms)
{
    tt_clock_turn(&stage->clock, ms * 1000000);
    s_settle(stage);
}

/*  What comes of an answer at first. */
static void s_check_answer(stage_t *stage, int fd, const char *expected)
{
    char text[1024] = "";
    s_serve(stage, fd);
    assert_true(recv(fd, text, sizeof text - 1, 0) > 0);
    assert_int_equal(memcmp(text, expected, strlen(expected)), 0);
}

/*  Has the server closed it? What it has said before is thrown away. */
static bool s_ends(int fd, int flags)
{
    char text[4096];
    ssize_t got;
    while ((got = recv(fd, text, sizeof text, flags)) > 0)
        ;
    return got == 0 || errno == ECONNRESET;
}

static void s_check_open(int fd)
{
    assert_false(s_ends(fd, MSG_DONTWAIT));
}

static void s_check_closed(int fd)
{
    assert_true(s_ends(fd, 0));
}

/*  Does another client get an answer? The server is served only when it asks for it, and its clock stands. */
static void s_check_served(stage_t *stage)
{
    const int fd = s_connect(stage);
    s_write(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    s_check_answer(stage, fd, "HTTP/1.1 200");
    close(fd);
}

static int s_setup(void **state)
{
    stage_t *stage = tt_new0(sizeof *stage);
    stage->clock = tt_clock_fake(1000000000);
    stage->large = tt_new0(LARGE);
    memset(stage->large, 'x', LARGE);
    const tt_server_opts_t opts = {.address = "127.0.0.1:0",
        .connections = CONNECTIONS,
        .on_head = s_on_head,
        .on_request = s_on_request,
        .ctx = stage,
        .clock = &stage->clock};
    assert_ok(tt_server_start(&stage->server, &opts));
    *state = stage;
    return 0;
}

static int s_teardown(void **state)
{
    stage_t *stage = *state;
    tt_server_stop(&stage->server);
    free(stage->large);
    free(stage);
    return 0;
}

/* ---- deadlines ----------------------------------------------------------------------------------------------------- */

/*  A byte every second: the deadline is for the request, and not for each of its bytes. */
static void s_check_dripped(stage_t *stage, const char *begin, const char *drop)
{
    const int fd = s_connect(stage);
    s_write(fd, begin);
    s_settle(stage);
    for (int64_t ms = 0; ms < CONN_READ_MS - 1000; ms += 1000) {
        s_pass(stage, 1000);
        s_check_open(fd);
        s_write(fd, drop);
    }
    s_pass(stage, 1000);
    s_check_closed(fd);
    assert_int_equal(stage->asked, 0);
    close(fd);
}

static void test_a_slow_head(void **state)
{
    s_check_dripped(*state, "GET /now HTTP/1.1\r\nHost: x\r\nX-Slow: ", "a");
}

static void test_a_slow_body(void **state)
{
    s_check_dripped(*state, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", "a");
}

static void test_a_slow_body_in_chunks(void **state)
{
    s_check_dripped(*state, "POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n");
}

static void test_a_slow_body_of_who_is_refused(void **state)
{
    s_check_dripped(*state, "POST /deny HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", "a");
}

static void test_who_says_nothing(void **state)
{
    stage_t *stage = *state;
    const int fd = s_connect(stage);
    s_serve(stage, -1);
    s_pass(stage, CONN_READ_MS - 1);
    s_check_open(fd);
    assert_int_equal(tt_server_due_ms(stage->server), 1);
    s_pass(stage, 1);
    s_check_closed(fd);
    assert_int_equal(tt_server_due_ms(stage->server), -1);
    close(fd);
}

/*  An answer begins a new time, for the next request. */
static void test_one_who_is_kept(void **state)
{
    stage_t *stage = *state;
    const int fd = s_connect(stage);
    for (size_t i = 1; i <= 3; i++) {
        s_pass(stage, CONN_READ_MS - 1);
        s_write(fd, "GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
        s_await(stage, i);
        s_settle(stage);
        s_check_open(fd);
        assert_int_equal(stage->asked, i);
    }
    s_pass(stage, CONN_READ_MS);
    s_check_closed(fd);
    close(fd);
}

/*  One that does not take its answer, or takes a little of it now and then. */
/*  30 s, and one for each MiB; others are served meanwhile. */
static void s_check_slow_reader(stage_t *stage, const char *request)
{
    const int64_t least = CONN_WRITE_MS + LARGE / CONN_WRITE_BYTES * 1000;
    const int fd = s_connect(stage);
    s_write(fd, request);
    s_await(stage, 1);
    s_settle(stage);
    char some[512];
    int64_t ms = 0;
    for (; ms < least - 5000; ms += 5000) {
        s_pass(stage, 5000);
        assert_int_equal(recv(fd, some, sizeof some, 0), sizeof some);
    }
    assert_int_equal(tt_server_due_ms(stage->server), least - ms);
    s_check_served(stage);
    s_pass(stage, least - ms);
    assert_int_equal(tt_server_due_ms(stage->server), -1); /* nobody is connected any more */
    close(fd);
}

static void test_a_slow_reader(void **state)
{
    s_check_slow_reader(*state, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
}

static void test_a_slow_reader_of_a_file(void **state)
{
    s_check_slow_reader(*state, "GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
}

/*  While the answer is made the client waits for us: it is told when that takes too long, and not cut off. */
static void test_a_late_answer(void **state)
{
    stage_t *stage = *state;
    char text[1024] = "";
    const int fd = s_connect(stage);
    s_write(fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    s_await(stage, 1);
    s_pass(stage, 29999);
    assert_int_equal(recv(fd, text, sizeof text, MSG_DONTWAIT), -1);
    s_pass(stage, 1);
    s_check_answer(stage, fd, "HTTP/1.1 503");
    close(fd);
}

/* ---- places ---------------------------------------------------------------------------------------------------------- */

/*  Far more clients than places, each of which begins something and stays: the next one is served. */
static void s_check_horde(stage_t *stage, const char *begin)
{
    int fds[HORDE];
    for (size_t i = 0; i < HORDE; i++) {
        fds[i] = s_connect(stage);
        s_write(fds[i], begin);
    }
    s_check_served(stage);
    s_check_served(stage);
    for (size_t i = 0; i < HORDE; i++)
        close(fds[i]);
}

static void test_many_slow_heads(void **state)
{
    s_check_horde(*state, "GET /now HTTP/1.1\r\nHost: x\r\nX-Slow: ");
}

static void test_many_slow_bodies(void **state)
{
    s_check_horde(*state, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
}

static void s_check_slow_readers(stage_t *stage, const char *request)
{
    int fds[2 * CONNECTIONS];
    for (size_t i = 0; i < TT_COUNT(fds); i++) {
        fds[i] = s_connect(stage);
        s_write(fds[i], request);
    }
    s_await(stage, CONNECTIONS);
    s_settle(stage);
    s_check_served(stage);
    for (size_t i = 0; i < TT_COUNT(fds); i++)
        close(fds[i]);
}

static void test_many_slow_readers(void **state)
{
    s_check_slow_readers(*state, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
}

static void test_many_slow_readers_of_files(void **state)
{
    s_check_slow_readers(*state, "GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
}

static void test_many_who_are_kept(void **state)
{
    s_check_horde(*state, "GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
}

/*  Those whose answer is not made yet are not cut off; there are never so many of them that nobody else comes through. */
static void test_many_who_wait(void **state)
{
    s_check_horde(*state, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    s_await(*state, CONNECTIONS / 2);
    assert_int_equal(((stage_t *)*state)->asked, CONNECTIONS / 2);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------------ */

/*  A short body is let come, so that the answer can be read; it is thrown away. A long one is not awaited. */
static void test_the_body_of_who_is_refused(void **state)
{
    static const char *const heads[] = {"POST /deny HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
        "POST /deny HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n{",
        "POST /deny HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000000\r\n\r\n{"};
    stage_t *stage = *state;
    for (size_t i = 0; i < TT_COUNT(heads); i++) {
        const int fd = s_connect(stage);
        s_write(fd, heads[i]);
        s_check_answer(stage, fd, "HTTP/1.1 401");
        close(fd);
    }
    assert_int_equal(stage->asked, 0);
}

/*  One without a length, and without an end: cut off when enough was thrown away. */
static void test_an_endless_body(void **state)
{
    stage_t *stage = *state;
    char chunk[4096 + 8];
    memset(chunk, 'x', sizeof chunk);
    memcpy(chunk, "1000\r\n", 6);
    memcpy(chunk + 6 + 4096, "\r\n", 2);
    const int fd = s_connect(stage);
    s_write(fd, "POST /deny HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    size_t sent = 0, at = 0;
    for (ssize_t got; sent < (size_t)LARGE; sent += (size_t)got, at = (at + (size_t)got) % sizeof chunk) {
        got = send(fd, chunk + at, sizeof chunk - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (got < 0 && errno != EAGAIN)
            break;
        got = got < 0 ? 0 : got;
        tt_server_serve(stage->server);
    }
    assert_true(sent < (size_t)LARGE);
    assert_int_equal(stage->asked, 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_slow_head, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_body, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_body_in_chunks, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_body_of_who_is_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_who_says_nothing, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_one_who_is_kept, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_reader, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_reader_of_a_file, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_late_answer, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_many_slow_heads, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_many_slow_bodies, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_many_slow_readers, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_many_slow_readers_of_files, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_many_who_are_kept, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_many_who_wait, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_the_body_of_who_is_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_an_endless_body, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
