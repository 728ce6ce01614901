/*  kube_try - the client against a real API server (KUBECONFIG), for test_client.py and measurements.
 *
 *    kube_try create N IN_FLIGHT     makes N ConfigMaps in the namespace, counts them in a watch, removes them
 *    kube_try watch N                N watches at a time, each of which must see one ConfigMap
 *    kube_try big N                  a ConfigMap of 900 KB, read N times at once amid small requests
 *    kube_try ping MS                asks for /readyz every MS, says "ok" or what was wrong, until its input ends
 *
 *  The first three print one JSON object. Exit code 0 when every answer was good. */
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "k8s/api/client.h"

typedef struct {
    tt_reactor_t *loop;
    kube_client_t *client;
    const char *namespace_;
    int good, bad, seen, watch_ended;
    bool over, one_watch;
    uint64_t watch; /* the newest */
} try_t;

static void s_on_done(void *ctx, const kube_reply_t *reply)
{
    try_t *self = ctx;
    if (reply->code / 100 == 2) {
        self->good++;
        return;
    }
    if (self->bad++ == 0)
        fprintf(stderr, "kube_try: %d %s: %s\n", reply->code, reply->reason, reply->text);
}

static tt_status_t s_on_data(void *ctx, const char *data, size_t size)
{
    try_t *self = ctx;
    for (size_t i = 0; i < size; i++)
        self->seen += data[i] == '\n'; /* one event a line */
    return TT_OK;
}

static void s_watch(try_t *self);

/* A server ends the watch of who does not keep up, on a machine as busy as this one is. A new one tells all anew. */
static void s_on_watch_end(void *ctx, const kube_reply_t *reply)
{
    try_t *self = ctx;
    if (reply->code == 200 && self->one_watch) {
        self->seen = 0;
        s_watch(self);
        return;
    }
    if (self->watch_ended++ == 0)
        fprintf(stderr, "kube_try: the watch ended after %d events: %d %s %s\n", self->seen, reply->code, reply->reason,
            reply->text);
}

/* Connections to the server that this process has open. */
static int s_connections(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        count += getpeername(atoi(entry->d_name), (struct sockaddr *)&peer, &size) == 0 &&
                 (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
    }
    if (folder)
        closedir(folder);
    return count;
}

static long s_status_kb(const char *key)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kb = -1;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtol(line + strlen(key) + 1, NULL, 10);
    if (file)
        fclose(file);
    return kb;
}

static void s_report(const try_t *self, const char *what, double seconds, int connections)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("{\"what\":\"%s\",\"good\":%d,\"bad\":%d,\"seen\":%d,\"seconds\":%.3f,\"connections\":%d,\"rss_kb\":%ld,"
           "\"peak_kb\":%ld,\"cpu_s\":%.3f}\n",
        what, self->good, self->bad, self->seen, seconds, connections, s_status_kb("VmRSS:"), s_status_kb("VmHWM:"),
        cpu_s);
}

static char *s_base(const try_t *self)
{
    return tt_sprintf("/api/v1/namespaces/%s/configmaps", self->namespace_);
}

static void s_send(try_t *self, const char *method, const char *path, const char *body)
{
    kube_client_send(self->client,
        &(kube_request_t){.method = method, .path = path, .body = body, .priority = KUBE_PODS, .timeout_ms = 120000},
        s_on_done, self);
}

static void s_post(try_t *self, int number, const char *data)
{
    char *path = s_base(self);
    char *body =
        tt_sprintf("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"try-%d\",\"labels\":"
                   "{\"try\":\"yes\"}},\"data\":{\"n\":\"%s\"}}",
            number, data);
    s_send(self, "POST", path, body);
    free(path);
    free(body);
}

static void s_named(try_t *self, const char *method, int number)
{
    char *base = s_base(self), *path = tt_sprintf("%s/try-%d", base, number);
    s_send(self, method, path, NULL);
    free(path);
    free(base);
}

static void s_watch(try_t *self)
{
    char *base = s_base(self), *path = tt_sprintf("%s?watch=1&labelSelector=try%%3Dyes", base);
    self->watch = kube_client_stream(
        self->client, &(kube_request_t){.method = "GET", .path = path}, 60000, s_on_data, s_on_watch_end, self);
    free(path);
    free(base);
}

/* Until nothing is under way and so many events came. */
static int s_run(try_t *self, int seen)
{
    while ((kube_client_pending(self->client) > 0 || self->seen < seen) && !self->watch_ended)
        if (tt_reactor_poll(self->loop, 1000) != TT_OK)
            return 1;
    return self->bad || self->watch_ended;
}

