/*  Sockets against each other, and against peers that do not play by the rules. */
#include "tests/net/net_help.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct {
    char *dir, *endpoint;
    tt_sock_t *router, *dealer;
} fixture_t;

static tt_sock_t *s_sock(tt_sock_type_t type, const char *identity, const tt_keys_t *keys)
{
    tt_sock_t *sock = NULL;
    const tt_sock_opts_t opts = {.name = "test", .identity = identity, .keys = keys, .linger_ms = 0};
    assert_ok(tt_sock_new(&sock, type, &opts));
    return sock;
}

static int s_setup(void **state)
{
    fixture_t *f = tt_new0(sizeof *f);
    f->dir = help_mkdir();
    f->endpoint = tt_sprintf("ipc://%s/a", f->dir);
    f->router = s_sock(TT_ROUTER, NULL, NULL);
    f->dealer = s_sock(TT_DEALER, "collector/0/1", NULL);
    assert_ok(tt_sock_bind(f->router, f->endpoint, NULL, 0));
    assert_ok(tt_sock_connect(f->dealer, f->endpoint));
    *state = f;
    return 0;
}

static int s_teardown(void **state)
{
    fixture_t *f = *state;
    tt_sock_destroy(&f->dealer);
    tt_sock_destroy(&f->router);
    help_rmdir(f->dir);
    free(f->endpoint);
    free(f);
    return 0;
}

static void test_there_and_back(void **state)
{
    fixture_t *f = *state;
    tt_packet_t packet = {0};
    zmq_msg_t frame, kept;
    tt_frame_new(&frame, 100000);
    assert_int_equal((uintptr_t)zmq_msg_data(&frame) % 64, 0);
    memset(zmq_msg_data(&frame), 7, 100000);
    zmq_msg_init(&kept);
    zmq_msg_copy(&kept, &frame);
    const tt_msg_SEGMENT_t segment = TT_MSG(SEGMENT, .batch = 12, .steps = 3);
    assert_ok(tt_sock_send(f->dealer, NULL, &segment, &frame, 1));
    assert_int_equal(zmq_msg_size(&frame), 0); /* consumed */
    assert_int_equal(zmq_msg_size(&kept), 100000);
    assert_ok(help_recv(f->router, &packet));
    assert_string_equal(packet.peer, "collector/0/1");
    assert_int_equal(packet.msg.type, TT_MSG_SEGMENT);
    assert_int_equal(packet.msg.SEGMENT.batch, 12);
    assert_int_equal(packet.frame_count, 1);
    assert_int_equal(zmq_msg_size(&packet.frame[0]), 100000);
    assert_memory_equal(zmq_msg_data(&packet.frame[0]), zmq_msg_data(&kept), 100000);
    tt_frame_close(&kept);
    const tt_msg_ACK_t ack = TT_MSG(ACK, .below = 13);
    assert_ok(tt_sock_send(f->router, packet.peer, &ack, NULL, 0));
    assert_ok(help_recv(f->dealer, &packet));
    assert_int_equal(packet.msg.ACK.below, 13);
    assert_int_equal(packet.frame_count, 0);
    tt_packet_clear(&packet);
    tt_packet_clear(&packet);
    assert_int_equal(tt_sock_recv(f->dealer, &packet), TT_AGAIN);
    assert_false(tt_sock_hot(f->dealer));
}

/*  A frame around our memory is given back exactly once, when the last reference is gone. */
static pthread_mutex_t s_given_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t s_given_cond = PTHREAD_COND_INITIALIZER;
static int s_given;

static void s_on_given(void *memory, void *hint)
{
    pthread_mutex_lock(&s_given_mutex);
    assert_ptr_equal(memory, hint);
    s_given++;
    pthread_cond_signal(&s_given_cond);
    pthread_mutex_unlock(&s_given_mutex);
}

