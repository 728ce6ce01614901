/*  bench_allreduce - what summing two learners' gradients through an aggregator costs: three processes over ipc, as in a
 *  run, with this process as their coordinator. Measured by the first learner: from the copy of its gradient into frames
 *  to the last chunk of the sum. */
#include "aggregator/aggregator.h"
#include "cli/bench_loop.h"
#include "cli/cmd.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const tt_option_t tt_opt_bench_allreduce[] = {
    {"kib", 'k', "KIB", "size of the gradient, 1 to 65536; may be repeated (default 36 and 1024)"},
    {"runs", 'r', "N", "all-reduces of each size, 10 to 100000 (default 1000)"},
    {"chunk", 'c', "FLOATS", "floats of a chunk, 1024 to 262144 (default 262144, as learners do)"},
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

enum { LEARNERS = 2, SIZES_MAX = 16, WARM_UP = 50, PATIENCE_S = 20 };

typedef struct {
    uint32_t kib[SIZES_MAX], sizes, runs, chunk;
} plan_t;

typedef struct {
    char dir[64];
    pid_t child[1 + LEARNERS];   /* the aggregator, then the learners       */
    int tell[LEARNERS], hear[2]; /* endpoint to each learner; times from the first */
} bench_t;

/* ---- a learner, in its own process ---------------------------------------------------------------------------------- */

typedef struct {
    tt_loop_t *loop;
    tt_sock_t *sock;
    uint32_t rank, chunk;
    uint64_t step;
    size_t count; /* floats of the gradient */
    float *grad, *sum;
    uint32_t missing;
} learner_t;

static uint32_t s_chunks(const learner_t *self)
{
    return (uint32_t)((self->count + self->chunk - 1) / self->chunk);
}

static size_t s_chunk_count(const learner_t *self, uint32_t chunk)
{
    const size_t left = self->count - (size_t)chunk * self->chunk;
    return left < self->chunk ? left : self->chunk;
}

static tt_status_t s_on_sum(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    learner_t *self = ctx;
    const tt_msg_SUM_t *sum = &packet->msg.SUM;
    if (packet->msg.type != TT_MSG_SUM || sum->step != self->step || sum->chunk >= s_chunks(self) ||
        zmq_msg_size(&packet->frame[0]) != s_chunk_count(self, sum->chunk) * sizeof(float))
        return tt_err(TT_PROTOCOL, "not the SUM that was due");
    memcpy(
        self->sum + (size_t)sum->chunk * self->chunk, zmq_msg_data(&packet->frame[0]), zmq_msg_size(&packet->frame[0]));
    self->missing--;
    return TT_OK;
}

static tt_status_t s_allreduce(learner_t *self)
{
    const uint32_t chunks = s_chunks(self);
    self->missing = chunks;
    self->step++;
    for (uint32_t c = 0; c < chunks; c++) {
        const tt_msg_GRAD_t grad = TT_MSG(GRAD, .era = 1, .generation = 1, .step = self->step,
            .node = LEARNERS + self->rank, .shards = LEARNERS, .chunk = c, .chunks = chunks);
        const size_t bytes = s_chunk_count(self, c) * sizeof(float);
        zmq_msg_t frame;
        tt_frame_new(&frame, bytes);
        memcpy(zmq_msg_data(&frame), self->grad + (size_t)c * self->chunk, bytes);
        TT_TRY(tt_sock_send(self->sock, NULL, &grad, &frame, 1));
    }
    while (self->missing) {
        const tt_status_t status = tt_loop_poll(self->loop, PATIENCE_S * 1000);
        if (status == TT_AGAIN)
            return tt_err(TT_TIMEOUT, "no SUM for %d s", PATIENCE_S);
        TT_TRY(status);
    }
    return TT_OK;
}

