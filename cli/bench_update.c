/*  bench_update - what a learner's minibatch costs on a device: forward, loss, way back and a step of Adam, on rows of a
 *  batch that lies there, as PPO, DQN, SAC and TD3 do it; and what it takes to bring such a batch there. Those of the last two have two steps,
 *  of the critics and of the actor, which are measured alone as well: TD3's as with policy_delay 1. So many minibatches, each with its
 *  report, are QUEUED before the host waits, as a learner does. The median of seven runs. */
#include "cli/bench_loop.h"
#include "cli/bench_nets.h"
#include "cli/cmd.h"
#include "common/base/mem.h"
#include "common/nn/tree.h"
#include "learner/algorithms/dqn_objective.h"
#include "learner/algorithms/ppo_objective.h"
#include "learner/algorithms/sac_objective.h"
#include "learner/algorithms/td3_objective.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tt_option_t tt_opt_bench_update[] = {
    {"device", 'd', "DEVICE", "cpu, cuda, cuda:N or auto (default cpu)"},
    {"precision", 0, "exact|tf32|bf16", "how a card multiplies large layers (default exact)"},
    {"algorithm", 'a', "ppo|dqn|sac|td3", "whose loss (default ppo)"},
    {"net", 0, "NAME",
        "mlp, two layers for an actor and two for each critic (default); ppo and dqn: nature, impala or minatar, with "
        "its "
        "encoder"},
    {"obs", 0, "N", "mlp: elements of an observation, 1 to 65536 (default 4)"},
    {"hidden", 0, "N", "mlp: units of each layer, 1 to 4096 (default 64)"},
    {"out", 0, "N", "choices, 2 to 4096; sac and td3: numbers of an action, 1 to 4096 (default 4)"},
    {"rows", 'n', "N", "of a minibatch, 1 to 65536 (default 256)"},
    {"batch", 0, "N", "ppo: rows of the batch that they are drawn from, at least as many (default: four times)"},
    {"shards", 0, "N", "parts of the gradient, a power of two, 1 to 1024 (default 1)"},
    {"threads", 't', "N", "cpu: lanes, 1 to 64 (default 1)"},
    {"seconds", 's', "SECONDS", "time for each measurement, 0.01 to 60 (default 0.3)"},
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

enum { QUEUED = 8, STEPS_MAX = 2, SETS = 2, CRITICS = 1 /* a group */ };
typedef enum { PPO, DQN, SAC, TD3 } whose_t; /* in the order of --algorithm */

/*  A table of a batch with `bytes` a row, or one row for all. */
typedef struct {
    tt_table_t *table;
    char *rows; /* owned */
    size_t bytes, count;
} column_t;

/*  A loss with its parameters, and the group that it trains. */
typedef struct {
    const char *name;
    tt_objective_t objective;
    union {
        ppo_loss_t ppo;
        dqn_loss_t dqn;
        sac_loss_t sac;
        td3_loss_t td3;
    } params;
    size_t params_size;
    uint32_t group, follow; /* groups of set 1 that follow, as bits */
    double work, ns;        /* multiply-adds of a row; of a step alone */
} step_t;

typedef struct {
    const char *device_wish, *algorithm, *net_name;
    uint64_t obs, hidden, out, rows, batch, shards, threads;
    double seconds;
    tt_precision_t precision;
    whose_t whose;

    tt_device_t *device;
    tt_stream_t *stream;
    tt_net_spec_t spec;
    tt_net_t *net;
    tt_sums_t *sums;
    tt_opt_t *opt[STEPS_MAX]; /* by group */
    step_t step[STEPS_MAX];
    uint32_t steps, lo, hi; /* lo .. hi - 1 are measured */
    column_t obs_column[TT_FRAMES], input[TT_INPUTS_MAX];
    uint32_t *row; /* [QUEUED][rows] */
    tt_norms_t norms[QUEUED];
    float *stats; /* [QUEUED][b->said] */
    size_t said;  /* floats of a report */
    tt_status_t status;
    double minibatch_ns, put_ns;
} bench_t;

/* ---- a network and its objectives ------------------------------------------------------------------------------------ */