static void test_wrapped_frames_come_back(void **state)
{
    fixture_t *f = *state;
    static char memory[200000];
    tt_packet_t packet = {0};
    zmq_msg_t frame;
    for (int i = 0; i < 20; i++) {
        memset(memory, i, sizeof memory);
        tt_frame_wrap(&frame, memory, sizeof memory, s_on_given, memory);
        const tt_msg_GRAD_t grad = TT_MSG(GRAD, .step = (uint64_t)i);
        assert_ok(tt_sock_send(f->dealer, NULL, &grad, &frame, 1));
        assert_ok(help_recv(f->router, &packet));
        assert_int_equal(((char *)zmq_msg_data(&packet.frame[0]))[199999], i);
        pthread_mutex_lock(&s_given_mutex);
        while (s_given < i + 1)
            pthread_cond_wait(&s_given_cond, &s_given_mutex);
        assert_int_equal(s_given, i + 1);
        pthread_mutex_unlock(&s_given_mutex);
    }
    tt_packet_clear(&packet);
}

static void test_unknown_peer(void **state)
{
    fixture_t *f = *state;
    zmq_msg_t frame;
    tt_frame_new(&frame, 10);
    const tt_msg_SUM_t sum = TT_MSG(SUM, .step = 1);
    assert_int_equal(tt_sock_send(f->router, "learner/9/9", &sum, &frame, 1), TT_UNAVAILABLE);
    assert_int_equal(zmq_msg_size(&frame), 10); /* untouched */
    assert_non_null(strstr(tt_err_text(), "no peer learner/9/9"));
    tt_frame_close(&frame);
    char longest[80];
    memset(longest, 'x', sizeof longest);
    longest[79] = '\0';
    assert_int_equal(tt_sock_send(f->router, longest, &sum, NULL, 0), TT_INVALID);
}

static void test_nameless_peers_can_be_answered(void **state)
{
    fixture_t *f = *state;
    tt_packet_t packet = {0};
    tt_sock_t *nameless = s_sock(TT_DEALER, NULL, NULL);
    assert_ok(tt_sock_connect(nameless, f->endpoint));
    const tt_msg_REQUEST_t request = TT_MSG(REQUEST, .id = 5);
    assert_ok(tt_sock_send(nameless, NULL, &request, NULL, 0));
    assert_ok(help_recv(f->router, &packet));
    assert_int_equal(packet.peer[0], '#');
    const tt_msg_REPLY_t reply = TT_MSG(REPLY, .id = 5);
    assert_ok(tt_sock_send(f->router, packet.peer, &reply, NULL, 0));
    assert_ok(help_recv(nameless, &packet));
    assert_int_equal(packet.msg.REPLY.id, 5);
    tt_packet_clear(&packet);
    tt_sock_destroy(&nameless);
}

static void test_high_water_mark(void **state)
{
    fixture_t *f = *state;
    tt_sock_t *narrow = NULL;
    const tt_sock_opts_t opts = {.name = "narrow", .hwm = 4};
    assert_ok(tt_sock_new(&narrow, TT_DEALER, &opts));
    char *nobody = tt_sprintf("ipc://%s/nobody", f->dir);
    assert_ok(tt_sock_connect(narrow, nobody));
    const tt_msg_ACK_t ack = TT_MSG(ACK, .below = 1);
    for (int i = 0; i < 4; i++)
        assert_ok(tt_sock_send(narrow, NULL, &ack, NULL, 0));
    assert_int_equal(tt_sock_send(narrow, NULL, &ack, NULL, 0), TT_AGAIN);
    tt_sock_destroy(&narrow);
    free(nobody);
}

