/*  The HTTP server on a loop of poll(2): answers at once and later, bodies, limits, many clients, ends. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/http/server.h"
#include "tests/test.h"

enum { CLIENTS = 300, FILE_BYTES = 3 << 20, FILE_SAID = FILE_BYTES + 1024 };

typedef struct {
    tt_server_t *server;
    uint64_t ids[CLIENTS];
    size_t asked;
    char last[512];
} stage_t;

/*  A file without a name whose bytes say where they are. */
static int s_file(void)
{
    char path[] = "/tmp/tt-server-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    unsigned *words = tt_new0(FILE_BYTES);
    for (unsigned i = 0; i < FILE_BYTES / sizeof *words; i++)
        words[i] = i;
    assert_int_equal(write(fd, words, FILE_BYTES), FILE_BYTES);
    free(words);
    return fd;
}

/*  /now is answered at once, /file with a file, /short with one that ends too early, /later is remembered. */
static void s_on_request(void *ctx, const tt_server_request_t *r)
{
    stage_t *stage = ctx;
    snprintf(stage->last, sizeof stage->last, "%s %s ?%s %zu %.100s from %s", r->method, r->path, r->query, r->size,
        r->body, r->peer);
    if (strcmp(r->path, "/now") == 0)
        tt_server_reply(stage->server, r->id, 200, "application/json", "{}", 2);
    else if (strcmp(r->path, "/file") == 0)
        tt_server_reply_file(stage->server, r->id, "a.safetensors", s_file(), FILE_BYTES);
    else if (strcmp(r->path, "/short") == 0)
        tt_server_reply_file(stage->server, r->id, "a.safetensors", s_file(), FILE_SAID);
    else if (stage->asked < CLIENTS)
        stage->ids[stage->asked] = r->id;
    stage->asked++;
}

static tt_status_t s_start(tt_server_t **server, const char *address, void *ctx)
{
    const tt_server_opts_t opts = {.address = address, .connections = 256, .on_request = s_on_request, .ctx = ctx};
    return tt_server_start(server, &opts);
}