static bool s_has_twins(const bench_t *b)
{
    return b->whose == SAC || b->whose == TD3;
}

/*  Values of choices in the place of an actor and a critic. */
static void s_make_q(tt_net_spec_t *spec, uint32_t units)
{
    const uint32_t critic = tt_net_tower(spec, "critic"), actor = tt_net_tower(spec, "actor");
    TT_CHECK(critic == spec->towers - 1 && actor == critic - 1);
    spec->towers = critic;
    snprintf(spec->tower[actor].name, sizeof spec->tower[actor].name, "q");
    spec->sets = SETS;
    spec->ride = units;
}

static tt_status_t s_make_twins(bench_t *b, const uint32_t hidden[2])
{
    const uint32_t obs = (uint32_t)b->obs, out = (uint32_t)b->out;
    const bool soft = b->whose == SAC;
    if (strcmp(b->net_name, "mlp") != 0)
        TT_TRY(bench_twin_net(b->net_name, soft ? TT_ACT_SQUASHED : TT_ACT_MEAN, hidden, out, &b->spec));
    else
        b->spec = soft ? tt_net_soft_actor_critic(obs, hidden, 2, TT_NN_RELU, 2 * out, out)
                       : tt_net_twin_critics(obs, hidden, 2, TT_NN_RELU, out);
    b->spec.sets = SETS;
    return TT_OK;
}

static tt_status_t s_make_spec(bench_t *b)
{
    const uint32_t hidden[] = {(uint32_t)b->hidden, (uint32_t)b->hidden};
    const tt_nn_activation_t activation = b->whose == PPO ? TT_NN_TANH : TT_NN_RELU;
    const uint32_t obs = (uint32_t)b->obs, out = (uint32_t)b->out;
    const bool mlp = strcmp(b->net_name, "mlp") == 0;
    if (s_has_twins(b))
        return s_make_twins(b, hidden);
    if (mlp)
        b->spec = tt_net_actor_critic(obs, hidden, 2, activation, out, 0);
    else
        TT_TRY(bench_net(b->net_name, out, &b->spec));
    if (b->whose == DQN)
        s_make_q(&b->spec, (uint32_t)b->rows);
    return TT_OK;
}

static void s_ppo_step(bench_t *b, double work)
{
    b->step[b->steps++] = (step_t){.objective = ppo_objective(&b->spec),
        .params.ppo = {.scale = 1,
            .weight = 1.0f / (float)b->rows,
            .clip = 0.2f,
            .entropy_coef = 0.01f,
            .value_coef = 0.5f,
            .clip_value = true},
        .params_size = sizeof(ppo_loss_t),
        .work = work};
}

static void s_dqn_step(bench_t *b, double work)
{
    b->step[b->steps++] = (step_t){.objective = dqn_objective(&b->spec, false),
        .params.dqn = {.choices = (uint32_t)b->out, .scale = 1.0f / (float)b->rows},
        .params_size = sizeof(dqn_loss_t),
        .work = work};
}

/*  Of the critics, or of the actor. */
static step_t *s_twin_step(bench_t *b, uint32_t group, tt_objective_t objective, size_t params_size)
{
    step_t *step = &b->step[b->steps++];
    *step = (step_t){.name = group == CRITICS ? "critics" : "actor",
        .objective = objective,
        .params_size = params_size,
        .group = group,
        .work = bench_objective_work(&b->spec, &objective)};
    return step;
}

static void s_sac_steps(bench_t *b)
{
    const sac_loss_t loss = {
        .of = {(uint32_t)b->out, 1.0f / (float)b->rows}, .target_entropy = -(float)b->out, .tuned = true};
    step_t *critics = s_twin_step(b, CRITICS, sac_critic_objective(&b->spec), sizeof loss),
           *actor = s_twin_step(b, 0, sac_actor_objective(&b->spec), sizeof loss);
    critics->params.sac = actor->params.sac = loss;
    critics->follow = 1u << CRITICS;
}