/*  A ROUTER's peer that does not read: its pipe fills up, the others' do not. When it reads on, it goes on. */
static void test_a_slow_peer_is_its_own_problem(void **state)
{
    fixture_t *f = *state;
    enum { FRAME = 1 << 20 };
    tt_packet_t packet = {0};
    const tt_msg_ACK_t hello = TT_MSG(ACK, .below = 1);
    tt_sock_t *slow = NULL, *router = NULL, *quick = s_sock(TT_DEALER, "quick", NULL);
    const tt_sock_opts_t opts = {.name = "slow", .identity = "slow", .hwm = 2}, narrow = {.name = "narrow", .hwm = 2};
    char *endpoint = tt_sprintf("ipc://%s/narrow", f->dir);
    assert_ok(tt_sock_new(&router, TT_ROUTER, &narrow));
    assert_ok(tt_sock_bind(router, endpoint, NULL, 0));
    assert_ok(tt_sock_new(&slow, TT_DEALER, &opts));
    assert_ok(tt_sock_connect(slow, endpoint));
    assert_ok(tt_sock_connect(quick, endpoint));
    assert_ok(tt_sock_send(slow, NULL, &hello, NULL, 0));
    assert_ok(tt_sock_send(quick, NULL, &hello, NULL, 0));
    assert_ok(help_recv(router, &packet));
    assert_ok(help_recv(router, &packet));
    uint64_t sent = 0;
    int refusals = 0;
    while (refusals < 50) { /* the sockets' buffers and both pipes are full: it stays so */
        zmq_msg_t frame;
        tt_frame_new(&frame, FRAME);
        memset(zmq_msg_data(&frame), (int)sent, FRAME);
        const tt_msg_GRAD_t grad = TT_MSG(GRAD, .step = sent + 1);
        const tt_status_t status = tt_sock_send(router, "slow", &grad, &frame, 1);
        if (status == TT_OK) {
            sent++;
            refusals = 0;
            continue;
        }
        assert_int_equal(status, TT_AGAIN);
        assert_int_equal(zmq_msg_size(&frame), FRAME); /* untouched */
        tt_frame_close(&frame);
        refusals++;
        poll(NULL, 0, 1);
    }
    assert_true(sent < 50);
    assert_ok(tt_sock_send(router, "quick", &hello, NULL, 0));
    assert_ok(help_recv(quick, &packet));
    for (uint64_t step = 1; step <= sent; step++) {
        assert_ok(help_recv(slow, &packet));
        assert_int_equal(packet.msg.GRAD.step, step);
        assert_int_equal(((uint8_t *)zmq_msg_data(&packet.frame[0]))[FRAME - 1], step - 1);
    }
    assert_ok(help_send(router, "slow", &hello));
    assert_ok(help_recv(slow, &packet));
    tt_packet_clear(&packet);
    tt_sock_destroy(&slow);
    tt_sock_destroy(&quick);
    tt_sock_destroy(&router);
    free(endpoint);
}

/*  A peer that is gone is said to be, not silently ignored; before it is known what waits for it may be full. */
static void test_a_peer_that_left(void **state)
{
    fixture_t *f = *state;
    tt_packet_t packet = {0};
    const tt_msg_ACK_t ack = TT_MSG(ACK, .below = 1);
    assert_ok(tt_sock_send(f->dealer, NULL, &ack, NULL, 0));
    assert_ok(help_recv(f->router, &packet));
    tt_packet_clear(&packet);
    tt_sock_destroy(&f->dealer);
    const int64_t deadline = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    tt_status_t status;
    while ((status = tt_sock_send(f->router, "collector/0/1", &ack, NULL, 0)) == TT_OK || status == TT_AGAIN)
        assert_true(tt_now_ms(tt_clock_real()) < deadline && poll(NULL, 0, 1) == 0);
    assert_int_equal(status, TT_UNAVAILABLE);
}

static void test_frames_are_limited(void **state)
{
    fixture_t *f = *state;
    zmq_msg_t frames[3];
    for (int i = 0; i < 3; i++)
        tt_frame_new(&frames[i], 10);
    const tt_msg_HELLO_t hello = TT_MSG(HELLO, .wire = 1);
    assert_int_equal(tt_sock_send(f->dealer, NULL, &hello, frames, 1), TT_INVALID);
    const tt_msg_WEIGHTS_t weights = TT_MSG(WEIGHTS, .version = 1);
    assert_int_equal(tt_sock_send(f->dealer, NULL, &weights, frames, 3), TT_INVALID);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(zmq_msg_size(&frames[i]), 10);
        tt_frame_close(&frames[i]);
    }
    tt_frame_new(&frames[0], TT_SOCK_BYTES + 1);
    const tt_msg_GRAD_t grad = TT_MSG(GRAD, .step = 1);
    assert_int_equal(tt_sock_send(f->dealer, NULL, &grad, frames, 1), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "8388609 bytes, 8388608 at most"));
    tt_frame_close(&frames[0]);
}

