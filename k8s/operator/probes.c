/*  probes - /healthz, /readyz and /metrics (Prometheus text). */
#include <string.h>
#include "k8s/operator/metrics.h"

enum { METRICS_MAX = 256 << 10 };

void probes_request(void *ctx, const tt_server_request_t *request)
{
    operator_port_t *port = ctx;
    operator_t *op = port->op;
    tt_buf_t out;
    tt_buf_init(&out, METRICS_MAX);
    int code = 200;
    const char *type = "text/plain";
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        code = 405;
        (void)tt_buf_str(&out, "this is to be read with GET\n");
    } else if (strcmp(request->path, "/readyz") == 0) {
        code = cache_synced(op->cache) ? 200 : 503;
        (void)tt_buf_str(&out, code == 200 ? "ok\n" : "jobs, pods and services are still being listed\n");
    } else if (strcmp(request->path, "/metrics") == 0) {
        type = "text/plain; version=0.0.4; charset=utf-8";
        metrics_write(&out, op);
    } else {
        code = 404;
        (void)tt_buf_str(&out, "there are /healthz, /readyz and /metrics\n");
    }
    tt_server_reply(port->server, request->id, code, type, tt_buf_text(&out), out.size);
    tt_buf_free(&out);
}
