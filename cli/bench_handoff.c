/*  bench_handoff - what a lock-step update waits for beside computing: a version to the collector, its segment back. Two
 *  processes over ipc with the sockets and high-water marks of a run, and nothing computed. */
#include "cli/bench_loop.h"
#include "cli/cmd.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/net.h"
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const tt_option_t tt_opt_bench_handoff[] = {
    {"kib", 'k', "KIB", "size of a version, 1 to 65536; may be repeated (default 1, 36 and 1024)"},
    {"segment", 's', "BYTES", "size of the segment that comes back, 64 to 67108864 (default 2560)"},
    {"runs", 'r', "N", "rounds of each size, 10 to 100000 (default 2000)"},
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

enum { SIZES_MAX = 16, WARM_UP = 50, PATIENCE_MS = 20000, AGAIN_MS = 5, WEIGHTS_HWM = 4, NORM_BYTES = 72 };
enum { BYTES_MAX = 1 << 27 };

typedef struct {
    uint64_t kib[SIZES_MAX], sizes, segment, runs;
} plan_t;

/*  Either side: the learner publishes `version` and waits until `seen` is it; the collector waits and answers. */
typedef struct {
    tt_loop_t *loop;
    tt_sock_t *weights, *data;
    uint64_t version, seen;
    size_t segment;
} side_t;

static tt_status_t s_sock(side_t *self, tt_sock_t **sock, tt_sock_type_t type, int hwm)
{
    const bool named = type == TT_DEALER;
    const tt_sock_opts_t opts = {.name = "handoff",
        .identity = named ? "collector/0/1" : NULL,
        .hwm = hwm,
        .max_bytes = BYTES_MAX,
        .linger_ms = named ? 1000 : 0};
    if (!self->loop)
        TT_TRY(tt_loop_new(&self->loop, NULL));
    return tt_sock_new(sock, type, &opts);
}

static void s_close(side_t *self)
{
    tt_loop_destroy(&self->loop);
    tt_sock_destroy(&self->weights);
    tt_sock_destroy(&self->data);
}

static tt_status_t s_await(side_t *self, int64_t patience_ms)
{
    const tt_status_t status = tt_loop_poll(self->loop, patience_ms);
    return status == TT_AGAIN
               ? tt_err(TT_TIMEOUT, "nothing came for %lld ms: a message was lost", (long long)patience_ms)
               : status;
}

static uint64_t s_last(const plan_t *plan)
{
    return plan->sizes * (WARM_UP + plan->runs);
}

/* ---- the collector, in a process of its own --------------------------------------------------------------------------- */

static tt_status_t s_on_weights(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    side_t *self = ctx;
    zmq_msg_t frame;
    self->seen = packet->msg.WEIGHTS.version;
    tt_frame_new(&frame, self->segment);
    memset(zmq_msg_data(&frame), 0, self->segment);
    const tt_msg_SEGMENT_t segment = TT_MSG(SEGMENT, .era = 1, .batch = self->seen, .version = self->seen);
    const tt_status_t status = tt_sock_send(self->data, NULL, &segment, &frame, 1);
    tt_frame_close(&frame);
    return status;
}

static tt_status_t s_collect(const plan_t *plan, const char *weights, const char *data)
{
    side_t self = {.segment = plan->segment};
    tt_status_t status = s_sock(&self, &self.weights, TT_SUB, WEIGHTS_HWM);
    if (status == TT_OK)
        status = s_sock(&self, &self.data, TT_DEALER, 0);
    if (status == TT_OK)
        status = tt_sock_connect(self.weights, weights);
    if (status == TT_OK)
        status = tt_sock_connect(self.data, data);
    if (status == TT_OK)
        tt_loop_sock(self.loop, self.weights, s_on_weights, &self);
    while (status == TT_OK && self.seen < s_last(plan))
        status = s_await(&self, PATIENCE_MS);
    s_close(&self);
    return status;
}

/* ---- the learner ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_on_segment(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    side_t *self = ctx;
    if (packet->msg.type != TT_MSG_SEGMENT)
        return tt_err(TT_PROTOCOL, "not the SEGMENT that was due");
    self->seen = packet->msg.SEGMENT.batch;
    return TT_OK;
}

static tt_status_t s_publish(const side_t *self, size_t bytes)
{
    const tt_msg_WEIGHTS_t weights = TT_MSG(WEIGHTS, .era = 1, .generation = 1, .version = self->version);
    zmq_msg_t frames[2];
    tt_frame_new(&frames[0], bytes);
    tt_frame_new(&frames[1], NORM_BYTES);
    memset(zmq_msg_data(&frames[0]), 0, bytes);
    memset(zmq_msg_data(&frames[1]), 0, NORM_BYTES);
    const tt_status_t status = tt_sock_send(self->weights, NULL, &weights, frames, 2);
    tt_frame_close(&frames[0]);
    tt_frame_close(&frames[1]);
    return status;
}

static tt_status_t s_round(side_t *self, size_t bytes)
{
    self->version++;
    TT_TRY(s_publish(self, bytes));
    while (self->seen < self->version)
        TT_TRY(s_await(self, PATIENCE_MS));
    return TT_OK;
}

/*  What is published before the collector has subscribed is lost: the first version is said until it answers. */
static tt_status_t s_meet(side_t *self)
{
    const int64_t end = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    for (self->version = 1; self->seen == 0;) {
        if (tt_now_ms(tt_clock_real()) >= end)
            return tt_err(TT_TIMEOUT, "the other process did not start");
        TT_TRY(s_publish(self, 1024));
        const tt_status_t status = tt_loop_poll(self->loop, AGAIN_MS);
        if (status != TT_OK && status != TT_AGAIN)
            return status;
    }
    return TT_OK;
}

static tt_status_t s_measure(side_t *self, const plan_t *plan, double *times)
{
    TT_TRY(s_meet(self));
    for (uint64_t size = 0; size < plan->sizes; size++)
        for (uint64_t i = size == 0; i < WARM_UP + plan->runs; i++) { /* the first was the meeting */
            const int64_t start = tt_now_ns(tt_clock_real());
            TT_TRY(s_round(self, plan->kib[size] * 1024));
            if (i >= WARM_UP)
                *times++ = (double)(tt_now_ns(tt_clock_real()) - start) / 1000;
        }
    return TT_OK;
}

static tt_status_t s_learn(const plan_t *plan, const char *weights, const char *data, double *times)
{
    side_t self = {0};
    tt_status_t status = s_sock(&self, &self.weights, TT_PUB, WEIGHTS_HWM);
    if (status == TT_OK)
        status = s_sock(&self, &self.data, TT_ROUTER, 0);
    if (status == TT_OK)
        status = tt_sock_bind(self.weights, weights, NULL, 0);
    if (status == TT_OK)
        status = tt_sock_bind(self.data, data, NULL, 0);
    if (status == TT_OK) {
        tt_loop_sock(self.loop, self.data, s_on_segment, &self);
        status = s_measure(&self, plan, times);
    }
    s_close(&self);
    return status;
}

/* ---- both -------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_end(pid_t child, tt_status_t status)
{
    int code = 0;
    if (status != TT_OK)
        kill(child, SIGKILL);
    waitpid(child, &code, 0);
    return status == TT_OK && code != 0 ? tt_err(TT_INTERNAL, "the other process of the benchmark failed") : status;
}

/*  The fork comes before anything of ZeroMQ exists here: its threads would not survive it. */
static tt_status_t s_both(const plan_t *plan, const char *dir, double *times)
{
    char weights[128], data[128];
    snprintf(weights, sizeof weights, "ipc://%s/weights", dir);
    snprintf(data, sizeof data, "ipc://%s/data", dir);
    const pid_t child = fork();
    if (child < 0)
        return tt_err_errno(TT_OS, "fork");
    if (child == 0) {
        const tt_status_t status = s_collect(plan, weights, data);
        if (status != TT_OK)
            fprintf(stderr, "tutti bench handoff: %s\n", tt_err_text());
        _exit(tt_status_exit_code(status));
    }
    const tt_status_t status = s_end(child, s_learn(plan, weights, data, times));
    unlink(weights + 6);
    unlink(data + 6);
    return status;
}

static tt_status_t s_run(const plan_t *plan, double *times)
{
    char dir[64];
    const char *tmp = getenv("TMPDIR");
    if (!tmp || !*tmp || strlen(tmp) + sizeof "/tutti-bench-XXXXXX" > sizeof dir)
        tmp = "/tmp"; /* socket paths are short */
    snprintf(dir, sizeof dir, "%s/tutti-bench-XXXXXX", tmp);
    if (!mkdtemp(dir))
        return tt_err_errno(TT_OS, "%s", dir);
    const tt_status_t status = s_both(plan, dir, times);
    rmdir(dir);
    return status;
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static tt_status_t s_plan(plan_t *plan, const tt_args_t *args)
{
    *plan = (plan_t){.kib = {1, 36, 1024}, .sizes = 3, .segment = 2560, .runs = 2000};
    TT_TRY(tt_arg_u64(args, "runs", &plan->runs, 10, 100000));
    TT_TRY(tt_arg_u64(args, "segment", &plan->segment, 64, 64 << 20));
    for (size_t n = 0; tt_arg_nth(args, "kib", n); n++) {
        const char *text = tt_arg_nth(args, "kib", n);
        char *end;
        const unsigned long kib = strtoul(text, &end, 10);
        if (n == SIZES_MAX || *end || kib < 1 || kib > 65536)
            return tt_err(TT_USAGE, "--kib %s: a number from 1 to 65536, at most %d times", text, SIZES_MAX);
        plan->kib[n] = kib;
        plan->sizes = n + 1;
    }
    return TT_OK;
}

static json_t *s_rows(const plan_t *plan, double *times)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < plan->sizes; i++) {
        double *of = times + i * plan->runs, sum = 0;
        for (size_t k = 0; k < plan->runs; k++)
            sum += of[k];
        qsort(of, plan->runs, sizeof *of, bench_ascending);
        json_array_append_new(rows,
            json_pack("{s:I, s:f, s:f, s:f, s:f}", "kib", (json_int_t)plan->kib[i], "mean_us", sum / (double)plan->runs,
                "median_us", of[plan->runs / 2], "p90_us", of[plan->runs * 9 / 10], "min_us", of[0]));
    }
    return rows;
}