/*  A peer of raw ZeroMQ parts: whatever breaks our rules is dropped and counted, and the next message is read. */
static void test_rule_breakers(void **state)
{
    fixture_t *f = *state;
    tt_packet_t packet = {0};
    void *context = zmq_ctx_new(), *raw = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(raw, ZMQ_ROUTING_ID, "rude", 4);
    assert_int_equal(zmq_connect(raw, f->endpoint), 0);
    zmq_send(raw, "garbage", 7, 0);
    zmq_send(raw, "", 0, 0);
    zmq_send(raw, "garbage", 7, ZMQ_SNDMORE);
    zmq_send(raw, "and", 3, ZMQ_SNDMORE);
    zmq_send(raw, "more", 4, 0);
    zmq_send(raw, "\x81\xa1m\x17", 4, ZMQ_SNDMORE); /* ACK takes no frame */
    zmq_send(raw, "x", 1, 0);
    zmq_send(raw, "\x81\xa1m\x18", 4, ZMQ_SNDMORE); /* WEIGHTS takes two */
    zmq_send(raw, "x", 1, ZMQ_SNDMORE);
    zmq_send(raw, "x", 1, ZMQ_SNDMORE);
    zmq_send(raw, "x", 1, 0);
    zmq_send(raw, "\x81\xa1m\x17", 4, 0);
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(help_recv(f->router, &packet), TT_PROTOCOL);
        assert_non_null(strstr(tt_err_text(), "from rude"));
        assert_int_equal(tt_sock_violations(f->router), i);
    }
    assert_ok(help_recv(f->router, &packet));
    assert_int_equal(packet.msg.type, TT_MSG_ACK);
    tt_packet_clear(&packet);
    const int linger = 0;
    zmq_setsockopt(raw, ZMQ_LINGER, &linger, sizeof linger);
    zmq_close(raw);
    raw = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(raw, ZMQ_ROUTING_ID, "a b\n", 4);
    assert_int_equal(zmq_connect(raw, f->endpoint), 0);
    zmq_send(raw, "\x81\xa1m\x17", 4, 0);
    assert_int_equal(help_recv(f->router, &packet), TT_PROTOCOL);
    assert_non_null(strstr(tt_err_text(), "visible characters"));
    zmq_setsockopt(raw, ZMQ_LINGER, &linger, sizeof linger);
    zmq_close(raw);
    zmq_ctx_term(context);
}

/*  Bytes that are not ZeroMQ, and a message over the limit: that peer is cut off, the others are served. */
static void test_garbage_on_the_socket(void **state)
{
    fixture_t *f = *state;
    tt_packet_t packet = {0};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", f->endpoint + 6);
    char garbage[4096];
    memset(garbage, 'G', sizeof garbage); /* taken for ZMTP 1.0 by libzmq, and for messages without sense by us */
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0), fd2 = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(fd, garbage, sizeof garbage, MSG_NOSIGNAL), sizeof garbage);
    memcpy(garbage, "\xff\0\0\0\0\0\0\0\1\x7f\3\0GARBAGE", 19); /* ZMTP 3 with a mechanism that there is not */
    assert_int_equal(connect(fd2, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(fd2, garbage, 64, MSG_NOSIGNAL), 64);
    char answer[256];
    while (recv(fd2, answer, sizeof answer, 0) > 0) /* until we are cut off */
        ;
    close(fd2);

    void *context = zmq_ctx_new(), *raw = zmq_socket(context, ZMQ_DEALER);
    void *events = zmq_socket(context, ZMQ_PAIR);
    assert_int_equal(zmq_socket_monitor(raw, "inproc://events", ZMQ_EVENT_DISCONNECTED), 0);
    assert_int_equal(zmq_connect(events, "inproc://events"), 0);
    zmq_setsockopt(raw, ZMQ_ROUTING_ID, "big", 3);
    assert_int_equal(zmq_connect(raw, f->endpoint), 0);
    char *big = tt_new0(TT_SOCK_BYTES + 1);
    zmq_send(raw, "\x81\xa1m\x1e", 4, ZMQ_SNDMORE);
    zmq_send(raw, big, TT_SOCK_BYTES + 1, 0);
    free(big);
    const int patience = PATIENCE_MS, linger = 0;
    zmq_setsockopt(events, ZMQ_RCVTIMEO, &patience, sizeof patience);
    char event[16];
    assert_true(zmq_recv(events, event, sizeof event, 0) > 0); /* disconnected */
    zmq_setsockopt(raw, ZMQ_LINGER, &linger, sizeof linger);
    zmq_close(events);
    zmq_close(raw);
    zmq_ctx_term(context);

    const tt_msg_ACK_t ack = TT_MSG(ACK, .below = 4);
    assert_ok(tt_sock_send(f->dealer, NULL, &ack, NULL, 0));
    tt_status_t status;
    while ((status = help_recv(f->router, &packet)) == TT_PROTOCOL) /* the first one's */
        ;
    close(fd);
    assert_ok(status);
    assert_string_equal(packet.peer, "collector/0/1");
    tt_packet_clear(&packet);
}