static void s_td3_steps(bench_t *b)
{
    const td3_loss_t loss = {.of = {(uint32_t)b->out, 1.0f / (float)b->rows}, .noise = 0.2f, .clip = 0.5f};
    step_t *critics = s_twin_step(b, CRITICS, td3_critic_objective(&b->spec), sizeof loss),
           *actor = s_twin_step(b, 0, td3_actor_objective(&b->spec), sizeof loss);
    critics->params.td3 = actor->params.td3 = loss;
    actor->follow = 1u << CRITICS | 1u;
}

/*  Q-learning has another forward of what comes next. */
static void s_make_steps(bench_t *b)
{
    double forward, both;
    if (s_has_twins(b)) {
        (b->whose == SAC ? s_sac_steps : s_td3_steps)(b);
        return;
    }
    bench_net_work(&b->spec, &forward, &both);
    if (b->whose == DQN)
        s_dqn_step(b, both + forward);
    else
        s_ppo_step(b, both);
}

/* ---- a batch ---------------------------------------------------------------------------------------------------------- */

static tt_status_t s_column(bench_t *b, column_t *self, size_t bytes, size_t count)
{
    self->bytes = bytes;
    self->count = count;
    self->rows = tt_new0(tt_mul(bytes, count));
    return tt_table_new(&self->table, b->device, bytes);
}

static tt_status_t s_obs_column(bench_t *b, column_t *self)
{
    TT_TRY(s_column(b, self, tt_net_row_bytes(&b->spec), b->batch));
    free(self->rows);
    self->rows =
        b->spec.parts ? bench_net_rows(&b->spec, b->batch) : (char *)bench_numbers(b->batch * b->spec.obs, false);
    return TT_OK;
}

/*  Every action the next choice, and numbers between -1 and 1 for `columns` floats a row. */
static tt_status_t s_numbers_column(bench_t *b, column_t *self, size_t columns)
{
    TT_TRY(s_column(b, self, columns * sizeof(float), b->batch));
    free(self->rows);
    self->rows = (char *)bench_numbers(b->batch * columns, false);
    return TT_OK;
}

static tt_status_t s_actions_column(bench_t *b, column_t *self)
{
    TT_TRY(s_column(b, self, sizeof(int32_t), b->batch));
    for (size_t i = 0; i < b->batch; i++)
        ((int32_t *)self->rows)[i] = (int32_t)(i % b->out);
    return TT_OK;
}

/*  One choice among `out`. */
static tt_status_t s_policy_column(bench_t *b, column_t *self)
{
    TT_TRY(s_column(b, self, sizeof(ppo_policy_t) + sizeof(uint32_t), 1));
    ppo_policy_t *policy = (ppo_policy_t *)self->rows;
    policy->parts = 1;
    policy->part[0].elements = 1;
    policy->mask_bits = policy->choices[0] = (uint32_t)b->out;
    return TT_OK;
}

static tt_status_t s_make_columns(bench_t *b)
{
    TT_TRY(s_obs_column(b, &b->obs_column[TT_AT]));
    if (b->whose != PPO)
        TT_TRY(s_obs_column(b, &b->obs_column[TT_NEXT]));
    if (b->whose == DQN) {
        TT_TRY(s_actions_column(b, &b->input[DQN_IN_ACTION]));
        TT_TRY(s_numbers_column(b, &b->input[DQN_IN_RETURN], 1));
        TT_TRY(s_numbers_column(b, &b->input[DQN_IN_DISCOUNT], 1));
        return s_numbers_column(b, &b->input[DQN_IN_WEIGHT], 1);
    }
    if (s_has_twins(b)) {
        TT_TRY(s_numbers_column(b, &b->input[TWIN_IN_ACTION], b->out));
        TT_TRY(s_numbers_column(b, &b->input[TWIN_IN_NOISE], b->out));
        TT_TRY(s_numbers_column(b, &b->input[TWIN_IN_RETURN], 1));
        TT_TRY(s_numbers_column(b, &b->input[TWIN_IN_DISCOUNT], 1));
        return s_numbers_column(b, &b->input[TWIN_IN_WEIGHT], 1);
    }
    TT_TRY(s_numbers_column(b, &b->input[PPO_IN_ROW], sizeof(ppo_row_t) / sizeof(float)));
    TT_TRY(s_policy_column(b, &b->input[PPO_IN_POLICY]));
    return s_actions_column(b, &b->input[PPO_IN_ACTION]);
}