static void s_print(json_t *rows)
{
    static const char *const columns[] = {"mean_us", "median_us", "p90_us", "min_us"};
    size_t i;
    json_t *row;
    printf("%8s %11s %11s %11s %11s\n", "KIB", "MEAN US", "MEDIAN US", "P90 US", "MIN US");
    json_array_foreach(rows, i, row)
    {
        printf("%8" PRId64, (int64_t)json_integer_value(json_object_get(row, "kib")));
        for (size_t k = 0; k < TT_COUNT(columns); k++)
            printf(" %11.1f", json_real_value(json_object_get(row, columns[k])));
        putchar('\n');
    }
}

int tt_cmd_bench_handoff(int argc, char **argv)
{
    int code;
    plan_t plan;
    TT_AUTO(tt_args) args = tt_args_new(&code, "bench handoff", argc, argv);
    if (!args)
        return code;
    tt_status_t status = s_plan(&plan, args);
    if (status != TT_OK)
        return tt_args_fail(args, status);
    setenv("TT_LOG", "warn", 0);
    tt_log_init("bench", -1);
    double *times = tt_array0(tt_mul(plan.sizes, plan.runs), sizeof *times);
    status = s_run(&plan, times);
    json_t *rows = status == TT_OK ? s_rows(&plan, times) : NULL;
    free(times);
    if (!rows)
        return tt_args_fail(args, status);
    if (tt_arg_is(args, "output", "json")) {
        json_t *all = json_pack("{s:s, s:s, s:I, s:I, s:O}", "bench", "handoff", "transport", "ipc", "runs",
            (json_int_t)plan.runs, "segment_bytes", (json_int_t)plan.segment, "sizes", rows);
        json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(all);
    } else {
        s_print(rows);
    }
    json_decref(rows);
    return 0;
}
