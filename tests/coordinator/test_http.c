/*  http: who may ask, what may be asked, and what a bad request is told; over real sockets. */
#include "coordinator/http.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "coordinator/files.h"
#include "common/http/token.h"
#include "tests/folder.h"
#include "tests/test.h"

typedef struct {
    char dir[FOLDER_MAX], token[TOKEN_SIZE];
    http_t *http;
    int port;
    tt_clock_t clock; /* stands: nobody is sent away for being slow, and who is answered had not to wait for that */
    int asked;        /* how often it came to the coordinator */
} place_t;

/* ---- a client -------------------------------------------------------------------------------------------------------- */

typedef struct {
    int port;
    const char *head, *body; /* of the request */
    size_t body_size;
    int code;
    char reply[4096];
    atomic_bool done;
} exchange_t;

static int s_connect(int port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 20};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 ? fd : -1;
}

static void s_send(int fd, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the reply tells why */
        data += sent;
        size -= (size_t)sent;
    }
}

static void *s_exchange(void *arg)
{
    exchange_t *x = arg;
    const int fd = s_connect(x->port);
    char head[1024];
    const int length = snprintf(
        head, sizeof head, "%s\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", x->head, x->body_size);
    s_send(fd, head, (size_t)length);
    s_send(fd, x->body, x->body_size);
    size_t used = 0;
    ssize_t got;
    while (used < sizeof x->reply - 1 && (got = recv(fd, x->reply + used, sizeof x->reply - 1 - used, 0)) > 0)
        used += (size_t)got;
    close(fd);
    x->reply[used] = '\0';
    if (sscanf(x->reply, "HTTP/1.%*d %d", &x->code) != 1)
        x->code = 0;
    x->done = true;
    return NULL;
}

/* ---- the coordinator's side -------------------------------------------------------------------------------------------------- */

static tt_status_t s_answer(void *ctx, const char *verb, const char *body, tt_buf_t *out)
{
    ((place_t *)ctx)->asked++;
    if (strcmp(verb, "scale") == 0 && strcmp(body, "{\"learner\": 2}") == 0)
        return tt_err(TT_UNSUPPORTED, "this run has no controller");
    if (strcmp(verb, "scale") == 0 && strcmp(body, "{\"collector\": 3}") != 0)
        return tt_err(TT_INVALID, "scale: not JSON (line 1: \"quoted\")");
    if (strcmp(verb, "stop") == 0)
        return tt_err(TT_STOPPED, "stop: the run is ending");
    return tt_buf_printf(out, "{\"verb\":\"%s\"}", verb);
}

/*  The token's file stands for the weights. */
static tt_status_t s_weights(void *ctx, const char *query, http_file_t *out)
{
    const place_t *place = ctx;
    char path[128];
    if (strcmp(query, "below=7") == 0)
        return tt_err(TT_NOT_FOUND, "no snapshot before update 7");
    snprintf(path, sizeof path, "%s/token", place->dir);
    *out = (http_file_t){.name = "00000007.safetensors", .fd = open(path, O_RDONLY | O_CLOEXEC), .size = 65};
    return TT_OK;
}

static void s_turn(place_t *place)
{
    const int64_t due = http_due_ms(place->http);
    struct pollfd wait = {.fd = http_fd(place->http), .events = POLLIN};
    if (poll(&wait, 1, due < 0 || due > 5 ? 5 : (int)due) > 0 || due == 0)
        http_serve(place->http);
}

/*  Send a request, serve until its reply is there; the status code. *asked: how often the loop was asked. */
static int s_request(place_t *place, const char *head, const char *body, size_t size, exchange_t *x, int *asked)
{
    *x = (exchange_t){.port = place->port, .head = head, .body = body, .body_size = size};
    place->asked = 0;
    pthread_t client;
    assert_int_equal(pthread_create(&client, NULL, s_exchange, x), 0);
    while (!x->done)
        s_turn(place);
    pthread_join(client, NULL);
    *asked = place->asked;
    return x->code;
}

static int s_code(place_t *place, const char *line, const char *token, const char *body, int *asked)
{
    exchange_t x;
    char head[512];
    snprintf(head, sizeof head, "%s%s%s", line, token ? "\r\nAuthorization: Bearer " : "", token ? token : "");
    return s_request(place, head, body, strlen(body), &x, asked);
}