/*  PPO: each of a round's minibatches has rows of its own. Else the batch is what was drawn from the replay, and one minibatch. */
static void s_draw_rows(bench_t *b)
{
    b->row = tt_array0(QUEUED * b->rows, sizeof *b->row);
    for (size_t i = 0; i < QUEUED * b->rows; i++)
        b->row[i] = (uint32_t)(b->whose == PPO ? i * 2654435761u % b->batch : i % b->rows);
}

/*  SAC's and TD3's gradients are not clipped, unless someone asks for it. */
static tt_status_t s_make_opts(bench_t *b)
{
    const tt_opt_spec_t adam = {
        .kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f, .max_norm = s_has_twins(b) ? 0 : 0.5f};
    for (uint32_t g = 0; g < tt_net_groups(&b->spec); g++)
        TT_TRY(tt_opt_new(&b->opt[g], b->net, g, &adam));
    return TT_OK;
}

static tt_status_t s_open(bench_t *b)
{
    TT_TRY(s_make_spec(b));
    TT_TRY(tt_device_open_wish(&b->device, b->device_wish, 0, (uint32_t)b->threads));
    TT_TRY(tt_device_precision(b->device, b->precision));
    TT_TRY(tt_stream_new(&b->stream, b->device));
    TT_TRY(tt_net_new(&b->net, b->device, &b->spec));
    TT_TRY(tt_net_init(b->net, b->stream, 1, (const float[TT_TOWERS_MAX]){1.0f, 1.0f, 1.0f}, 0.0f, TT_NO_PROGRESS));
    TT_TRY(s_make_opts(b));
    TT_TRY(tt_sums_new(&b->sums, b->net, (uint32_t)b->shards));
    b->said = TT_LOSS_STATS + b->spec.ride;
    b->stats = tt_array0(QUEUED * b->said, sizeof *b->stats);
    TT_TRY(s_make_columns(b));
    s_make_steps(b);
    s_draw_rows(b);
    return TT_OK;
}

static void s_close_column(column_t *self)
{
    tt_table_destroy(&self->table);
    free(self->rows);
}

static void s_close(bench_t *b)
{
    for (uint32_t i = 0; i < TT_FRAMES; i++)
        s_close_column(&b->obs_column[i]);
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        s_close_column(&b->input[i]);
    for (uint32_t g = 0; g < STEPS_MAX; g++)
        tt_opt_destroy(&b->opt[g]);
    tt_sums_destroy(&b->sums);
    tt_net_destroy(&b->net);
    tt_stream_destroy(&b->stream);
    tt_device_close(&b->device);
    free(b->row);
    free(b->stats);
}

/* ---- what is measured ------------------------------------------------------------------------------------------------- */

static tt_status_t s_put(bench_t *b, const column_t *column)
{
    return column->table ? tt_table_put(column->table, b->stream, column->rows, column->count) : TT_OK;
}

static tt_status_t s_put_batch(bench_t *b)
{
    for (uint32_t i = 0; i < TT_FRAMES; i++)
        TT_TRY(s_put(b, &b->obs_column[i]));
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        TT_TRY(s_put(b, &b->input[i]));
    return tt_stream_sync(b->stream);
}

static tt_status_t s_step(bench_t *b, uint32_t number, const step_t *step)
{
    tt_pass_t pass = {.objective = &step->objective,
        .params = &step->params,
        .params_size = step->params_size,
        .obs = {b->obs_column[TT_AT].table, b->obs_column[TT_NEXT].table},
        .row = b->row + (size_t)number * b->rows,
        .rows = (uint32_t)b->rows};
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        pass.input[i] = b->input[i].table;
    TT_TRY(tt_sums_compute(b->sums, b->stream, &pass, 0, (uint32_t)b->shards));
    return tt_opt_step(b->opt[step->group], b->stream, b->sums, 1e-5f);
}

