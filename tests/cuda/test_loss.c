/*  A loss as a kernel gives the bits of the same loss as a function: statistics, derivatives, what rides, what is drawn; PPO's, DQN's, SAC's and TD3's, over
 *  shards whose last blocks are short. The stand-in's schedule is given from outside (TT_SIMT_SCHEDULE). */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/nn/cuda/kernels.h"
#include "common/nn/loss.h"
#include "learner/algorithms/dqn_loss.h"
#include "learner/algorithms/ppo_loss.h"
#include "learner/algorithms/sac_loss.h"
#include "learner/algorithms/td3_loss.h"
#include "tests/test.h"

void tt_cuda_loss_ppo(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_dqn(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_dqn_double(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_dqn_quantile(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_dqn_quantile_double(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_dqn_atoms(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_dqn_atoms_double(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_sac_critic(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_sac_actor(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_draw_sac_critic(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_draw_sac_actor(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_draw_back_sac_actor(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_td3_critic(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_loss_td3_actor(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_draw_td3_critic(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_draw_td3_actor(cudaStream_t stream, const cuda_loss_t *job);
void tt_cuda_draw_back_td3_actor(cudaStream_t stream, const cuda_loss_t *job);

enum {
    ROWS = 100,
    SHARDS = 3,
    BLOCKS = 6,
    OUTS = 48,
    UNITS = 100,
    GRAD = 64 + UNITS,
    RIDE_AT = 64,
    CHOICES = 5,
    QUANTILES = 9,
    STAGES = 5,
    NUMBERS = 3
};

static float s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 11, TT_STREAM_TEST, who, k);
    return tt_unit_f32(word[0]) * 2 - 1;
}

/* ---- memory of the stand-in ------------------------------------------------------------------------------------------ */

static cudaStream_t s_stream;

static void *s_up(const void *from, size_t bytes)
{
    void *stage = NULL, *to = NULL;
    assert_int_equal(cudaMallocHost(&stage, bytes), cudaSuccess);
    memcpy(stage, from, bytes);
    assert_int_equal(cudaMalloc(&to, bytes), cudaSuccess);
    assert_int_equal(cudaMemcpyAsync(to, stage, bytes, cudaMemcpyHostToDevice, s_stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(s_stream), cudaSuccess);
    cudaFreeHost(stage);
    return to;
}

static void s_same(void *device, const void *expected, size_t bytes)
{
    void *stage = NULL;
    assert_int_equal(cudaMallocHost(&stage, bytes), cudaSuccess);
    assert_int_equal(cudaMemcpyAsync(stage, device, bytes, cudaMemcpyDeviceToHost, s_stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(s_stream), cudaSuccess);
    assert_memory_equal(stage, expected, bytes);
    cudaFreeHost(stage);
    cudaFree(device);
}

/* ---- a run ------------------------------------------------------------------------------------------------------------ */

typedef struct {
    tt_loss_fn loss;
    cuda_loss_fn kernel;
    const void *params;
    size_t params_size;
    const void *input[TT_INPUTS_MAX];
    size_t bytes[TT_INPUTS_MAX];
    uint32_t stages, outs[STAGES], log_std, trained; /* trained: stages, as bits */
    bool ride;
    tt_draw_fn draw; /* NULL: nothing is drawn, else NUMBERS from the first stage */
    tt_draw_back_fn back;
    cuda_draw_fns_t kernels;
} case_t;

typedef struct {
    uint32_t first[BLOCKS], rows[BLOCKS], shard[BLOCKS], row[ROWS];
    float head[STAGES][BLOCKS * OUTS * TT_BLOCK], d_head[STAGES][BLOCKS * OUTS * TT_BLOCK], log_std[OUTS];
    float action[BLOCKS * NUMBERS * TT_BLOCK], d_action[BLOCKS * NUMBERS * TT_BLOCK];
    float d_log_std[BLOCKS * OUTS], stats[BLOCKS * TT_LOSS_STATS], grad[SHARDS][GRAD];
} run_t;

static void s_blocks(run_t *run)
{
    uint32_t b = 0;
    for (uint32_t s = 0; s < SHARDS; s++)
        for (uint32_t at = s * ROWS / SHARDS, end = (s + 1) * ROWS / SHARDS; at < end; at += TT_BLOCK, b++) {
            run->first[b] = at;
            run->rows[b] = end - at < TT_BLOCK ? end - at : TT_BLOCK;
            run->shard[b] = s;
        }
    assert_int_equal(b, BLOCKS);
    for (uint32_t r = 0; r < ROWS; r++)
        run->row[r] = r * 7 % UNITS;
}

static void s_expect(const case_t *c, run_t *run)
{
    for (uint32_t b = 0; b < BLOCKS; b++) {
        tt_loss_block_t block = {.rows = run->rows[b], .row = run->row + run->first[b]};
        for (uint32_t s = 0; s < c->stages; s++) {
            float *head = run->head[s] + (size_t)b * c->outs[s] * TT_BLOCK;
            for (uint32_t a = 0; a < c->outs[s]; a++)
                for (uint32_t r = 0; r < run->rows[b]; r++)
                    head[a * TT_BLOCK + r] = 3 * s_random(s * 50 + a, b * TT_BLOCK + r);
            block.head[s] = head;
            block.d_head[s] = c->trained >> s & 1 ? run->d_head[s] + (size_t)b * c->outs[s] * TT_BLOCK : NULL;
        }
        block.log_std[0] = run->log_std;
        block.d_log_std[0] = run->d_log_std + b * c->log_std;
        block.stats = run->stats + b * TT_LOSS_STATS;
        block.ride = c->ride ? run->grad[run->shard[b]] + RIDE_AT : NULL;
        if (c->draw)
            c->draw(c->params, c->input, &block, run->action + (size_t)b * NUMBERS * TT_BLOCK);
        c->loss(c->params, c->input, &block);
        if (c->back)
            c->back(c->params, c->input, &block, run->d_action + (size_t)b * NUMBERS * TT_BLOCK);
    }
}

/*  What came to the action: zeros behind the last row, as everywhere. */
static void s_fill_d_action(run_t *run)
{
    for (uint32_t b = 0; b < BLOCKS; b++)
        for (uint32_t a = 0; a < NUMBERS; a++)
            for (uint32_t r = 0; r < run->rows[b]; r++)
                run->d_action[(b * NUMBERS + a) * TT_BLOCK + r] = s_random(300 + a, b * TT_BLOCK + r);
}

/*  Before the loss, and behind it. */
static void s_draw(const case_t *c, const run_t *run, cuda_loss_t *job)
{
    if (!c->draw)
        return;
    job->numbers = NUMBERS;
    assert_int_equal(cudaMalloc((void **)&job->action, sizeof run->action), cudaSuccess);
    job->d_action = s_up(run->d_action, sizeof run->d_action);
    c->kernels.draw(s_stream, job);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    s_same(job->action, run->action, sizeof run->action);
}

static void s_draw_back(const case_t *c, const cuda_loss_t *job)
{
    if (c->back)
        c->kernels.back(s_stream, job);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    cudaFree(job->d_action);
}

static void s_compare(const case_t *c)
{
    run_t *run = tt_new0(sizeof *run);
    float *grad[SHARDS];
    s_blocks(run);
    for (uint32_t i = 0; i < OUTS; i++)
        run->log_std[i] = s_random(40, i);
    for (uint32_t s = 0; s < SHARDS; s++)
        grad[s] = s_up(run->grad[s], sizeof run->grad[s]);
    s_fill_d_action(run);
    s_expect(c, run);
    cuda_loss_t job = {.run = {.shards = SHARDS, .rows = ROWS, .lo = 0, .hi = SHARDS, .grad = grad},
        .blocks = {.blocks = BLOCKS,
            .first = s_up(run->first, sizeof run->first),
            .rows = s_up(run->rows, sizeof run->rows),
            .shard = s_up(run->shard, sizeof run->shard)},
        .row = s_up(run->row, sizeof run->row),
        .params = s_up(c->params, c->params_size),
        .stages = c->stages,
        .ride_at = c->ride ? RIDE_AT : 0};
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        job.input[i] = c->input[i] ? s_up(c->input[i], c->bytes[i]) : NULL;
    for (uint32_t s = 0; s < c->stages; s++) {
        job.outs[s] = c->outs[s];
        job.head[s] = s_up(run->head[s], sizeof run->head[s]);
        if (c->trained >> s & 1)
            assert_int_equal(cudaMalloc((void **)&job.d_head[s], sizeof run->d_head[s]), cudaSuccess);
    }
    job.log_stds[0] = c->log_std;
    job.log_std[0] = s_up(run->log_std, sizeof run->log_std);
    assert_int_equal(cudaMalloc((void **)&job.d_log_std[0], sizeof run->d_log_std), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&job.stats, sizeof run->stats), cudaSuccess);
    s_draw(c, run, &job);
    c->kernel(s_stream, &job);
    s_draw_back(c, &job);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    s_same(job.stats, run->stats, sizeof run->stats);
    for (uint32_t s = 0; s < c->stages; s++)
        if (c->trained >> s & 1)
            s_same(job.d_head[s], run->d_head[s], (size_t)BLOCKS * c->outs[s] * TT_BLOCK * sizeof(float));
    if (c->log_std)
        s_same(job.d_log_std[0], run->d_log_std, BLOCKS * c->log_std * sizeof(float));
    for (uint32_t s = 0; s < SHARDS; s++)
        s_same(grad[s], run->grad[s], sizeof run->grad[s]);
    free(run);
}

/* ---- DQN -------------------------------------------------------------------------------------------------------------- */

static void dqn_is_the_same(void **state)
{
    (void)state;
    static int32_t action[UNITS];
    static float number[3][UNITS];
    static uint8_t mask[UNITS * CHOICES];
    for (uint32_t i = 0; i < UNITS; i++) {
        action[i] = (int32_t)(i * 3 % CHOICES);
        for (uint32_t k = 0; k < 3; k++)
            number[k][i] = s_random(k + 1, i);
        for (uint32_t a = 0; a < CHOICES; a++)
            mask[i * CHOICES + a] = a == i % CHOICES || s_random(5 + a, i) > 0;
    }
    static const struct {
        tt_loss_fn loss;
        cuda_loss_fn kernel;
    } kinds[3][2] = {{{dqn_loss, tt_cuda_loss_dqn}, {dqn_double_loss, tt_cuda_loss_dqn_double}},
        {{dqn_quantile_loss, tt_cuda_loss_dqn_quantile}, {dqn_quantile_double_loss, tt_cuda_loss_dqn_quantile_double}},
        {{dqn_atoms_loss, tt_cuda_loss_dqn_atoms}, {dqn_atoms_double_loss, tt_cuda_loss_dqn_atoms_double}}};
    for (uint32_t form = 0; form < 24; form++) {
        const bool twice = form & 2, masked = form & 4;
        const uint32_t kind = form / 8, outs = kind ? CHOICES * QUANTILES : CHOICES;
        const dqn_loss_t params = {.choices = CHOICES,
            .quantiles = kind == 1 ? QUANTILES : 0,
            .atoms = kind == 2 ? QUANTILES : 0,
            .low = -1.25f,
            .high = 1.5f,
            .scale = 1.0f / ROWS,
            .rescale = kind == 2 && form & 1 ? 0.01f : 0,
            .squared = form & 1};
        s_compare(&(case_t){.loss = kinds[kind][twice].loss,
            .kernel = kinds[kind][twice].kernel,
            .params = &params,
            .params_size = sizeof params,
            .input = {action, number[0], number[1], number[2], masked ? mask : NULL},
            .bytes = {sizeof action, sizeof number[0], sizeof number[0], sizeof number[0], sizeof mask},
            .stages = twice ? 3 : 2,
            .outs = {outs, outs, outs},
            .trained = 1,
            .ride = true});
    }
}

/* ---- PPO -------------------------------------------------------------------------------------------------------------- */

enum { BITS = 18 }; /* more elements than the loss keeps between its passes */

/*  Two choices, of 3 and of 4; a box of two; bits. */
static ppo_policy_t *s_policy(size_t *bytes)
{
    *bytes = sizeof(ppo_policy_t) + (2 + BITS) * sizeof(uint32_t);
    ppo_policy_t *policy = tt_new0(*bytes);
    policy->parts = 3;
    policy->log_std = 2;
    policy->mask_bits = 7 + 2 * BITS;
    policy->part[0] = (ppo_part_t){.elements = 2};
    policy->part[1] = (ppo_part_t){.box = 1, .elements = 2, .head = 7, .log_std = 0};
    policy->part[2] = (ppo_part_t){.bits = 1, .elements = BITS, .choices = 2, .head = 9, .mask = 7};
    for (uint32_t e = 0; e < 2 + BITS; e++)
        policy->choices[e] = e < 2 ? 3 + e : 2;
    return policy;
}

static void ppo_is_the_same(void **state)
{
    (void)state;
    static ppo_row_t row[UNITS];
    static int32_t choice[UNITS][2];
    static float box[UNITS][2];
    static uint8_t bits[UNITS][BITS], mask[UNITS][7 + 2 * BITS];
    size_t bytes;
    ppo_policy_t *policy = s_policy(&bytes);
    for (uint32_t i = 0; i < UNITS; i++) {
        row[i] = (ppo_row_t){s_random(1, i), s_random(2, i), -20 + s_random(3, i), s_random(4, i)};
        for (uint32_t e = 0; e < 2; e++) {
            choice[i][e] = (int32_t)((i + e) % (3 + e));
            box[i][e] = s_random(5 + e, i);
        }
        for (uint32_t e = 0; e < BITS; e++)
            bits[i][e] = (uint8_t)((i + e) % 2);
        memset(mask[i], 1, sizeof mask[i]);
        mask[i][(i + 1) % 3] = 0;
    }
    for (uint32_t form = 0; form < 8; form++) {
        const ppo_loss_t params = {0.25f, 1.5f, 1.0f / ROWS, 0.2f, 0.03f, 0.5f, form & 1, (form & 2) != 0};
        s_compare(&(case_t){.loss = ppo_loss,
            .kernel = tt_cuda_loss_ppo,
            .params = &params,
            .params_size = sizeof params,
            .input = {row, policy, form & 4 ? mask : NULL, choice, box, bits},
            .bytes = {sizeof row, bytes, sizeof mask, sizeof choice, sizeof box, sizeof bits},
            .stages = 2,
            .outs = {9 + 2 * BITS, 1},
            .log_std = 2,
            .trained = 3});
    }
    free(policy);
}

/* ---- SAC and TD3 ------------------------------------------------------------------------------------------------------ */

/*  In the order of the tables of twin_loss.h. */
static float s_action[UNITS][NUMBERS], s_noise[UNITS][NUMBERS], s_ret[UNITS], s_discount[UNITS], s_weight[UNITS];

static case_t s_twin(const void *params, size_t size)
{
    for (uint32_t i = 0; i < UNITS; i++) {
        for (uint32_t a = 0; a < NUMBERS; a++) {
            s_action[i][a] = s_random(1 + a, i);
            s_noise[i][a] = 2 * s_random(10 + a, i);
        }
        s_ret[i] = s_random(20, i);
        s_discount[i] = i % 5 ? 0.99f : 0;
        s_weight[i] = i % 3 ? 1 : 0.75f;
    }
    return (case_t){.params = params,
        .params_size = size,
        .input = {s_action, s_noise, s_ret, s_discount, s_weight},
        .bytes = {sizeof s_action, sizeof s_noise, sizeof s_ret, sizeof s_discount, sizeof s_weight},
        .stages = TWIN_CRITIC_STAGES,
        .outs = {NUMBERS, 1, 1, 1, 1},
        .trained = 1 << TWIN_Q1_AT | 1 << TWIN_Q2_AT};
}

static void sac_is_the_same(void **state)
{
    (void)state;
    for (uint32_t form = 0; form < 4; form++) {
        const bool actor = form & 1;
        const sac_loss_t params = {{NUMBERS, 1.0f / ROWS}, -NUMBERS, (form & 2) != 0};
        case_t c = s_twin(&params, sizeof params);
        c.loss = actor ? sac_actor_loss : sac_critic_loss;
        c.kernel = actor ? tt_cuda_loss_sac_actor : tt_cuda_loss_sac_critic;
        c.stages = actor ? SAC_ACTOR_STAGES : TWIN_CRITIC_STAGES;
        c.outs[0] = 2 * NUMBERS;
        c.log_std = actor;
        c.trained = actor ? 1 << SAC_ACTOR | 1 << SAC_Q1 | 1 << SAC_Q2 : c.trained;
        c.draw = sac_draw;
        c.back = actor ? sac_draw_back : NULL;
        c.kernels =
            (cuda_draw_fns_t){actor ? tt_cuda_draw_sac_actor : tt_cuda_draw_sac_critic, tt_cuda_draw_back_sac_actor};
        s_compare(&c);
    }
}

/*  The actor's reads nothing but what units count. */
static void td3_is_the_same(void **state)
{
    (void)state;
    for (uint32_t actor = 0; actor < 2; actor++) {
        const td3_loss_t params = {{NUMBERS, 1.0f / ROWS}, 0.6f, 0.5f};
        case_t c = s_twin(&params, sizeof params);
        c.loss = actor ? td3_actor_loss : td3_critic_loss;
        c.kernel = actor ? tt_cuda_loss_td3_actor : tt_cuda_loss_td3_critic;
        c.draw = actor ? td3_draw : td3_draw_next;
        c.kernels =
            (cuda_draw_fns_t){actor ? tt_cuda_draw_td3_actor : tt_cuda_draw_td3_critic, tt_cuda_draw_back_td3_actor};
        if (actor) {
            memset(c.input, 0, TWIN_IN_WEIGHT * sizeof *c.input);
            c.stages = TD3_ACTOR_STAGES;
            c.trained = 1 << TD3_ACTOR | 1 << TD3_Q;
            c.back = td3_draw_back;
        }
        s_compare(&c);
    }
}

static int s_open(void **state)
{
    (void)state;
    return cudaStreamCreateWithFlags(&s_stream, cudaStreamNonBlocking) == cudaSuccess ? 0 : -1;
}

static int s_close(void **state)
{
    (void)state;
    return cudaStreamDestroy(s_stream) == cudaSuccess ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dqn_is_the_same), cmocka_unit_test(ppo_is_the_same),
        cmocka_unit_test(sac_is_the_same), cmocka_unit_test(td3_is_the_same)};
    return cmocka_run_group_tests(tests, s_open, s_close);
}