static double s_since(int64_t began_ns)
{
    return (double)(tt_now_ns(tt_clock_real()) - began_ns) / 1e9;
}

/* ---- create ------------------------------------------------------------------------------------------------------ */

static int s_create(try_t *self, int count)
{
    self->one_watch = true;
    s_watch(self);
    const int64_t began_ns = tt_now_ns(tt_clock_real());
    for (int i = 0; i < count; i++)
        s_post(self, i, "x");
    int code = s_run(self, count);
    s_report(self, "create", s_since(began_ns), s_connections());
    kube_client_cancel(self->client, self->watch);
    for (int i = 0; i < count; i++)
        s_named(self, "DELETE", i);
    code |= s_run(self, 0);
    return code;
}

/* ---- watch ------------------------------------------------------------------------------------------------------- */

static int s_watches(try_t *self, int count)
{
    const int64_t began_ns = tt_now_ns(tt_clock_real());
    for (int i = 0; i < count; i++)
        s_watch(self);
    s_post(self, 0, "x");
    int code = s_run(self, count);
    s_report(self, "watch", s_since(began_ns), s_connections());
    s_named(self, "DELETE", 0);
    return code | s_run(self, 2 * count);
}

/* ---- big --------------------------------------------------------------------------------------------------------- */

static int s_big(try_t *self, int count)
{
    enum { SIZE = 900000 };
    char *data = tt_new0(SIZE + 1);
    memset(data, 'x', SIZE);
    s_post(self, 0, data);
    s_post(self, 1, "small");
    free(data);
    int code = s_run(self, 0);
    const int64_t began_ns = tt_now_ns(tt_clock_real());
    for (int i = 0; i < count; i++) {
        s_named(self, "GET", 0);
        s_named(self, "GET", 1);
    }
    code |= s_run(self, 0);
    s_report(self, "big", s_since(began_ns), s_connections());
    s_named(self, "DELETE", 0);
    s_named(self, "DELETE", 1);
    return code | s_run(self, 0);
}

/* ---- ping -------------------------------------------------------------------------------------------------------- */

static void s_on_pong(void *ctx, const kube_reply_t *reply)
{
    (void)ctx;
    printf(reply->code == 200 ? "ok\n" : "%d %s\n", reply->code, reply->text);
}

static void s_on_input(void *ctx, int fd)
{
    char byte = 0;
    ((try_t *)ctx)->over = read(fd, &byte, 1) <= 0;
}

static int s_ping(try_t *self, int ms)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    tt_reactor_fd(self->loop, 0, s_on_input, self);
    for (int64_t next_ms = 0; !self->over;) {
        const int64_t now_ms = tt_now_ms(tt_clock_real());
        if (now_ms >= next_ms) {
            next_ms = now_ms + ms;
            kube_client_send(self->client, &(kube_request_t){.method = "GET", .path = "/readyz", .timeout_ms = 2500},
                s_on_pong, self);
        }
        if (tt_reactor_poll(self->loop, next_ms - now_ms) != TT_OK)
            return 1;
    }
    tt_reactor_forget_fd(self->loop, 0);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------------ */

static int s_do(try_t *self, const char *what, int number)
{
    if (strcmp(what, "create") == 0)
        return s_create(self, number);
    if (strcmp(what, "watch") == 0)
        return s_watches(self, number);
    if (strcmp(what, "big") == 0)
        return s_big(self, number);
    return strcmp(what, "ping") == 0 ? s_ping(self, number) : 64;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: kube_try create|watch|big|ping NUMBER [IN_FLIGHT]\n");
        return 64;
    }
    kube_config_t *config = NULL;
    try_t self = {0};
    const kube_client_opts_t opts = {.max_in_flight = argc > 3 ? atoi(argv[3]) : 0, .agent = "kube-try/1"};
    int code = 1;
    if (kube_config_load(&config, NULL) == TT_OK && tt_reactor_new(&self.loop, NULL) == TT_OK &&
        kube_client_new(&self.client, self.loop, config, &opts) == TT_OK) {
        self.namespace_ = config->namespace_;
        code = s_do(&self, argv[1], atoi(argv[2]));
    } else
        fprintf(stderr, "kube_try: %s\n", tt_err_text());
    kube_client_destroy(&self.client);
    tt_reactor_destroy(&self.loop);
    kube_config_destroy(&config);
    return code;
}