static tt_status_t s_learn_size(learner_t *self, uint32_t kib, uint32_t runs, int out)
{
    self->count = (size_t)kib * 1024 / sizeof(float);
    self->grad = tt_aligned0(self->count * sizeof(float));
    self->sum = tt_aligned0(self->count * sizeof(float));
    for (size_t i = 0; i < self->count; i++)
        self->grad[i] = (float)(i + self->rank);
    tt_status_t status = TT_OK;
    for (uint32_t i = 0; status == TT_OK && i < WARM_UP + runs; i++) {
        const int64_t start = tt_now_ns(tt_clock_real());
        status = s_allreduce(self);
        const double us = (double)(tt_now_ns(tt_clock_real()) - start) / 1000;
        if (status == TT_OK && out >= 0 && i >= WARM_UP && write(out, &us, sizeof us) != sizeof us)
            status = tt_err_errno(TT_IO, "pipe");
    }
    for (size_t i = 0; status == TT_OK && i < self->count; i++)
        if (self->sum[i] != (float)i + (float)(i + 1))
            status = tt_err(TT_INTERNAL, "the sum is wrong at %zu", i);
    free(self->grad);
    free(self->sum);
    return status;
}

static tt_status_t s_learn(const plan_t *plan, uint32_t rank, int in, int out)
{
    char identity[32], endpoint[256];
    if (read(in, endpoint, sizeof endpoint) != sizeof endpoint)
        return tt_err(TT_IO, "no endpoint");
    snprintf(identity, sizeof identity, "learner/%u/1", rank);
    const tt_sock_opts_t opts = {.name = "gradients", .identity = identity};
    learner_t self = {.rank = rank, .chunk = plan->chunk};
    TT_TRY(tt_loop_new(&self.loop, NULL));
    TT_TRY(tt_sock_new(&self.sock, TT_DEALER, &opts));
    TT_TRY(tt_sock_connect(self.sock, endpoint));
    tt_loop_sock(self.loop, self.sock, s_on_sum, &self);
    tt_status_t status = TT_OK;
    for (uint32_t i = 0; status == TT_OK && i < plan->sizes; i++)
        status = s_learn_size(&self, plan->kib[i], plan->runs, out);
    tt_loop_destroy(&self.loop);
    tt_sock_destroy(&self.sock);
    return status;
}

/* ---- the processes ------------------------------------------------------------------------------------------------- */

static int s_child_end(tt_status_t status)
{
    if (status != TT_OK)
        fprintf(stderr, "tutti bench allreduce: %s\n", tt_err_text());
    return tt_status_exit_code(status);
}

static tt_status_t s_aggregate(const char *dir)
{
    tt_location_t location;
    const tt_location_args_t args = {.run = dir};
    TT_TRY(tt_location_take(&location, TT_PEER_AGGREGATOR, 0, &args));
    return aggregator_run(&location, -1);
}

/*  Before anything of ZeroMQ exists here: its threads do not survive a fork. */
static tt_status_t s_fork(bench_t *self, const plan_t *plan)
{
    if (pipe(self->hear) != 0)
        return tt_err_errno(TT_OS, "pipe");
    for (int i = 0; i < 1 + LEARNERS; i++) {
        int tell[2];
        if (pipe(tell) != 0 || (self->child[i] = fork()) < 0)
            return tt_err_errno(TT_OS, "fork");
        if (self->child[i] == 0) {
            close(tell[1]);
            _exit(s_child_end(i == 0 ? s_aggregate(self->dir)
                                     : s_learn(plan, (uint32_t)i - 1, tell[0], i == 1 ? self->hear[1] : -1)));
        }
        close(tell[0]);
        if (i == 0)
            close(tell[1]);
        else
            self->tell[i - 1] = tell[1];
    }
    close(self->hear[1]);
    return TT_OK;
}

static tt_status_t s_send_roster(tt_sock_t *control, const char *peer)
{
    tt_rec_MEMBER_t learner[LEARNERS];
    for (uint32_t i = 0; i < LEARNERS; i++)
        learner[i] = (tt_rec_MEMBER_t){.role = TT_PEER_LEARNER, .index = i, .instance = 1, .rank = i};
    const tt_msg_ROSTER_t roster =
        TT_MSG(ROSTER, .era = 1, .epoch = 1, .generation = 1, .members = learner, .members_count = LEARNERS);
    return tt_sock_send(control, peer, &roster, NULL, 0);
}