/*  A ROUTER that goes and comes back on its endpoint: the DEALER finds it again by itself. */
static void test_router_restarts(void **state)
{
    fixture_t *f = *state;
    tt_packet_t packet = {0};
    for (uint64_t i = 1; i <= 3; i++) {
        const tt_msg_ACK_t ack = TT_MSG(ACK, .below = i);
        assert_ok(tt_sock_send(f->dealer, NULL, &ack, NULL, 0));
        assert_ok(help_recv(f->router, &packet));
        assert_int_equal(packet.msg.ACK.below, i);
        tt_sock_destroy(&f->router);
        f->router = s_sock(TT_ROUTER, NULL, NULL);
        help_bind_again(f->router, f->endpoint);
        assert_ok(help_send(f->router, "collector/0/1", &ack)); /* it has come back, without a word */
        assert_ok(help_recv(f->dealer, &packet));
    }
    tt_packet_clear(&packet);
}

/*  A process that was started again under its old name takes it over at once. */
static void test_handover(void **state)
{
    fixture_t *f = *state;
    tt_packet_t packet = {0};
    const tt_msg_ACK_t ack = TT_MSG(ACK, .below = 1);
    assert_ok(tt_sock_send(f->dealer, NULL, &ack, NULL, 0));
    assert_ok(help_recv(f->router, &packet));
    tt_sock_t *twin = s_sock(TT_DEALER, "collector/0/1", NULL);
    assert_ok(tt_sock_connect(twin, f->endpoint));
    assert_ok(tt_sock_send(twin, NULL, &ack, NULL, 0));
    assert_ok(help_recv(f->router, &packet));
    assert_ok(tt_sock_send(f->router, "collector/0/1", &ack, NULL, 0));
    assert_ok(help_recv(twin, &packet));
    tt_packet_clear(&packet);
    tt_sock_destroy(&twin);
}

/*  A version with a frame that says which. */
static void s_publish(tt_sock_t *pub, uint64_t version)
{
    zmq_msg_t frames[2];
    tt_frame_new(&frames[0], 64);
    tt_frame_new(&frames[1], 0);
    memset(zmq_msg_data(&frames[0]), (int)version, 64);
    const tt_msg_WEIGHTS_t weights = TT_MSG(WEIGHTS, .version = version);
    assert_ok(tt_sock_send(pub, NULL, &weights, frames, 2));
}

/*  Whoever reads each version before the next is published misses none, however fast they come and low the mark is. */
static void test_no_version_is_lost_in_lock_step(void **state)
{
    fixture_t *f = *state;
    enum { VERSIONS = 2000 };
    tt_packet_t packet = {0};
    char *endpoint = tt_sprintf("ipc://%s/weights", f->dir);
    tt_sock_t *pub = NULL, *sub = NULL;
    const tt_sock_opts_t opts = {.name = "narrow", .hwm = 4};
    assert_ok(tt_sock_new(&pub, TT_PUB, &opts));
    assert_ok(tt_sock_new(&sub, TT_SUB, &opts));
    assert_ok(tt_sock_bind(pub, endpoint, NULL, 0));
    assert_ok(tt_sock_connect(sub, endpoint));
    uint64_t version = 0, seen = 0;
    const int64_t deadline = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    do { /* until it has subscribed, and has read all */
        assert_true(tt_now_ms(tt_clock_real()) < deadline);
        s_publish(pub, ++version);
        poll(NULL, 0, 1);
        while (tt_sock_recv(sub, &packet) == TT_OK)
            seen = packet.msg.WEIGHTS.version;
    } while (seen < version);
    for (const uint64_t end = version + VERSIONS; version < end;) {
        s_publish(pub, ++version);
        assert_ok(help_recv(sub, &packet));
        assert_int_equal(packet.msg.WEIGHTS.version, version);
    }
    tt_packet_clear(&packet);
    tt_sock_destroy(&sub);
    tt_sock_destroy(&pub);
    free(endpoint);
}

