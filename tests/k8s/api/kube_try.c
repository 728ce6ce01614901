/*  kube_try - the client against a real API server (KUBECONFIG), for test_client.py and measurements.
 *
 *    kube_try create N IN_FLIGHT     makes N ConfigMaps in the namespace, counts them in a watch, removes them
 *
 *  Prints one JSON object: seconds, requests a second, memory, connections. Exit code 0 when every answer was good. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "k8s/api/client.h"

typedef struct {
    kube_client_t *client;
    int good, bad, seen, watch_ended;
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

static void s_on_watch_end(void *ctx, const kube_reply_t *reply)
{
    (void)reply;
    ((try_t *)ctx)->watch_ended++;
}

static int s_sockets(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        struct stat info;
        count += fstatat(dirfd(folder), entry->d_name, &info, 0) == 0 && S_ISSOCK(info.st_mode);
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

static void s_each(try_t *self, const char *method, const char *base, int count)
{
    for (int i = 0; i < count; i++) {
        const bool post = strcmp(method, "POST") == 0;
        char *path = post ? tt_strdup(base) : tt_sprintf("%s/try-%d", base, i);
        char *body = post
                         ? tt_sprintf("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"try-%d\","
                                      "\"labels\":{\"try\":\"yes\"}},\"data\":{\"n\":\"%d\"}}",
                               i, i)
                         : NULL;
        kube_client_send(self->client,
            &(kube_request_t){
                .method = method, .path = path, .body = body, .priority = KUBE_PODS, .timeout_ms = 120000},
            s_on_done, self);
        free(path);
        free(body);
    }
}

static int s_create(kube_loop_t *loop, try_t *self, const char *namespace_, int count)
{
    char *base = tt_sprintf("/api/v1/namespaces/%s/configmaps", namespace_);
    char *watch = tt_sprintf("%s?watch=1&labelSelector=try%%3Dyes", base);
    const uint64_t stream = kube_client_stream(
        self->client, &(kube_request_t){.method = "GET", .path = watch}, 60000, s_on_data, s_on_watch_end, self);
    const int64_t began = tt_now_ns(tt_clock_real());
    s_each(self, "POST", base, count);
    while ((self->good + self->bad < count || self->seen < self->good) && !self->watch_ended)
        if (kube_loop_poll(loop, 1000) != TT_OK)
            return 1;
    const double seconds = (double)(tt_now_ns(tt_clock_real()) - began) / 1e9;
    const int sockets = s_sockets(), created = self->good;
    kube_client_cancel(self->client, stream);
    s_each(self, "DELETE", base, count);
    while (kube_client_pending(self->client) > 0)
        if (kube_loop_poll(loop, 1000) != TT_OK)
            return 1;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"created\":%d,\"seen\":%d,\"deleted\":%d,\"bad\":%d,\"seconds\":%.3f,\"per_s\":%.0f,\"sockets\":%d,"
           "\"rss_kb\":%ld,\"peak_kb\":%ld,\"cpu_s\":%.3f}\n",
        created, self->seen, self->good - created, self->bad, seconds, count / seconds, sockets, s_status_kb("VmRSS:"),
        s_status_kb("VmHWM:"),
        (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 + (double)usage.ru_stime.tv_sec +
            (double)usage.ru_stime.tv_usec / 1e6);
    free(base);
    free(watch);
    return self->bad || self->watch_ended;
}

int main(int argc, char **argv)
{
    if (argc != 4 || strcmp(argv[1], "create") != 0) {
        fprintf(stderr, "usage: kube_try create N IN_FLIGHT\n");
        return 64;
    }
    kube_config_t *config = NULL;
    kube_loop_t *loop = NULL;
    try_t self = {0};
    int code = 1;
    if (kube_config_load(&config, NULL) == TT_OK && kube_loop_new(&loop, NULL) == TT_OK &&
        kube_client_new(&self.client, loop, config,
            &(kube_client_opts_t){.max_in_flight = atoi(argv[3]), .agent = "kube-try/1"}) == TT_OK)
        code = s_create(loop, &self, config->namespace_, atoi(argv[2]));
    else
        fprintf(stderr, "kube_try: %s\n", tt_err_text());
    kube_client_destroy(&self.client);
    kube_loop_destroy(&loop);
    kube_config_destroy(&config);
    return code;
}