static tt_status_t s_start(http_t **http, const char *address, place_t *place)
{
    const http_opts_t opts = {.address = address,
        .run_dir = place->dir,
        .answer = s_answer,
        .weights = s_weights,
        .ctx = place,
        .clock = &place->clock};
    return http_start(http, &opts);
}

static int s_setup(void **state)
{
    place_t *place = tt_new0(sizeof *place);
    place->clock = tt_clock_fake(1000000000);
    if (folder_make(place->dir, "http") != 0 || s_start(&place->http, "127.0.0.1:0", place) != TT_OK ||
        token_take(place->token, place->dir) != TT_OK)
        return -1;
    place->port = atoi(strrchr(http_url(place->http), ':') + 1);
    *state = place;
    return 0;
}

static int s_teardown(void **state)
{
    place_t *place = *state;
    http_stop(&place->http);
    const int code = folder_remove(place->dir);
    free(place);
    return code;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void test_who_has_the_token_may_ask(void **state)
{
    place_t *place = *state;
    exchange_t x;
    int asked;
    char head[512];
    snprintf(head, sizeof head, "GET /status HTTP/1.1\r\nAuthorization: Bearer %s", place->token);
    assert_int_equal(s_request(place, head, "", 0, &x, &asked), 200);
    assert_int_equal(asked, 1);
    assert_non_null(strstr(x.reply, "{\"verb\":\"status\"}"));
    assert_non_null(strstr(x.reply, "application/json"));
    snprintf(head, sizeof head, "GET /metrics HTTP/1.1\r\nAuthorization: Bearer %s", place->token);
    assert_int_equal(s_request(place, head, "", 0, &x, &asked), 200);
    assert_non_null(strstr(x.reply, "version=0.0.4"));
    snprintf(head, sizeof head, "GET /status HTTP/1.1\r\nauthorization: bearer %s", place->token);
    assert_int_equal(s_request(place, head, "", 0, &x, &asked), 200);
}

static void test_who_has_not_is_turned_away_unheard(void **state)
{
    place_t *place = *state;
    int asked;
    char wrong[TOKEN_SIZE];
    snprintf(wrong, sizeof wrong, "%s", place->token);
    wrong[5] = wrong[5] == 'a' ? 'b' : 'a';
    assert_int_equal(s_code(place, "GET /status HTTP/1.1", NULL, "", &asked), 401);
    assert_int_equal(asked, 0);
    assert_int_equal(s_code(place, "GET /status HTTP/1.1", wrong, "", &asked), 401);
    assert_int_equal(s_code(place, "GET /status HTTP/1.1", "", "", &asked), 401);
    assert_int_equal(s_code(place, "POST /stop HTTP/1.1", wrong, "{}", &asked), 401);
    assert_int_equal(s_code(place, "GET /nothing HTTP/1.1", NULL, "", &asked), 401);
    assert_int_equal(asked, 0);
    assert_int_equal(s_code(place, "GET /healthz HTTP/1.1", NULL, "", &asked), 200);
}

/*  The same head as GET's, and nothing behind it; the connection goes on being of use. */
static void test_head_is_get_without_a_body(void **state)
{
    place_t *place = *state;
    static const char *const paths[] = {"/healthz", "/status", "/metrics", "/weights"};
    for (size_t i = 0; i < TT_COUNT(paths); i++) {
        exchange_t get, head;
        int asked;
        char line[512];
        snprintf(line, sizeof line, "GET %s HTTP/1.1\r\nAuthorization: Bearer %s", paths[i], place->token);
        assert_int_equal(s_request(place, line, "", 0, &get, &asked), 200);
        snprintf(line, sizeof line, "HEAD %s HTTP/1.1\r\nAuthorization: Bearer %s", paths[i], place->token);
        assert_int_equal(s_request(place, line, "", 0, &head, &asked), 200);
        char *get_body = strstr(get.reply, "\r\n\r\n"), *head_body = strstr(head.reply, "\r\n\r\n");
        assert_true(get_body && head_body && strlen(get_body) > 4);
        assert_int_equal(strlen(head_body), 4);
        snprintf(line, sizeof line, "Content-Length: %zu\r\n", strlen(get_body) - 4);
        assert_non_null(strstr(head.reply, line));
    }
    exchange_t x;
    int asked;
    char line[512];
    snprintf(line, sizeof line, "HEAD /stop HTTP/1.1\r\nAuthorization: Bearer %s", place->token);
    assert_int_equal(s_request(place, line, "", 0, &x, &asked), 405);
    snprintf(line, sizeof line, "HEAD /status HTTP/1.1");
    assert_int_equal(s_request(place, line, "", 0, &x, &asked), 401);
    assert_int_equal(asked, 0);
}

static void test_bad_requests_are_told_what_is_wrong(void **state)
{
    place_t *place = *state;
    int asked;
    exchange_t x;
    char head[512];
    assert_int_equal(s_code(place, "POST /scale HTTP/1.1", place->token, "{\"collector\": 3}", &asked), 200);
    assert_int_equal(s_code(place, "GET /scale HTTP/1.1", place->token, "", &asked), 405);
    assert_int_equal(s_code(place, "POST /status HTTP/1.1", place->token, "{}", &asked), 405);
    assert_int_equal(s_code(place, "GET /nothing HTTP/1.1", place->token, "", &asked), 404);
    assert_int_equal(s_code(place, "POST /stop HTTP/1.1", place->token, "{}", &asked), 409);
    assert_int_equal(s_code(place, "POST /scale HTTP/1.1", place->token, "{\"learner\": 2}", &asked), 409);
    snprintf(head, sizeof head, "POST /scale HTTP/1.1\r\nAuthorization: Bearer %s", place->token);
    assert_int_equal(s_request(place, head, "{", 1, &x, &asked), 400);
    assert_non_null(strstr(x.reply, "{\"error\":\"scale: not JSON (line 1: \\\"quoted\\\")\"}"));
    assert_int_equal(s_request(place, head, "{\0}", 3, &x, &asked), 400);
    assert_int_equal(asked, 0);
}

static void test_weights_are_a_file(void **state)
{
    place_t *place = *state;
    exchange_t x;
    int asked;
    char head[512];
    assert_int_equal(s_code(place, "GET /weights HTTP/1.1", NULL, "", &asked), 401);
    assert_int_equal(s_code(place, "POST /weights HTTP/1.1", place->token, "", &asked), 405);
    snprintf(head, sizeof head, "GET /weights HTTP/1.1\r\nAuthorization: Bearer %s", place->token);
    assert_int_equal(s_request(place, head, "", 0, &x, &asked), 200);
    assert_non_null(strstr(x.reply, "Content-Length: 65\r\n"));
    assert_non_null(strstr(x.reply, "filename=\"00000007.safetensors\""));
    assert_non_null(strstr(strstr(x.reply, "\r\n\r\n"), place->token));
    snprintf(head, sizeof head, "GET /weights?below=7 HTTP/1.1\r\nAuthorization: Bearer %s", place->token);
    assert_int_equal(s_request(place, head, "", 0, &x, &asked), 404);
    assert_non_null(strstr(x.reply, "no snapshot before update 7"));
}

static void test_a_token_of_somebody_else(void **state)
{
    place_t *place = *state;
    http_t *second = NULL;
    char path[128], own[TOKEN_SIZE];
    static const char given[] = "0123456789abcdef-given";
    snprintf(path, sizeof path, "%s/given", place->dir);
    const http_opts_t opts = {.address = "127.0.0.1:0",
        .run_dir = place->dir,
        .token = path,
        .answer = s_answer,
        .weights = s_weights,
        .ctx = place,
        .clock = tt_clock_real()};
    assert_int_equal(http_start(&second, &opts), TT_NOT_FOUND); /* and none is made there */
    assert_ok(files_replace(place->dir, "given", "short\n", 0600));
    assert_int_equal(http_start(&second, &opts), TT_DATA);
    assert_ok(files_replace(place->dir, "given", given, 0644));
    assert_int_equal(http_start(&second, &opts), TT_DENIED);
    assert_ok(files_replace(place->dir, "given", given, 0600));
    http_stop(&place->http);
    snprintf(own, sizeof own, "%s", place->token);
    assert_ok(http_start(&place->http, &opts));
    place->port = atoi(strrchr(http_url(place->http), ':') + 1);
    int asked;
    assert_int_equal(s_code(place, "GET /status HTTP/1.1", own, "", &asked), 401);
    assert_int_equal(s_code(place, "GET /status HTTP/1.1", given, "", &asked), 200);
}

static void test_a_large_body_is_refused(void **state)
{
    place_t *place = *state;
    exchange_t x;
    int asked;
    char head[512], *body = tt_new0(1 << 20);
    memset(body, 'x', 1 << 20);
    snprintf(head, sizeof head, "POST /scale HTTP/1.1\r\nAuthorization: Bearer %s", place->token);
    assert_int_equal(s_request(place, head, body, 1 << 20, &x, &asked), 413);
    assert_int_equal(asked, 0);
    assert_int_equal(s_request(place, head, body, 65536, &x, &asked), 400); /* fits, and is not JSON */
    free(body);
}

/*  A stop leaves nothing that names the server. */
static void test_a_stop_takes_the_address_back(void **state)
{
    place_t *place = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/http.json", place->dir);
    assert_int_equal(access(path, F_OK), 0);
    http_stop(&place->http);
    assert_int_not_equal(access(path, F_OK), 0);
}

/*  The token is asked for before the body: the answer is there while a gigabyte is still to come. */
static void test_an_unauthorised_body_is_not_awaited(void **state)
{
    place_t *place = *state;
    const int fd = s_connect(place->port);
    char reply[1024] = "";
    static const char head[] = "POST /scale HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n{";
    s_send(fd, head, sizeof head - 1);
    while (recv(fd, reply, sizeof reply - 1, MSG_DONTWAIT) <= 0)
        s_turn(place);
    assert_int_equal(memcmp(reply, "HTTP/1.1 401", 12), 0);
    assert_int_equal(place->asked, 0);
    close(fd);
}

enum { SLOW = 200 };

/*  What a client may begin and never end: a head, a body with the token and one without, nothing, an answer. */
static void s_begin_and_stay(place_t *place, int fd, size_t i)
{
    char text[512];
    const char *what = i % 5 == 0   ? "GET /status HTTP/1.1\r\nHost: x\r\nX-Slow: "
                       : i % 5 == 1 ? "POST /scale HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
                       : i % 5 == 2 ? ""
                                    : "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    snprintf(text, sizeof text, "%s", what);
    if (i % 5 == 4)
        snprintf(text, sizeof text,
            "POST /scale HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 65536\r\n\r\n{",
            place->token);
    s_send(fd, text, strlen(text));
}

static void test_slow_clients_do_not_silence_it(void **state)
{
    place_t *place = *state;
    int fds[SLOW], asked;
    for (size_t i = 0; i < SLOW; i++) {
        fds[i] = s_connect(place->port);
        assert_true(fds[i] >= 0);
        s_begin_and_stay(place, fds[i], i);
        s_turn(place); /* or the queue of those to be accepted is full */
    }
    for (int again = 0; again < 5; again++) {
        assert_int_equal(s_code(place, "GET /healthz HTTP/1.1", NULL, "", &asked), 200);
        assert_int_equal(s_code(place, "GET /status HTTP/1.1", place->token, "", &asked), 200);
    }
    for (size_t i = 0; i < SLOW; i++)
        close(fds[i]);
}

static void test_a_port_in_use_and_a_bad_address(void **state)
{
    place_t *place = *state;
    http_t *second = NULL;
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", place->port);
    assert_int_equal(s_start(&second, address, place), TT_EXISTS);
    assert_non_null(strstr(tt_err_text(), address));
    assert_int_equal(s_start(&second, "127.0.0.1", place), TT_INVALID);
    assert_int_equal(s_start(&second, "127.0.0.1:99999", place), TT_INVALID);
    assert_int_equal(s_start(&second, "nowhere:80", place), TT_INVALID);
    assert_null(second);
}

static void test_the_token_is_private(void **state)
{
    place_t *place = *state;
    char path[128], again[TOKEN_SIZE];
    struct stat info;
    snprintf(path, sizeof path, "%s/token", place->dir);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_ok(token_take(again, place->dir));
    assert_string_equal(again, place->token);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(token_take(again, place->dir), TT_DENIED);
    assert_ok(files_replace(place->dir, "token", "short\n", 0600));
    assert_int_equal(token_take(again, place->dir), TT_DATA);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(token_take(again, place->dir), TT_DATA); /* and waits for nobody who would write it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_has_the_token_may_ask, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_who_has_not_is_turned_away_unheard, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_head_is_get_without_a_body, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_bad_requests_are_told_what_is_wrong, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_weights_are_a_file, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_token_of_somebody_else, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_large_body_is_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_stop_takes_the_address_back, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_an_unauthorised_body_is_not_awaited, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_slow_clients_do_not_silence_it, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_port_in_use_and_a_bad_address, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_the_token_is_private, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