static void test_publish_and_subscribe(void **state)
{
    fixture_t *f = *state;
    tt_packet_t packet = {0};
    char *endpoint = tt_sprintf("ipc://%s/weights", f->dir);
    tt_sock_t *pub = s_sock(TT_PUB, NULL, NULL), *sub = s_sock(TT_SUB, NULL, NULL);
    assert_ok(tt_sock_bind(pub, endpoint, NULL, 0));
    assert_ok(tt_sock_connect(sub, endpoint));
    assert_ok(tt_sock_connect(sub, endpoint)); /* twice is once */
    tt_status_t status = TT_AGAIN;
    uint64_t version = 0;
    for (int tries = 0; status == TT_AGAIN && tries < PATIENCE_MS;
         tries++) { /* what comes before it has subscribed is lost */
        s_publish(pub, ++version);
        poll(NULL, 0, 1);
        status = tt_sock_recv(sub, &packet);
    }
    assert_int_equal(status, TT_OK);
    assert_int_equal(packet.frame_count, 2);
    const uint64_t first = packet.msg.WEIGHTS.version;
    while (packet.msg.WEIGHTS.version < version) {
        const uint64_t before = packet.msg.WEIGHTS.version;
        assert_ok(help_recv(sub, &packet));
        assert_int_equal(packet.msg.WEIGHTS.version, before + 1); /* each once: one subscription */
    }
    assert_true(first >= 1);
    assert_ok(tt_sock_disconnect(sub, endpoint));
    assert_int_equal(tt_sock_disconnect(sub, endpoint), TT_NOT_FOUND);
    tt_packet_clear(&packet);
    tt_sock_destroy(&sub);
    tt_sock_destroy(&pub);
    free(endpoint);
}

static void test_bad_endpoints(void **state)
{
    fixture_t *f = *state;
    tt_sock_t *sock = s_sock(TT_ROUTER, NULL, NULL);
    char path[300] = "ipc:///tmp/", actual[256];
    memset(path + 11, 'x', 200);
    assert_int_equal(tt_sock_bind(sock, path, NULL, 0), TT_INVALID);
    assert_int_equal(tt_sock_bind(sock, "ipc://", NULL, 0), TT_INVALID);
    assert_int_equal(tt_sock_bind(sock, "inproc://x", NULL, 0), TT_INVALID);
    assert_int_equal(tt_sock_bind(sock, "tcp://127.0.0.1", NULL, 0), TT_INVALID);
    assert_int_equal(tt_sock_bind(sock, "tcp://127.0.0.1:99999", NULL, 0), TT_INVALID);
    assert_int_equal(tt_sock_bind(sock, "tcp://*:*", NULL, 0), TT_DENIED);
    assert_int_equal(tt_sock_bind(sock, "tcp://0.0.0.0:0", NULL, 0), TT_DENIED);
    assert_int_equal(tt_sock_connect(sock, "tcp://192.0.2.1:1"), TT_DENIED);
    assert_int_equal(tt_sock_bind(sock, "ipc:///nonexistent/x/y", NULL, 0), TT_INVALID);
    assert_int_equal(tt_sock_bind(sock, f->endpoint, NULL, 0), TT_EXISTS); /* alive */
    assert_ok(tt_sock_bind(sock, "tcp://127.0.0.1:0", actual, sizeof actual));
    assert_null(strstr(actual, ":0"));
    tt_sock_t *second = s_sock(TT_ROUTER, NULL, NULL);
    assert_int_equal(tt_sock_bind(second, actual, NULL, 0), TT_EXISTS);
    tt_sock_destroy(&second);
    tt_sock_destroy(&sock);
    const tt_sock_opts_t names[] = {
        {.name = "x", .identity = ""}, {.name = "x", .identity = "#1"}, {.name = "x", .identity = path}};
    for (size_t i = 0; i < TT_COUNT(names); i++)
        assert_int_equal(tt_sock_new(&sock, TT_DEALER, &names[i]), TT_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_there_and_back, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_wrapped_frames_come_back, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_unknown_peer, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_nameless_peers_can_be_answered, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_high_water_mark, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_peer_is_its_own_problem, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_peer_that_left, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_frames_are_limited, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_rule_breakers, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_garbage_on_the_socket, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_router_restarts, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_handover, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_no_version_is_lost_in_lock_step, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_publish_and_subscribe, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_bad_endpoints, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
