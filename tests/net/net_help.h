/*  net_help - what the tests of tt_net share: a directory of their own, endpoints in it, and waiting for a message. */
#pragma once
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/net/sock.h"
#include "tests/folder.h"
#include "tests/test.h"

enum { PATIENCE_MS = 20000 }; /* how long a test waits for what must come */

/*  A fresh directory under /tmp; help_rmdir removes it and the socket files in it. */
static inline char *help_mkdir(void)
{
    char *path = tt_new0(FOLDER_MAX);
    assert_int_equal(folder_make(path, "net"), 0);
    return path;
}

static inline void help_rmdir(char *path)
{
    assert_int_equal(folder_remove(path), 0);
    free(path);
}

/*  Receive one within PATIENCE_MS; anything but TT_AGAIN comes back. */
static inline tt_status_t help_recv(tt_sock_t *sock, tt_packet_t *out)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    for (;;) {
        const tt_status_t status = tt_sock_recv(sock, out);
        if (status != TT_AGAIN || tt_now_ms(tt_clock_real()) > deadline)
            return status;
        struct pollfd ready = {.fd = tt_sock_fd(sock), .events = POLLIN};
        poll(&ready, 1, 100);
    }
}

/*  Send, again while there is no such peer yet. */
static inline tt_status_t help_send(tt_sock_t *sock, const char *peer, const void *msg)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    tt_status_t status;
    while ((status = tt_sock_send(sock, peer, msg, NULL, 0)) == TT_UNAVAILABLE || status == TT_AGAIN) {
        if (tt_now_ms(tt_clock_real()) > deadline)
            break;
        poll(NULL, 0, 1);
    }
    return status;
}

/*  Bind where a socket was destroyed a moment ago: ZeroMQ closes it in a thread of its own while another socket of the
 *  process lives on. */
static inline void help_bind_again(tt_sock_t *sock, const char *endpoint)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    tt_status_t status;
    while ((status = tt_sock_bind(sock, endpoint, NULL, 0)) == TT_EXISTS && tt_now_ms(tt_clock_real()) < deadline)
        poll(NULL, 0, 1);
    assert_ok(status);
}
