/*  peer - two ends for test_netns.sh: `peer serve KEY ADDRESS` is a coordinator of sorts (prints its endpoint, welcomes
 *  whoever comes, ends at DRAINED); `peer join KEY ENDPOINT MS` joins it by a link within MS (prints its number, sends DRAINED).
 *  `peer key FILE` makes a key. KEY `-` = none. Exit code: of the status. */
#include "common/net/link.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tt_keys_t *s_keys(tt_keys_t *keys, const char *path)
{
    if (strcmp(path, "-") == 0)
        return NULL;
    TT_CHECK(tt_keys_read(keys, path) == TT_OK);
    return keys;
}

static tt_status_t s_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)ctx;
    if (packet->msg.type == TT_MSG_DRAINED)
        return TT_STOPPED;
    if (packet->msg.type != TT_MSG_HELLO)
        return TT_OK;
    const tt_msg_WELCOME_t welcome = TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .index = 7, .lease_ms = 5000);
    return tt_sock_send(sock, packet->peer, &welcome, NULL, 0);
}

static tt_status_t s_serve(const char *key, const char *address)
{
    tt_keys_t keys;
    tt_sock_t *sock = NULL;
    tt_loop_t *loop = NULL;
    char endpoint[256], actual[256];
    const tt_sock_opts_t opts = {.name = "control", .keys = s_keys(&keys, key)};
    TT_TRY(tt_sock_new(&sock, TT_ROUTER, &opts));
    snprintf(endpoint, sizeof endpoint, "tcp://%s:*", address);
    tt_status_t status = tt_sock_bind(sock, endpoint, actual, sizeof actual);
    if (status == TT_OK) {
        puts(actual);
        fflush(stdout);
        status = tt_loop_new(&loop, NULL);
        tt_loop_sock(loop, sock, s_on_packet, NULL);
        for (int seconds = 0; seconds < 60 && (status == TT_OK || status == TT_AGAIN); seconds++)
            status = tt_loop_poll(loop, 1000);
        tt_loop_destroy(&loop);
    }
    tt_sock_destroy(&sock);
    return status == TT_STOPPED ? TT_OK : status;
}

static tt_status_t s_join(const char *key, const char *endpoint, int timeout_ms)
{
    tt_keys_t keys;
    tt_link_t *link = NULL;
    tt_packet_t packet = {0};
    const tt_link_opts_t opts = {.endpoint = endpoint,
        .keys = s_keys(&keys, key),
        .role = TT_PEER_COLLECTOR,
        .index = -1,
        .hello_timeout_ms = timeout_ms};
    TT_TRY(tt_link_start(&link, &opts));
    tt_status_t status;
    do /* the link says when it gives up */
        status = tt_link_wait(link, &packet, timeout_ms);
    while (status == TT_AGAIN);
    if (status == TT_OK) {
        printf("joined as %u\n", tt_link_index(link));
        const tt_msg_DRAINED_t drained = TT_MSG(DRAINED, .reason = "done");
        tt_link_send(link, &drained);
    }
    tt_packet_clear(&packet);
    tt_link_destroy(&link);
    return status;
}

int main(int argc, char **argv)
{
    tt_keys_t keys;
    tt_status_t status = TT_USAGE;
    if (argc == 3 && strcmp(argv[1], "key") == 0)
        status = tt_keys_create(&keys, argv[2]);
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        status = s_serve(argv[2], argv[3]);
    if (argc == 5 && strcmp(argv[1], "join") == 0)
        status = s_join(argv[2], argv[3], atoi(argv[4]));
    if (status != TT_OK)
        fprintf(stderr, "%s: %s\n", tt_status_name(status), tt_err_text());
    return tt_status_exit_code(status);
}