static int s_connect(const stage_t *stage)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)tt_server_port(stage->server))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void s_write(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void s_turn(stage_t *stage, int other)
{
    struct pollfd fds[2] = {{.fd = tt_server_fd(stage->server), .events = POLLIN}, {.fd = other, .events = POLLIN}};
    const int64_t due = tt_server_due_ms(stage->server);
    assert_true(poll(fds, other < 0 ? 1 : 2, due < 0 ? 5000 : (int)due) >= 0);
    tt_server_serve(stage->server);
}

/*  What comes on fd until it holds `until`. */
static void s_read(stage_t *stage, int fd, char *out, size_t size, const char *until)
{
    size_t got = 0;
    out[0] = '\0';
    while (!strstr(out, until)) {
        s_turn(stage, fd);
        const ssize_t n = recv(fd, out + got, size - got - 1, MSG_DONTWAIT);
        if (n == 0)
            fail_msg("closed after: %s", out);
        got += n > 0 ? (size_t)n : 0;
        out[got] = '\0';
    }
}

static int s_setup(void **state)
{
    stage_t *stage = tt_new0(sizeof *stage);
    assert_ok(s_start(&stage->server, "127.0.0.1:0", stage));
    *state = stage;
    return 0;
}

static int s_teardown(void **state)
{
    stage_t *stage = *state;
    tt_server_stop(&stage->server);
    assert_null(stage->server);
    free(stage);
    return 0;
}

static void test_at_once(void **state)
{
    stage_t *stage = *state;
    char text[2048];
    const int fd = s_connect(stage);
    s_write(fd, "GET /now?a=%20b HTTP/1.1\r\nHost: x\r\n\r\n");
    s_read(stage, fd, text, sizeof text, "{}");
    assert_non_null(strstr(text, "HTTP/1.1 200"));
    assert_non_null(strstr(text, "Content-Type: application/json"));
    assert_string_equal(stage->last, "GET /now ?a=%20b 0  from 127.0.0.1");
    /* the same connection again, with a body in two pieces */
    s_write(fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
    s_turn(stage, -1);
    s_write(fd, "def");
    s_read(stage, fd, text, sizeof text, "{}");
    assert_string_equal(stage->last, "POST /now ? 6 abcdef from 127.0.0.1");
    close(fd);
}

static void test_later(void **state)
{
    stage_t *stage = *state;
    char text[2048];
    const int a = s_connect(stage), b = s_connect(stage);
    s_write(a, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    while (stage->asked < 1)
        s_turn(stage, -1);
    s_write(b, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    while (stage->asked < 2)
        s_turn(stage, -1);
    tt_server_reply(stage->server, stage->ids[1], 503, "text/plain", "second", 6); /* the other order */
    s_read(stage, b, text, sizeof text, "second");
    assert_non_null(strstr(text, "HTTP/1.1 503"));
    tt_server_reply(stage->server, stage->ids[0], 200, "text/plain", "first", 5);
    s_read(stage, a, text, sizeof text, "first");
    tt_server_reply(stage->server, stage->ids[0], 200, "text/plain", "again", 5); /* nobody waits: fine */
    assert_int_equal(stage->asked, 2);
    close(a);
    close(b);
}

/*  Everything that comes behind the head, until there are `most` bytes or the server closes. */
static size_t s_read_body(stage_t *stage, int fd, char *out, size_t most)
{
    char head[4096] = "";
    size_t got = 0;
    while (!strstr(head, "\r\n\r\n")) { /* a byte at a time, so that nothing of the body is taken */
        const ssize_t n = recv(fd, head + got, 1, MSG_DONTWAIT);
        assert_int_not_equal(n, 0);
        got += n > 0 ? 1 : 0;
        if (n < 0)
            s_turn(stage, fd);
    }
    assert_non_null(strstr(head, "HTTP/1.1 200"));
    assert_non_null(strstr(head, "Content-Disposition: attachment; filename=\"a.safetensors\""));
    for (got = 0; got < most;) {
        const ssize_t n = recv(fd, out + got, most - got, MSG_DONTWAIT);
        if (n == 0)
            break;
        got += n > 0 ? (size_t)n : 0;
        if (n < 0)
            s_turn(stage, fd);
    }
    return got;
}

static size_t s_descriptors(void)
{
    size_t open = 0;
    for (int fd = 0; fd < 1024; fd++)
        open += fcntl(fd, F_GETFD) >= 0;
    return open;
}

static void test_a_file(void **state)
{
    stage_t *stage = *state;
    char *body = tt_new0(FILE_SAID), text[2048];
    const size_t before = s_descriptors();
    int fd = s_connect(stage);
    s_write(fd, "GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(s_read_body(stage, fd, body, FILE_BYTES), FILE_BYTES);
    for (unsigned i = 0; i < FILE_BYTES / sizeof i; i++)
        assert_memory_equal(body + i * sizeof i, &i, sizeof i);
    s_write(fd, "GET /now HTTP/1.1\r\nHost: x\r\n\r\n"); /* the connection is good for more */
    s_read(stage, fd, text, sizeof text, "{}");
    close(fd);
    /* a file that is not as long as was said: the client is not left waiting, and is not told that this was all */
    fd = s_connect(stage);
    s_write(fd, "GET /short HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(s_read_body(stage, fd, body, FILE_SAID), FILE_BYTES);
    close(fd);
    /* a client that goes in the middle */
    fd = s_connect(stage);
    s_write(fd, "GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(s_read_body(stage, fd, body, 4096), 4096);
    close(fd);
    while (s_descriptors() > before)
        s_turn(stage, -1);
    free(body);
}

static void test_limits(void **state)
{
    stage_t *stage = *state;
    char text[4096];
    int fd = s_connect(stage);
    s_write(fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n");
    char *body = tt_new0(65538);
    memset(body, 'x', 65537);
    for (size_t sent = 0; sent < 65537;) {
        const ssize_t n = send(fd, body + sent, 65537 - sent, MSG_DONTWAIT);
        sent += n > 0 ? (size_t)n : 0;
        s_turn(stage, -1);
    }
    free(body);
    s_read(stage, fd, text, sizeof text, "64 KiB");
    assert_non_null(strstr(text, "HTTP/1.1 413"));
    close(fd);
    fd = s_connect(stage);
    s_write(fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n");
    assert_int_equal(send(fd, "a\0b", 3, 0), 3);
    s_read(stage, fd, text, sizeof text, "not text");
    assert_non_null(strstr(text, "HTTP/1.1 400"));
    close(fd);
    assert_int_equal(stage->asked, 0);
}

static void test_health(void **state)
{
    stage_t *stage = *state;
    char text[2048];
    const int fd = s_connect(stage);
    s_write(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    s_read(stage, fd, text, sizeof text, "ok\n");
    s_write(fd, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    s_read(stage, fd, text, sizeof text, "Content-Length: 3");
    assert_int_equal(stage->asked, 0);
    s_write(fd, "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    while (stage->asked == 0)
        s_turn(stage, -1);
    close(fd);
}

/*  More clients than connections: all are answered in the end, for connections are not kept when many are open. */
static void test_many(void **state)
{
    stage_t *stage = *state;
    int fds[CLIENTS];
    char text[2048];
    for (size_t i = 0; i < CLIENTS; i++) {
        fds[i] = s_connect(stage);
        s_write(fds[i], "GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
        tt_server_serve(stage->server); /* or the queue of those to be accepted is full */
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        s_read(stage, fds[i], text, sizeof text, "{}");
        close(fds[i]);
    }
    assert_int_equal(stage->asked, CLIENTS);
}

/*  The client goes, then the server, with a question open. */
static void test_end_with_open_questions(void **state)
{
    stage_t *stage = *state;
    const int a = s_connect(stage), b = s_connect(stage);
    s_write(a, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    s_write(b, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    while (stage->asked < 2)
        s_turn(stage, -1);
    close(a);
    tt_server_serve(stage->server);
    close(b); /* the teardown stops the server */
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:1x", ":-1"};
    tt_server_t *server = NULL, *second = NULL;
    for (size_t i = 0; i < TT_COUNT(wrong); i++)
        assert_int_equal(s_start(&server, wrong[i], NULL), TT_INVALID);
    static const char *const right[] = {":0", "0.0.0.0:0", "localhost:0"};
    for (size_t i = 0; i < TT_COUNT(right); i++) {
        assert_ok(s_start(&server, right[i], NULL));
        assert_true(tt_server_port(server) > 0);
        tt_server_stop(&server);
    }
    assert_ok(s_start(&server, "127.0.0.1:0", NULL));
    char taken[32];
    snprintf(taken, sizeof taken, "127.0.0.1:%d", tt_server_port(server));
    assert_int_equal(s_start(&second, taken, NULL), TT_EXISTS);
    assert_null(second);
    tt_server_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_at_once, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_later, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_file, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_limits, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_health, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_many, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_end_with_open_questions, s_setup, s_teardown),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
