/*  bench_allreduce - what summing two learners' gradients costs, in memory that they share or through an aggregator: three processes, as in
 *  a run, with this process as their coordinator. Measured by the first learner: from its gradient to the whole sum. */
#include "aggregator/aggregator.h"
#include "cli/bench_loop.h"
#include "cli/cmd.h"
#include "learner/allreduce.h"
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
    {"transport", 't', "memory|ipc",
        "memory that the learners share (default), or through the aggregator, as between hosts"},
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

enum { LEARNERS = 2, SIZES_MAX = 16, WARM_UP = 50, PATIENCE_S = 20 };

typedef struct {
    uint32_t kib[SIZES_MAX], sizes, runs;
    bool memory;
} plan_t;

typedef struct {
    char dir[64];
    pid_t child[1 + LEARNERS]; /* the aggregator, then the learners       */
    tt_memfd_t memory[SIZES_MAX][LEARNERS];
    int tell[LEARNERS], hear[2]; /* endpoint to each learner; times from the first */
} bench_t;

/* ---- a learner, in its own process ---------------------------------------------------------------------------------- */

typedef struct {
    const bench_t *bench;
    const plan_t *plan;
    uint32_t rank;
    char endpoint[256]; /* of the aggregator */
    tt_loop_t *loop;
    allreduce_t *allreduce;
    size_t count; /* floats of the gradient */
    float *grad;
    uint64_t step;
} learner_t;

static tt_status_t s_gradient(void *ctx, uint32_t node, const float **out)
{
    (void)node;
    *out = ((const learner_t *)ctx)->grad;
    return TT_OK;
}

static tt_status_t s_allreduce(learner_t *self, const float **sum)
{
    TT_TRY(allreduce_send(self->allreduce, ++self->step, self->rank, self->rank + 1, s_gradient, self));
    while (!(*sum = allreduce_sum(self->allreduce))) {
        const tt_status_t status = tt_loop_poll(self->loop, PATIENCE_S * 1000);
        if (status == TT_AGAIN)
            return tt_err(TT_TIMEOUT, "no sum for %d s", PATIENCE_S);
        TT_TRY(status);
    }
    return TT_OK;
}

static tt_status_t s_time(learner_t *self, int out)
{
    const float *sum = NULL;
    for (uint32_t i = 0; i < WARM_UP + self->plan->runs; i++) {
        const int64_t start = tt_now_ns(tt_clock_real());
        TT_TRY(s_allreduce(self, &sum));
        const double us = (double)(tt_now_ns(tt_clock_real()) - start) / 1000;
        allreduce_finish(self->allreduce);
        if (out >= 0 && i >= WARM_UP && write(out, &us, sizeof us) != sizeof us)
            return tt_err_errno(TT_IO, "pipe");
    }
    for (size_t i = 0; i < self->count; i++)
        if (sum[i] != (float)i + (float)(i + 1))
            return tt_err(TT_INTERNAL, "the sum is wrong at %zu", i);
    return TT_OK;
}

/*  Each size is a generation of its own. */
static void s_view(const learner_t *self, uint32_t size, view_t *out)
{
    *out = (view_t){.era = 1, .generation = size + 1, .member = true, .rank = self->rank, .learners = LEARNERS};
    out->learner = tt_array0(LEARNERS, sizeof *out->learner);
    for (uint32_t i = 0; i < LEARNERS; i++)
        out->learner[i] = (view_peer_t){.index = i,
            .instance = i + 1,
            .pid = (uint32_t)getppid(),
            .memory = self->plan->memory ? self->bench->memory[size][i].fd : -1};
    out->aggregators = 1;
    out->aggregator = tt_array0(1, sizeof *out->aggregator);
    out->aggregator[0].instance = 1;
    snprintf(out->aggregator[0].data, sizeof out->aggregator[0].data, "%s", self->endpoint);
}

