/*  The loop: sockets, descriptors and timers, and handlers that change what it serves. */
#include "tests/net/net_help.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { PEERS = 3 };

typedef struct {
    char *dir, *endpoint;
    tt_clock_t clock;
    tt_loop_t *loop;
    tt_sock_t *router, *dealers[PEERS];
    int packets, fds, timers, limit, id;
    int from[10]; /* by the digit in their name */
    tt_status_t answer;
    _Atomic bool waited;
} fixture_t;

static int s_setup(void **state)
{
    fixture_t *f = tt_new0(sizeof *f);
    const tt_sock_opts_t opts = {.name = "router", .hwm = 5000};
    f->dir = help_mkdir();
    f->endpoint = tt_sprintf("ipc://%s/a", f->dir);
    f->clock = tt_clock_fake(1000);
    assert_ok(tt_loop_new(&f->loop, &f->clock));
    assert_ok(tt_sock_new(&f->router, TT_ROUTER, &opts));
    assert_ok(tt_sock_bind(f->router, f->endpoint, NULL, 0));
    for (int i = 0; i < PEERS; i++) {
        char name[8] = {'p', (char)('0' + i), 0};
        const tt_sock_opts_t peer = {.name = "dealer", .identity = name, .hwm = 5000};
        assert_ok(tt_sock_new(&f->dealers[i], TT_DEALER, &peer));
        assert_ok(tt_sock_connect(f->dealers[i], f->endpoint));
    }
    *state = f;
    return 0;
}

static int s_teardown(void **state)
{
    fixture_t *f = *state;
    tt_loop_destroy(&f->loop);
    tt_sock_destroy(&f->router);
    for (int i = 0; i < PEERS; i++)
        tt_sock_destroy(&f->dealers[i]);
    help_rmdir(f->dir);
    free(f->endpoint);
    free(f);
    return 0;
}

static void s_send(fixture_t *f, int peer, int count)
{
    for (int i = 0; i < count; i++) {
        const tt_msg_ACK_t ack = TT_MSG(ACK, .below = (uint64_t)i + 1);
        assert_ok(tt_sock_send(f->dealers[peer], NULL, &ack, NULL, 0));
    }
}

/*  Poll until `count` reaches `until`. */
static void s_poll_until(fixture_t *f, const int *count, int until)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    while (*count < until && tt_now_ms(tt_clock_real()) < deadline) {
        const tt_status_t status = tt_loop_poll(f->loop, 100);
        assert_true(status == TT_OK || status == TT_AGAIN);
    }
    assert_int_equal(*count, until);
}

static tt_status_t s_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    fixture_t *f = ctx;
    assert_ptr_equal(sock, f->router);
    f->packets++;
    f->from[packet->peer[1] - '0']++;
    return f->answer;
}

static void test_all_packets_come(void **state)
{
    fixture_t *f = *state;
    tt_loop_sock(f->loop, f->router, s_on_packet, f);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN);
    for (int i = 0; i < PEERS; i++)
        s_send(f, i, 1500);
    s_poll_until(f, &f->packets, 4500);
    for (int i = 0; i < PEERS; i++)
        assert_int_equal(f->from[i], 1500);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN);
}

/*  Messages that came while a send on the same socket took the news of them are not forgotten. */
static tt_status_t s_on_echo(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    fixture_t *f = ctx;
    f->packets++;
    const tt_msg_ACK_t ack = TT_MSG(ACK, .below = 1);
    return tt_sock_send(sock, packet->peer, &ack, NULL, 0);
}

static void test_echoes_do_not_get_stuck(void **state)
{
    fixture_t *f = *state;
    tt_packet_t packet = {0};
    tt_loop_sock(f->loop, f->router, s_on_echo, f);
    for (int round = 1; round <= 500; round++) {
        for (int i = 0; i < PEERS; i++)
            s_send(f, i, 1);
        s_poll_until(f, &f->packets, PEERS * round);
    }
    for (int i = 0; i < PEERS; i++)
        for (int k = 0; k < 500; k++)
            assert_ok(help_recv(f->dealers[i], &packet));
    tt_packet_clear(&packet);
}

static tt_status_t s_on_fd(void *ctx, int fd)
{
    fixture_t *f = ctx;
    uint64_t count;
    assert_int_equal(read(fd, &count, sizeof count), sizeof count);
    f->fds++;
    return TT_OK;
}

/*  A socket that is never empty does not keep a descriptor or a timer from being served. */
static tt_status_t s_on_flood(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    fixture_t *f = ctx;
    (void)sock;
    (void)packet;
    f->packets++;
    const tt_msg_ACK_t ack = TT_MSG(ACK, .below = 1);
    return tt_sock_send(f->dealers[0], NULL, &ack, NULL, 0);
}