/*  The coordinator's part: welcome the aggregator; its endpoint is in its HELLO. */
static tt_status_t s_coordinate(tt_sock_t *control, char peer[64], char endpoint[256])
{
    static const char config[] = "env: CartPole-v1\nname: bench\nlearner:\n  shards: 2\n  replicas: 2\n"
                                 "space: {obs: 'float32[4]', action: discrete(2)}\n";
    const int64_t end = tt_now_ms(tt_clock_real()) + PATIENCE_S * 1000;
    while (tt_now_ms(tt_clock_real()) < end) {
        tt_packet_t packet = {0};
        if (tt_sock_recv(control, &packet) != TT_OK || packet.msg.type != TT_MSG_HELLO) {
            tt_packet_clear(&packet);
            usleep(1000);
            continue;
        }
        snprintf(peer, 64, "%s", packet.peer);
        snprintf(endpoint, 256, "%s", packet.msg.HELLO.data_ipc);
        tt_packet_clear(&packet);
        const tt_msg_WELCOME_t welcome =
            TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .beat_ms = 60000, .lease_ms = 600000, .config = (char *)config);
        TT_TRY(tt_sock_send(control, peer, &welcome, NULL, 0));
        return s_send_roster(control, peer);
    }
    return tt_err(TT_TIMEOUT, "the aggregator did not start");
}

static tt_status_t s_read_all(int fd, void *out, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t got = read(fd, (char *)out + at, size - at);
        if (got <= 0)
            return tt_err(TT_IO, "a learner ended early");
        at += (size_t)got;
    }
    return TT_OK;
}

static tt_status_t s_measure(bench_t *self, const plan_t *plan, double *times)
{
    char endpoint[256] = "", peer[64], path[128];
    tt_sock_t *control = NULL;
    snprintf(path, sizeof path, "ipc://%s/sock/control", self->dir);
    TT_TRY(tt_sock_new(&control, TT_ROUTER, &(tt_sock_opts_t){.name = "control", .linger_ms = 200}));
    tt_status_t status = tt_sock_bind(control, path, NULL, 0);
    if (status == TT_OK)
        status = s_coordinate(control, peer, endpoint);
    for (int i = 0; status == TT_OK && i < LEARNERS; i++)
        if (write(self->tell[i], endpoint, sizeof endpoint) != sizeof endpoint)
            status = tt_err_errno(TT_IO, "pipe");
    if (status == TT_OK)
        status = s_read_all(self->hear[0], times, sizeof *times * plan->sizes * plan->runs);
    if (status == TT_OK)
        status = tt_sock_send(control, peer, &TT_MSG(STOP, .reason = (char *)"done"), NULL, 0);
    tt_sock_destroy(&control);
    return status;
}

