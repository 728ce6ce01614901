/*  CURVE: who holds the job's key gets in on tcp, and nobody else. */
#include "tests/net/net_help.h"

static tt_sock_t *s_sock(tt_sock_type_t type, const char *identity, const tt_keys_t *keys)
{
    tt_sock_t *sock = NULL;
    const tt_sock_opts_t opts = {.name = "test", .identity = identity, .keys = keys, .linger_ms = 0};
    assert_ok(tt_sock_new(&sock, type, &opts));
    return sock;
}

static tt_keys_t s_keys(void)
{
    tt_keys_t keys;
    assert_int_equal(zmq_curve_keypair(keys.public_key, keys.secret_key), 0);
    return keys;
}

/*  One ROUTER on ipc without and on tcp with CURVE; who holds the key gets in. */
static void test_the_key_opens(void **state)
{
    (void)state;
    char *dir = help_mkdir();
    const tt_keys_t keys = s_keys();
    char tcp[256], *ipc = tt_sprintf("ipc://%s/both", dir);
    tt_packet_t packet = {0};
    tt_sock_t *router = s_sock(TT_ROUTER, NULL, &keys), *far = s_sock(TT_DEALER, "far", &keys),
              *near = s_sock(TT_DEALER, "near", NULL);
    assert_ok(tt_sock_bind(router, ipc, NULL, 0));
    assert_ok(tt_sock_bind(router, "tcp://0.0.0.0:*", tcp, sizeof tcp));
    char *address = tt_sprintf("tcp://127.0.0.1%s", strrchr(tcp, ':'));
    assert_ok(tt_sock_connect(far, address));
    assert_ok(tt_sock_connect(near, ipc));
    const tt_msg_ACK_t ack = TT_MSG(ACK, .below = 1);
    assert_ok(tt_sock_send(far, NULL, &ack, NULL, 0));
    assert_ok(help_recv(router, &packet));
    assert_string_equal(packet.peer, "far");
    assert_ok(tt_sock_send(near, NULL, &ack, NULL, 0));
    assert_ok(help_recv(router, &packet));
    assert_string_equal(packet.peer, "near");
    assert_ok(tt_sock_send(router, "far", &ack, NULL, 0));
    assert_ok(help_recv(far, &packet));
    char *later = tt_sprintf("ipc://%s/later", dir);
    tt_sock_t *next = s_sock(TT_DEALER, "next", NULL);
    assert_ok(tt_sock_bind(router, later, NULL, 0)); /* bound after tcp: the guard is asked, and lets it in */
    assert_ok(tt_sock_connect(next, later));
    assert_ok(tt_sock_send(next, NULL, &ack, NULL, 0));
    assert_ok(help_recv(router, &packet));
    assert_string_equal(packet.peer, "next");
    tt_packet_clear(&packet);
    tt_sock_destroy(&next);
    tt_sock_destroy(&far);
    tt_sock_destroy(&near);
    tt_sock_destroy(&router);
    free(address);
    free(later);
    free(ipc);
    help_rmdir(dir);
}

/*  A raw client with these options; the monitor's event says how the handshake ended, if it ended before a side was tired of waiting. */
static uint16_t s_try_handshake(const char *address, const tt_keys_t *own, const char *server_key)
{
    void *context = zmq_ctx_new(), *raw = zmq_socket(context, ZMQ_DEALER), *events = zmq_socket(context, ZMQ_PAIR);
    const int patience = PATIENCE_MS, linger = 0;
    if (own) {
        assert_int_equal(zmq_setsockopt(raw, ZMQ_CURVE_SECRETKEY, own->secret_key, 41), 0);
        assert_int_equal(zmq_setsockopt(raw, ZMQ_CURVE_PUBLICKEY, own->public_key, 41), 0);
        assert_int_equal(zmq_setsockopt(raw, ZMQ_CURVE_SERVERKEY, server_key, 41), 0);
    }
    zmq_setsockopt(raw, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(events, ZMQ_RCVTIMEO, &patience, sizeof patience);
    const int watched = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED;
    assert_int_equal(zmq_socket_monitor(raw, "inproc://events", watched), 0);
    assert_int_equal(zmq_connect(events, "inproc://events"), 0);
    assert_int_equal(zmq_connect(raw, address), 0);
    uint16_t event = 0;
    uint8_t bytes[6];
    assert_int_equal(zmq_recv(events, bytes, sizeof bytes, 0), 6);
    memcpy(&event, bytes, sizeof event);
    zmq_close(raw);
    zmq_close(events);
    zmq_ctx_term(context);
    return event;
}

/*  It does end so or so. Where a side was tired of waiting, that is what is told first. */
static uint16_t s_handshake(const char *address, const tt_keys_t *own, const char *server_key)
{
    uint16_t event;
    do
        event = s_try_handshake(address, own, server_key);
    while (event == ZMQ_EVENT_DISCONNECTED || event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
    return event;
}

static void test_other_keys_are_refused(void **state)
{
    (void)state;
    const tt_keys_t keys = s_keys(), other = s_keys();
    char address[256];
    tt_packet_t packet = {0};
    tt_sock_t *router = s_sock(TT_ROUTER, NULL, &keys);
    assert_ok(tt_sock_bind(router, "tcp://127.0.0.1:*", address, sizeof address));
    assert_int_equal(s_handshake(address, &keys, keys.public_key), ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    /* knows the server's public key, but is not it */
    assert_int_equal(s_handshake(address, &other, keys.public_key), ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    /* takes us for another server; no CURVE at all */
    assert_int_not_equal(s_try_handshake(address, &keys, other.public_key), ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    assert_int_not_equal(s_try_handshake(address, NULL, NULL), ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    assert_int_equal(tt_sock_recv(router, &packet), TT_AGAIN);
    tt_sock_destroy(&router);
}

/*  Two jobs in one process: each socket lets in the holders of its own key. */
static void test_two_keys_in_one_process(void **state)
{
    (void)state;
    const tt_keys_t keys[2] = {s_keys(), s_keys()};
    tt_sock_t *routers[2];
    char address[2][256];
    for (int i = 0; i < 2; i++) {
        routers[i] = s_sock(TT_ROUTER, NULL, &keys[i]);
        assert_ok(tt_sock_bind(routers[i], "tcp://127.0.0.1:*", address[i], sizeof address[i]));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(s_handshake(address[i], &keys[i], keys[i].public_key), ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
        assert_int_equal(s_handshake(address[i], &keys[1 - i], keys[i].public_key), ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    }
    tt_sock_destroy(&routers[0]);
    tt_sock_destroy(&routers[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_key_opens),
        cmocka_unit_test(test_other_keys_are_refused),
        cmocka_unit_test(test_two_keys_in_one_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