static tt_status_t s_on_timer(void *ctx)
{
    fixture_t *f = ctx;
    f->timers++;
    return TT_OK;
}

static void test_a_flood_is_fair(void **state)
{
    fixture_t *f = *state;
    const int fd = eventfd(0, EFD_NONBLOCK);
    const uint64_t one = 1;
    tt_loop_sock(f->loop, f->router, s_on_flood, f);
    tt_loop_fd(f->loop, fd, s_on_fd, f);
    tt_loop_timer(f->loop, 0, 1, s_on_timer, f);
    s_send(f, 0, 200);
    while (f->packets == 0)
        assert_int_not_equal(tt_loop_poll(f->loop, 100), TT_OS);
    f->timers = 0;
    for (int i = 1; i <= 5; i++) {
        const int before = f->packets;
        assert_int_equal(write(fd, &one, sizeof one), sizeof one);
        tt_clock_turn(&f->clock, 1000000);
        s_poll_until(f, &f->fds, i);
        s_poll_until(f, &f->timers, i);
        while (f->packets == before)
            assert_int_not_equal(tt_loop_poll(f->loop, 100), TT_OS);
    }
    close(fd);
}

static void test_timers_follow_the_clock(void **state)
{
    fixture_t *f = *state;
    tt_loop_timer(f->loop, 10, 0, s_on_timer, f);
    const int every = tt_loop_timer(f->loop, 20, 5, s_on_timer, f);
    tt_clock_turn(&f->clock, 9999999);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN);
    tt_clock_turn(&f->clock, 1);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_OK);
    assert_int_equal(f->timers, 1);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN); /* once only */
    tt_clock_turn(&f->clock, 10000000);
    assert_int_equal(tt_loop_poll(f->loop, 1000), TT_OK);
    assert_int_equal(f->timers, 2);
    tt_clock_turn(&f->clock, 5000000);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_OK);
    assert_int_equal(f->timers, 3);
    tt_clock_turn(&f->clock, 500000000); /* a hundred periods: one call, and then the next period */
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_OK);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN);
    assert_int_equal(f->timers, 4);
    tt_loop_forget_timer(f->loop, every);
    tt_clock_turn(&f->clock, 5000000);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN);
    assert_int_equal(f->timers, 4);
}

static void test_a_timer_at_a_time(void **state)
{
    fixture_t *f = *state;
    const int64_t now = tt_now_ns(&f->clock);
    tt_loop_timer_at(f->loop, now + 5, s_on_timer, f);
    tt_loop_timer_at(f->loop, now - 5, s_on_timer, f); /* at once */
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_OK);
    assert_int_equal(f->timers, 1);
    tt_clock_turn(&f->clock, 4);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN);
    tt_clock_turn(&f->clock, 1);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_OK);
    assert_int_equal(f->timers, 2);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN); /* once only */
}

/*  With the real clock a timer ends a long wait. */
static void test_a_timer_ends_the_wait(void **state)
{
    fixture_t *f = *state;
    tt_loop_t *loop;
    assert_ok(tt_loop_new(&loop, NULL));
    const int64_t start = tt_now_ms(tt_clock_real());
    tt_loop_timer(loop, 20, 0, s_on_timer, f);
    assert_int_equal(tt_loop_poll(loop, PATIENCE_MS), TT_OK);
    assert_int_equal(f->timers, 1);
    assert_true(tt_now_ms(tt_clock_real()) - start >= 20);
    assert_int_equal(tt_loop_poll(loop, 10), TT_AGAIN);
    assert_true(tt_now_ms(tt_clock_real()) - start >= 30);
    tt_loop_destroy(&loop);
}

/*  Again and again: the first time may be before the wait has begun. */
static void *s_turn_the_hands(void *ctx)
{
    fixture_t *f = ctx;
    for (; !f->waited; poll(NULL, 0, 1))
        tt_clock_turn(&f->clock, (int64_t)PATIENCE_MS * 1000000);
    return NULL;
}

/*  Nothing to serve, nothing set: who waits until its own clock shows a time waits no longer than that. */
static void test_a_turned_clock_ends_the_wait(void **state)
{
    fixture_t *f = *state;
    pthread_t thread;
    const int64_t start = tt_now_ms(tt_clock_real());
    assert_int_equal(pthread_create(&thread, NULL, s_turn_the_hands, f), 0);
    const tt_status_t status = tt_loop_poll(f->loop, PATIENCE_MS);
    f->waited = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, TT_AGAIN);
    assert_int_equal(tt_loop_poll(f->loop, 1), TT_AGAIN); /* it stands: the real one ends that */
    assert_true(tt_now_ms(tt_clock_real()) - start < PATIENCE_MS);
}