static tt_status_t s_minibatch(bench_t *b, uint32_t number)
{
    for (uint32_t s = b->lo; s < b->hi; s++) {
        TT_TRY(s_step(b, number, &b->step[s]));
        if (b->step[s].follow)
            TT_TRY(tt_net_blend(b->net, b->stream, 1, 0, b->step[s].follow, 0.005f));
    }
    return TT_OK;
}

static tt_status_t s_minibatches(bench_t *b)
{
    for (uint32_t i = 0; i < QUEUED; i++) {
        TT_TRY(s_minibatch(b, i));
        TT_TRY(tt_net_report(b->net, b->stream, b->sums, b->stats + i * b->said, &b->norms[i]));
    }
    return tt_stream_sync(b->stream);
}

/*  The first error stays, and nothing is done behind it. */
static void s_work_put(void *ctx)
{
    bench_t *b = ctx;
    if (b->status == TT_OK)
        b->status = s_put_batch(b);
}

static void s_work_minibatches(void *ctx)
{
    bench_t *b = ctx;
    if (b->status == TT_OK)
        b->status = s_minibatches(b);
}

/*  Steps lo .. hi - 1 of a minibatch. */
static double s_steps_ns(bench_t *b, uint32_t lo, uint32_t hi)
{
    b->lo = lo;
    b->hi = hi;
    return bench_measure(s_work_minibatches, b, b->seconds) / QUEUED;
}

static tt_status_t s_measure(bench_t *b)
{
    b->hi = b->steps;
    s_work_put(b);
    s_work_minibatches(b); /* what is made once is made */
    TT_TRY(b->status);
    b->put_ns = bench_measure(s_work_put, b, b->seconds);
    b->minibatch_ns = s_steps_ns(b, 0, b->steps);
    for (uint32_t s = 0; b->steps > 1 && s < b->steps; s++)
        b->step[s].ns = s_steps_ns(b, s, s + 1);
    return b->status;
}

/* ---- the command ------------------------------------------------------------------------------------------------------ */

/*  Floating point operations: of a step, of a minibatch. */
static double s_step_flops(const bench_t *b, const step_t *step)
{
    return 2 * step->work * (double)b->rows;
}

static double s_flops(const bench_t *b)
{
    double flops = 0;
    for (uint32_t s = 0; s < b->steps; s++)
        flops += s_step_flops(b, &b->step[s]);
    return flops;
}

/*  Without the zeros between groups. */
static size_t s_parameters(const bench_t *b)
{
    size_t count, sum = 0;
    const tt_tensor_t *tensor = tt_net_tensors(b->net, &count);
    for (size_t i = 0; i < count; i++)
        sum += (size_t)tensor[i].rows * tensor[i].cols;
    return sum;
}

static double s_bytes(const bench_t *b)
{
    double bytes = 0;
    for (uint32_t i = 0; i < TT_FRAMES; i++)
        bytes += (double)b->obs_column[i].bytes * (double)b->obs_column[i].count;
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        bytes += (double)b->input[i].bytes * (double)b->input[i].count;
    return bytes;
}

static void s_print_rate(const bench_t *b, const char *of, const char *what, double ns, double flops)
{
    printf("%s%-*s %10.2f us  %12.0f rows/s  %10.1f GFLOP/s\n", of, 36 - (int)strlen(of), what, ns / 1e3,
        1e9 * (double)b->rows / ns, flops / ns);
}

static void s_print(const bench_t *b)
{
    printf("device       %s\n", tt_device_name(b->device));
    printf("network      %s, %zu parameters, %s\n\n", b->net_name, s_parameters(b), b->algorithm);
    s_print_rate(b, "", "a minibatch", b->minibatch_ns, s_flops(b));
    for (uint32_t s = 0; b->steps > 1 && s < b->steps; s++)
        s_print_rate(b, "a step of the ", b->step[s].name, b->step[s].ns, s_step_flops(b, &b->step[s]));
    if (strncmp(tt_device_name(b->device), "cpu", 3) == 0) /* which reads it where it lies */
        return;
    printf("%-36s %10.2f us  %12.0f rows/s  %10.2f GB/s\n", "a batch to where it is computed", b->put_ns / 1e3,
        1e9 * (double)b->batch / b->put_ns, s_bytes(b) / b->put_ns);
}