static tt_status_t s_end(bench_t *self, tt_status_t status)
{
    for (int i = 0; i < 1 + LEARNERS; i++) {
        int code = 0;
        if (self->child[i] <= 0)
            continue;
        if (status != TT_OK)
            kill(self->child[i], SIGKILL);
        waitpid(self->child[i], &code, 0);
        if (status == TT_OK && code != 0)
            status = tt_err(TT_INTERNAL, "a process of the benchmark failed");
    }
    char path[80];
    snprintf(path, sizeof path, "%s/sock/control", self->dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/sock", self->dir);
    rmdir(path);
    rmdir(self->dir);
    return status;
}

static tt_status_t s_run(const plan_t *plan, double *times)
{
    bench_t self = {0};
    char sock[80];
    const char *tmp = getenv("TMPDIR");
    if (!tmp || !*tmp || strlen(tmp) + sizeof "/tutti-bench-XXXXXX" > sizeof self.dir)
        tmp = "/tmp"; /* socket paths are short */
    snprintf(self.dir, sizeof self.dir, "%s/tutti-bench-XXXXXX", tmp);
    if (!mkdtemp(self.dir))
        return tt_err_errno(TT_OS, "%s", self.dir);
    snprintf(sock, sizeof sock, "%s/sock", self.dir);
    if (mkdir(sock, 0700) != 0)
        return tt_err_errno(TT_OS, "%s", sock);
    tt_status_t status = s_fork(&self, plan);
    if (status == TT_OK)
        status = s_measure(&self, plan, times);
    return s_end(&self, status);
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static tt_status_t s_plan(plan_t *plan, const tt_args_t *args)
{
    uint64_t runs = 1000, chunk = 262144;
    *plan = (plan_t){.kib = {36, 1024}, .sizes = 2};
    TT_TRY(tt_arg_u64(args, "runs", &runs, 10, 100000));
    TT_TRY(tt_arg_u64(args, "chunk", &chunk, 1024, 262144));
    for (size_t n = 0; tt_arg_nth(args, "kib", n); n++) {
        const char *text = tt_arg_nth(args, "kib", n);
        char *end;
        const unsigned long kib = strtoul(text, &end, 10);
        if (n == SIZES_MAX || *end || kib < 1 || kib > 65536)
            return tt_err(TT_USAGE, "--kib %s: a number from 1 to 65536, at most %d times", text, SIZES_MAX);
        plan->kib[n] = (uint32_t)kib;
        plan->sizes = (uint32_t)n + 1;
    }
    plan->runs = (uint32_t)runs;
    plan->chunk = (uint32_t)chunk;
    return TT_OK;
}

static json_t *s_rows(const plan_t *plan, double *times)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < plan->sizes; i++) {
        double *of = times + (size_t)i * plan->runs;
        qsort(of, plan->runs, sizeof *of, bench_ascending);
        json_array_append_new(rows, json_pack("{s:I, s:f, s:f, s:f}", "kib", (json_int_t)plan->kib[i], "median_us",
                                        of[plan->runs / 2], "p90_us", of[plan->runs * 9 / 10], "min_us", of[0]));
    }
    return rows;
}

static void s_print(json_t *rows)
{
    size_t i;
    json_t *row;
    printf("%8s %11s %11s %11s\n", "KIB", "MEDIAN US", "P90 US", "MIN US");
    json_array_foreach(rows, i, row)
    {
        printf("%8" PRId64 " %11.1f %11.1f %11.1f\n", (int64_t)json_integer_value(json_object_get(row, "kib")),
            json_real_value(json_object_get(row, "median_us")), json_real_value(json_object_get(row, "p90_us")),
            json_real_value(json_object_get(row, "min_us")));
    }
}

int tt_cmd_bench_allreduce(int argc, char **argv)
{
    int code;
    plan_t plan;
    TT_AUTO(tt_args) args = tt_args_new(&code, "bench allreduce", argc, argv);
    if (!args)
        return code;
    tt_status_t status = s_plan(&plan, args);
    if (status != TT_OK)
        return tt_args_fail(args, status);
    setenv("TT_LOG", "warn", 0);
    tt_log_init("bench", -1);
    double *times = tt_array0((size_t)plan.sizes * plan.runs, sizeof *times);
    status = s_run(&plan, times);
    if (status != TT_OK) {
        free(times);
        return tt_args_fail(args, status);
    }
    json_t *rows = s_rows(&plan, times);
    free(times);
    if (tt_arg_is(args, "output", "json")) {
        json_t *all = json_pack("{s:s, s:i, s:s, s:I, s:I, s:O}", "bench", "allreduce", "learners", LEARNERS,
            "transport", "ipc", "runs", (json_int_t)plan.runs, "chunk_floats", (json_int_t)plan.chunk, "sizes", rows);
        json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(all);
    } else {
        s_print(rows);
    }
    json_decref(rows);
    return 0;
}