static void test_a_handlers_status_comes_out(void **state)
{
    fixture_t *f = *state;
    tt_loop_sock(f->loop, f->router, s_on_packet, f);
    f->answer = TT_STOPPED;
    s_send(f, 0, 2);
    tt_status_t status;
    while ((status = tt_loop_poll(f->loop, 100)) == TT_AGAIN)
        ;
    assert_int_equal(status, TT_STOPPED);
    assert_int_equal(f->packets, 1);
    f->answer = TT_OK;
    s_poll_until(f, &f->packets, 2); /* the other one is not lost */
}

/*  Handlers may forget what is being served, themselves included, and destroy it. */
static tt_status_t s_on_packet_forget(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    fixture_t *f = ctx;
    (void)packet;
    f->packets++;
    tt_loop_forget_sock(f->loop, sock);
    tt_sock_destroy(&f->router);
    return TT_OK;
}

static tt_status_t s_on_timer_forget(void *ctx)
{
    fixture_t *f = ctx;
    tt_loop_forget_timer(f->loop, f->id);
    return s_on_timer(ctx);
}

static void test_handlers_may_forget(void **state)
{
    fixture_t *f = *state;
    f->id = tt_loop_timer(f->loop, 0, 1, s_on_timer_forget, f);
    s_poll_until(f, &f->timers, 1);
    tt_clock_turn(&f->clock, 1000000000);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN); /* a due timer, forgotten */
    tt_loop_sock(f->loop, f->router, s_on_packet_forget, f);
    s_send(f, 0, 5);
    s_poll_until(f, &f->packets, 1);
    assert_null(f->router);
    assert_int_equal(tt_loop_poll(f->loop, 0), TT_AGAIN);
}

/*  Broken messages are dropped, the good ones behind them come. */
static void test_violations_do_not_end_it(void **state)
{
    fixture_t *f = *state;
    void *context = zmq_ctx_new(), *raw = zmq_socket(context, ZMQ_DEALER);
    const int linger = 0;
    zmq_setsockopt(raw, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(raw, ZMQ_ROUTING_ID, "p9", 2);
    assert_int_equal(zmq_connect(raw, f->endpoint), 0);
    for (int i = 0; i < 10; i++)
        zmq_send(raw, "rubbish", 7, 0);
    zmq_send(raw, "\x81\xa1m\x17", 4, 0);
    tt_loop_sock(f->loop, f->router, s_on_packet, f);
    s_poll_until(f, &f->packets, 1);
    assert_int_equal(tt_sock_violations(f->router), 10);
    zmq_close(raw);
    zmq_ctx_term(context);
}

/*  A signal ends the wait, so that its handler's flag is seen. */
static void s_on_alarm(int number)
{
    (void)number;
}

static void test_a_signal_ends_the_wait(void **state)
{
    fixture_t *f = *state;
    const struct sigaction action = {.sa_handler = s_on_alarm};
    const struct itimerval soon = {.it_interval.tv_usec = 5000, .it_value.tv_usec = 5000}, never = {0};
    tt_loop_sock(f->loop, f->router, s_on_packet, f);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    const int64_t start = tt_now_ms(tt_clock_real());
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    assert_int_equal(tt_loop_poll(f->loop, PATIENCE_MS), TT_AGAIN);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_true(tt_now_ms(tt_clock_real()) - start < PATIENCE_MS);
}

/*  A child of a process with sockets makes a context of its own. */
static void test_a_forked_child_has_its_own_context(void **state)
{
#ifdef __SANITIZE_ADDRESS__
    skip(); /* gcc's AddressSanitizer does not unlock its allocator in the child of a process with threads */
#endif
    fixture_t *f = *state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tt_sock_t *sock = NULL;
        const tt_msg_ACK_t ack = TT_MSG(ACK, .below = 3);
        const tt_sock_opts_t opts = {.name = "child", .identity = "p5", .linger_ms = PATIENCE_MS};
        bool ok = tt_sock_new(&sock, TT_DEALER, &opts) == TT_OK && tt_sock_connect(sock, f->endpoint) == TT_OK;
        ok = ok && tt_sock_send(sock, NULL, &ack, NULL, 0) == TT_OK;
        tt_sock_destroy(&sock); /* waits until it is sent */
        _exit(ok ? 0 : 1);
    }
    tt_loop_sock(f->loop, f->router, s_on_packet, f);
    s_poll_until(f, &f->packets, 1);
    assert_int_equal(f->from[5], 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_packets_come, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_echoes_do_not_get_stuck, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_flood_is_fair, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_timers_follow_the_clock, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_timer_at_a_time, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_timer_ends_the_wait, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_turned_clock_ends_the_wait, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_handlers_status_comes_out, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_handlers_may_forget, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_violations_do_not_end_it, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_signal_ends_the_wait, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_forked_child_has_its_own_context, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