static json_t *s_steps_json(const bench_t *b)
{
    json_t *all = json_array();
    for (uint32_t s = 0; b->steps > 1 && s < b->steps; s++) {
        const step_t *step = &b->step[s];
        const double flops = s_step_flops(b, step);
        json_array_append_new(all, json_pack("{s:s, s:f, s:f, s:f}", "name", step->name, "us", step->ns / 1e3, "mflop",
                                       flops / 1e6, "gflops", flops / step->ns));
    }
    return all;
}

static void s_print_json(const bench_t *b)
{
    json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:o, s:f, s:f}", "bench",
        "update", "device", tt_device_name(b->device), "net", b->net_name, "algorithm", b->algorithm, "parameters",
        (json_int_t)s_parameters(b), "out", (json_int_t)b->out, "rows", (json_int_t)b->rows, "batch",
        (json_int_t)b->batch, "shards", (json_int_t)b->shards, "us", b->minibatch_ns / 1e3, "rows_per_s",
        1e9 * (double)b->rows / b->minibatch_ns, "mflop", s_flops(b) / 1e6, "gflops", s_flops(b) / b->minibatch_ns,
        "steps", s_steps_json(b), "put_us", b->put_ns / 1e3, "put_gb_per_s", s_bytes(b) / b->put_ns);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
}

static const char *const s_names[] = {[PPO] = "ppo", [DQN] = "dqn", [SAC] = "sac", [TD3] = "td3"};

static tt_status_t s_options(const tt_args_t *args, bench_t *b)
{
    const char *device = tt_arg(args, "device"), *algorithm = tt_arg(args, "algorithm"), *net = tt_arg(args, "net");
    *b = (bench_t){.device_wish = device ? device : "cpu",
        .algorithm = algorithm ? algorithm : "ppo",
        .net_name = net ? net : "mlp",
        .obs = 4,
        .hidden = 64,
        .out = 4,
        .rows = 256,
        .shards = 1,
        .threads = 1,
        .seconds = 0.3};
    for (b->whose = TD3; b->whose > PPO && !tt_arg_is(args, "algorithm", s_names[b->whose]);)
        b->whose--;
    b->precision = tt_arg_is(args, "precision", "tf32")   ? TT_TF32
                   : tt_arg_is(args, "precision", "bf16") ? TT_BF16
                                                          : TT_EXACT;
    TT_TRY(tt_arg_u64(args, "obs", &b->obs, 1, 65536));
    TT_TRY(tt_arg_u64(args, "hidden", &b->hidden, 1, 4096));
    TT_TRY(tt_arg_u64(args, "out", &b->out, s_has_twins(b) ? 1 : 2, 4096));
    TT_TRY(tt_arg_u64(args, "rows", &b->rows, 1, 65536));
    b->batch = b->whose == PPO ? 4 * b->rows : b->rows;
    TT_TRY(tt_arg_u64(args, "batch", &b->batch, b->rows, b->whose == PPO ? 1u << 20 : b->rows));
    TT_TRY(tt_arg_u64(args, "shards", &b->shards, 1, 1024));
    if (!tt_tree_shards_ok((uint32_t)b->shards))
        return tt_err(TT_USAGE, "--shards %" PRIu64 ": it must be a power of two", b->shards);
    TT_TRY(tt_arg_u64(args, "threads", &b->threads, 1, 64));
    TT_TRY(tt_arg_f64(args, "seconds", &b->seconds, 0.01, 60));
    return tt_device_check_wish(b->device_wish);
}

int tt_cmd_bench_update(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "bench update", argc, argv);
    if (!args)
        return code;
    bench_t *b = tt_new0(sizeof *b);
    tt_status_t status = s_options(args, b);
    if (status == TT_OK)
        status = s_open(b);
    if (status == TT_OK)
        status = s_measure(b);
    if (status == TT_OK && tt_arg_is(args, "output", "json"))
        s_print_json(b);
    else if (status == TT_OK)
        s_print(b);
    code = status == TT_OK ? 0 : tt_args_fail(args, status);
    s_close(b);
    free(b);
    return code;
}