static tt_status_t s_learn_size(learner_t *self, uint32_t size, int out)
{
    char dir[80];
    view_t view;
    tt_memfd_t memory = self->bench->memory[size][self->rank];
    snprintf(dir, sizeof dir, "%s/sock", self->bench->dir);
    self->count = (size_t)self->plan->kib[size] * 1024 / sizeof(float);
    const allreduce_cfg_t cfg = {.loop = self->loop,
        .index = self->rank,
        .instance = self->rank + 1,
        .shards = LEARNERS,
        .count = self->count,
        .memory = &memory,
        .dir = dir,
        .resend_ms = PATIENCE_S * 1000,
        .clock = tt_clock_real()};
    self->grad = tt_aligned0(self->count * sizeof(float));
    for (size_t i = 0; i < self->count; i++)
        self->grad[i] = (float)(i + self->rank);
    self->allreduce = allreduce_new(&cfg);
    s_view(self, size, &view);
    tt_status_t status = allreduce_enter(self->allreduce, &view);
    if (status == TT_OK)
        status = s_time(self, out);
    view_clear(&view);
    allreduce_destroy(&self->allreduce);
    free(self->grad);
    return status;
}

static tt_status_t s_learn(const bench_t *bench, const plan_t *plan, uint32_t rank, int in, int out)
{
    learner_t self = {.bench = bench, .plan = plan, .rank = rank};
    if (read(in, self.endpoint, sizeof self.endpoint) != sizeof self.endpoint)
        return tt_err(TT_IO, "no endpoint");
    TT_TRY(tt_loop_new(&self.loop, NULL));
    tt_status_t status = TT_OK;
    for (uint32_t i = 0; status == TT_OK && i < plan->sizes; i++)
        status = s_learn_size(&self, i, out);
    tt_loop_destroy(&self.loop);
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
                                     : s_learn(self, plan, (uint32_t)i - 1, tell[0], i == 1 ? self->hear[1] : -1)));
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

/*  Made here, so that every child has it. */
static tt_status_t s_make_memory(bench_t *self, const plan_t *plan)
{
    for (uint32_t i = 0; i < plan->sizes; i++)
        for (int rank = 0; rank < LEARNERS; rank++)
            TT_TRY(tt_memfd_make(&self->memory[i][rank], EXCHANGE_NAME));
    return TT_OK;
}

static tt_status_t s_send_roster(tt_sock_t *control, const char *peer, uint32_t size)
{
    tt_rec_MEMBER_t learner[LEARNERS];
    for (uint32_t i = 0; i < LEARNERS; i++)
        learner[i] = (tt_rec_MEMBER_t){.role = TT_PEER_LEARNER, .index = i, .instance = i + 1, .rank = i};
    const tt_msg_ROSTER_t roster = TT_MSG(
        ROSTER, .era = 1, .epoch = size + 1, .generation = size + 1, .members = learner, .members_count = LEARNERS);
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
        return s_send_roster(control, peer, 0);
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
    for (uint32_t i = 0; status == TT_OK && i < plan->sizes; i++) {
        if (i > 0)
            status = s_send_roster(control, peer, i);
        if (status == TT_OK)
            status = s_read_all(self->hear[0], times + (size_t)i * plan->runs, sizeof *times * plan->runs);
    }
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
    tt_status_t status = plan->memory ? s_make_memory(&self, plan) : TT_OK;
    if (status == TT_OK)
        status = s_fork(&self, plan);
    if (status == TT_OK)
        status = s_measure(&self, plan, times);
    return s_end(&self, status);
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static tt_status_t s_plan(plan_t *plan, const tt_args_t *args)
{
    uint64_t runs = 1000;
    *plan = (plan_t){.kib = {36, 1024}, .sizes = 2};
    TT_TRY(tt_arg_u64(args, "runs", &runs, 10, 100000));
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
    plan->memory = !tt_arg_is(args, "transport", "ipc");
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
            "transport", plan.memory ? "memory" : "ipc", "runs", (json_int_t)plan.runs, "chunk_floats",
            (json_int_t)ALLREDUCE_CHUNK, "sizes", rows);
        json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(all);
    } else {
        s_print(rows);
    }
    json_decref(rows);
    return 0;
}
