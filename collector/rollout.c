#include "collector/rollout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/finals.h"
#include "collector/frames.h"
#include "collector/vec.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/rl/policy.h"
#define TT_LOG_COMPONENT "env"
#include "common/base/log.h"

enum { TIMED_STEPS = 4 }; /* of a batch, to see where the time goes */

/*  Envs side by side that are at the same step: those of a share, or of several. */
typedef struct {
    uint32_t first, E; /* of the range                                       */
    uint32_t t;        /* steps of the batch in hand that they have made     */
} run_t;

/*  Envs that go their round together (vec.h). */
typedef struct {
    run_t at;
    bool plays; /* it is making another step */
} share_t;

/*  The envs of one segment, and its block. */
typedef struct {
    uint32_t first, E; /* of the range                                    */
    void *block;       /* NULL = no batch in hand                         */
    tt_segment_t at;
    finals_t finals;
} part_t;

struct rollout {
    rollout_cfg_t cfg;
    const tt_columns_t *columns;
    uint32_t T, E;
    uint32_t seen; /* columns that an env gives, from the first on: the observation's, the mask */
    tt_policy_t policy;
    uint32_t actor, critic; /* towers */
    size_t state_bytes;
    tt_vec_t *vec;
    frames_t frames;
    share_t *share; /* [shares] */
    uint32_t shares;
    uint32_t t;             /* steps of the batch in hand that all have made    */
    part_t *part;           /* [parts] what the range is cut into               */
    uint32_t parts, widest; /* the most envs of one                            */
    uint32_t block_finals;  /* for how many each block has room                 */
    void *staged_block;
    tt_segment_t staged; /* where there are several parts: what a step gave, for all envs of the range; T = 1 */
    float *head;         /* [E][policy.out]                                  */
    float *log_std;      /* [policy.log_std] of the batch in hand            */
    uint32_t *who;       /* [E] env ids                                      */
    uint64_t *clock;     /* [E]                                              */
    float *epsilon;      /* [E]                                              */
    bool finite;         /* every number of the policy in the batch in hand  */
    bool noisy;          /* noise was drawn in it, for the steps of: */
    uint64_t noise_clock;
    int64_t policy_ns, env_ns; /* of the timed steps; halved at each batch */
};

static tt_segment_shape_t s_shape(const rollout_t *self, uint32_t envs, uint32_t finals)
{
    return (tt_segment_shape_t){
        .columns = self->columns, .T = self->T, .E = envs, .K = finals, .S = (uint32_t)self->state_bytes};
}

static tt_segment_shape_t s_part_shape(const rollout_t *self, const part_t *part)
{
    return s_shape(self, part->E, part->finals.count);
}

static tt_status_t s_check(const rollout_cfg_t *cfg, const tt_policy_t *policy)
{
    const tt_net_spec_t *spec = tt_net_spec(tt_inference_net(cfg->net));
    const bool samples = cfg->actor.kind == TT_ACT_SAMPLE;
    const char *head = tt_actor_head(&cfg->actor);
    if (tt_net_tower(spec, head) == spec->towers || (samples && tt_net_tower(spec, "critic") == spec->towers))
        return tt_err(TT_INVALID, "the network lacks '%s'%s", head, samples ? " or 'critic'" : "");
    const tt_tower_t *actor = &spec->tower[tt_net_tower(spec, head)];
    if (tt_net_row_bytes(spec) != cfg->columns->row || spec->obs != cfg->columns->flat || actor->out != policy->out ||
        actor->log_std != policy->log_std)
        return tt_err(TT_INVALID, "the network (%u in, %u out, %u deviations) does not fit %s (%u observed, %u, %u)",
            spec->obs, actor->out, actor->log_std, cfg->env->id, cfg->columns->flat, policy->out, policy->log_std);
    const bool can = samples || tt_policy_one_choice(policy);
    TT_CHECK(can && samples == (cfg->columns->value >= 0));
    return TT_OK;
}

static tt_status_t s_new_vec(tt_vec_t **vec, const rollout_cfg_t *cfg)
{
    const tt_vec_cfg_t of = {.ops = cfg->env,
        .args = cfg->args,
        .columns = cfg->columns,
        .squash = cfg->actor.squash,
        .seed = cfg->seed,
        .lo = cfg->env_lo,
        .count = cfg->env_count,
        .clock = cfg->taken,
        .from = cfg->from};
    return tt_vec_new(vec, &of);
}

static void s_share_out(rollout_t *self)
{
    self->shares = tt_vec_shares(self->vec);
    self->share = tt_array0(self->shares, sizeof *self->share);
    for (uint32_t k = 0; k < self->shares; k++)
        tt_vec_share(self->vec, k, &self->share[k].at.first, &self->share[k].at.E);
}

/*  Into how many segments, and where a step's rows wait for their places if there are several. */
static tt_status_t s_cut(rollout_t *self)
{
    const uint32_t most = self->cfg.segment_envs;
    self->parts = tt_segment_parts(self->E, most);
    self->part = tt_array0(self->parts, sizeof *self->part);
    for (uint32_t p = 0; p < self->parts; p++) {
        part_t *part = &self->part[p];
        tt_segment_part(self->E, most, p, &part->first, &part->E);
        self->widest = part->E > self->widest ? part->E : self->widest;
    }
    if (self->parts == 1)
        return TT_OK;
    const tt_segment_shape_t step = {.columns = self->columns, .T = 1, .E = self->E};
    size_t bytes;
    TT_TRY(tt_segment_size(&step, &bytes));
    self->staged_block = tt_aligned0(bytes);
    tt_segment_map(&step, self->staged_block, &self->staged);
    return TT_OK;
}

tt_status_t rollout_new(rollout_t **self_p, const rollout_cfg_t *cfg)
{
    tt_policy_t policy;
    tt_vec_t *vec;
    tt_policy_of(&policy, cfg->columns);
    TT_TRY(s_check(cfg, &policy));
    TT_TRY(s_new_vec(&vec, cfg));
    rollout_t *self = tt_new0(sizeof *self);
    self->cfg = *cfg;
    self->cfg.from = NULL; /* the caller's, and soon gone */
    self->cfg.clock = tt_clock_or_real(cfg->clock);
    self->columns = cfg->columns;
    self->policy = policy;
    self->actor = tt_net_tower(tt_net_spec(tt_inference_net(cfg->net)), tt_actor_head(&cfg->actor));
    self->critic = tt_net_tower(tt_net_spec(tt_inference_net(cfg->net)), "critic");
    self->vec = vec;
    self->T = cfg->steps;
    self->E = cfg->env_count;
    self->seen = cfg->columns->action; /* the actions come after them */
    self->state_bytes = tt_vec_save_size(cfg->env, cfg->columns->stack.frames);
    frames_init(&self->frames, cfg->columns, cfg->norm != NULL, cfg->clip_obs);
    self->head = tt_array0(tt_mul(self->E, policy.out), sizeof *self->head);
    self->log_std = tt_array0(policy.log_std, sizeof *self->log_std);
    self->who = tt_array0(self->E, sizeof *self->who);
    self->clock = tt_array0(self->E, sizeof *self->clock);
    self->epsilon = tt_array0(self->E, sizeof *self->epsilon);
    /* draws are keyed by the env's id in the job, so that it does not matter who plays it, nor beside which others */
    for (uint32_t i = 0; i < self->E; i++)
        self->who[i] = cfg->env_lo + i;
    s_share_out(self);
    const tt_status_t status = s_cut(self);
    if (status != TT_OK)
        rollout_destroy(&self);
    *self_p = self;
    return status;
}

/*  Nobody waits any more for what plays: after a failure. */
static tt_status_t s_lost(rollout_t *self, tt_status_t status)
{
    for (uint32_t k = 0; status != TT_OK && k < self->shares; k++)
        self->share[k].plays = false;
    return status;
}

static bool s_any_plays(const rollout_t *self)
{
    for (uint32_t k = 0; k < self->shares; k++)
        if (self->share[k].plays)
            return true;
    return false;
}

/*  What plays makes its step, which still goes into the block. */
static tt_status_t s_settle(rollout_t *self)
{
    while (s_any_plays(self)) {
        uint32_t k = 0;
        TT_TRY(s_lost(self, tt_vec_recv(self->vec, true, &k)));
        self->share[k].plays = false;
    }
    return TT_OK;
}

/*  For the last time: false, and a line in the log, where an env has failed in that step. Nobody has use for it, but for the env. */
static bool s_rests(rollout_t *self)
{
    if (s_settle(self) == TT_OK)
        return true;
    log_info("envs %u..%u were let go in a step that failed: %s", self->cfg.env_lo,
        self->cfg.env_lo + self->cfg.env_count - 1, tt_err_text());
    return false;
}

static void s_abandon(rollout_t *self)
{
    for (uint32_t p = 0; p < self->parts; p++) {
        if (self->part[p].block)
            blocks_give(self->cfg.blocks, self->part[p].block);
        self->part[p].block = NULL;
    }
}

void rollout_destroy(rollout_t **self_p)
{
    rollout_t *self = *self_p;
    if (!self)
        return;
    s_rests(self); /* an env that plays could not be closed */
    s_abandon(self);
    tt_vec_destroy(&self->vec);
    for (uint32_t p = 0; p < self->parts; p++)
        finals_free(&self->part[p].finals);
    free(self->part);
    free(self->share);
    free(self->staged_block);
    frames_free(&self->frames);
    free(self->head);
    free(self->log_std);
    free(self->who);
    free(self->clock);
    free(self->epsilon);
    free(self);
    *self_p = NULL;
}

struct tt_vec *rollout_leave(rollout_t **self_p)
{
    rollout_t *self = *self_p;
    tt_vec_t *vec = NULL;
    if (self && s_rests(self)) {
        vec = self->vec;
        self->vec = NULL;
    }
    rollout_destroy(self_p);
    return vec;
}

size_t rollout_state_bytes(const rollout_t *self)
{
    return self->state_bytes;
}

tt_status_t rollout_load(rollout_t *self, const void *states, size_t bytes)
{
    if (self->state_bytes == 0 || bytes != self->E * self->state_bytes)
        return tt_err(TT_DATA, "%zu bytes of env states, expected %u x %zu", bytes, self->E, self->state_bytes);
    TT_TRY(s_settle(self));
    s_abandon(self);
    for (uint32_t i = 0; i < self->E; i++)
        TT_TRY(tt_vec_load(self->vec, i, (const char *)states + i * self->state_bytes));
    return TT_OK;
}

/* ---- playing ----------------------------------------------------------------------------------------------------- */

/*  A block with room for so many finals, as large for each part, so that any may have it next; what lay before the finals in the old
 *  one is kept. */
static void s_take_block(rollout_t *self, part_t *part, uint32_t finals)
{
    size_t size = 0;
    const tt_segment_shape_t shape = s_shape(self, part->E, 0), widest = s_shape(self, self->widest, finals);
    const tt_status_t fits = tt_segment_size(&widest, &size);
    TT_CHECK(fits == TT_OK); /* the caller checked it for the job */
    void *block = blocks_take(self->cfg.blocks, size);
    tt_segment_t at;
    tt_segment_map(&shape, block, &at);
    if (part->block) {
        memcpy(block, part->block, (size_t)((char *)at.final_t - (char *)block));
        blocks_give(self->cfg.blocks, part->block);
    }
    part->block = block;
    part->at = at;
}

/*  Frames that the learners need of the batch before; zeros where they are another episode's. */
static void s_put_before(rollout_t *self, part_t *part)
{
    const uint32_t before = self->columns->before;
    for (uint32_t k = 1; k <= before; k++)
        for (uint32_t i = 0; i < part->E; i++) {
            void *row[TT_COLUMNS_MAX];
            tt_vec_before(self->vec, part->first + i, k, row);
            for (uint32_t c = 0; c < self->columns->obs_count; c++) {
                const size_t bytes = self->columns->at[c].bytes;
                char *to = (char *)part->at.before[c] + ((size_t)(before - k) * part->E + i) * bytes;
                if (tt_vec_age(self->vec, part->first + i) < k)
                    memset(to, 0, bytes);
                else
                    memcpy(to, row[c], bytes);
            }
        }
}

static void s_begin_part(rollout_t *self, part_t *part)
{
    part->finals.count = 0;
    if (!part->block)
        s_take_block(self, part, self->block_finals);
    for (uint32_t i = 0; i < part->E; i++)
        part->at.age[i] = tt_vec_age(self->vec, part->first + i);
    s_put_before(self, part);
}

tt_status_t rollout_begin(rollout_t *self)
{
    TT_TRY(s_settle(self));
    self->t = 0;
    for (uint32_t k = 0; k < self->shares; k++)
        self->share[k].at.t = 0;
    self->finite = true;
    self->noisy = false;
    self->policy_ns /= 2;
    self->env_ns /= 2;
    for (uint32_t p = 0; p < self->parts; p++)
        s_begin_part(self, &self->part[p]);
    return tt_inference_log_std(self->cfg.net, self->actor, self->log_std);
}

bool rollout_in_hand(const rollout_t *self)
{
    return self->part[0].block != NULL; /* they are taken together, and given away together */
}

uint32_t rollout_segments(const rollout_t *self)
{
    return self->parts;
}

double rollout_env_share(const rollout_t *self)
{
    const int64_t both = self->policy_ns + self->env_ns;
    return both > 0 ? (double)self->env_ns / (double)both : 0.5;
}

uint32_t rollout_played(const rollout_t *self)
{
    return rollout_in_hand(self) ? self->t : 0;
}

/*  The current rows of a column that an env gives. */
static const void *s_current(const rollout_t *self, uint32_t column)
{
    return (int)column == self->columns->mask ? (const void *)tt_vec_mask(self->vec) : tt_vec_obs(self->vec)[column];
}

static void s_see(const rollout_t *self, void **seen)
{
    for (uint32_t c = 0; c < self->seen; c++)
        seen[c] = (void *)(uintptr_t)s_current(self, c); /* nobody writes there */
}

static void s_add_final(const rollout_t *self, part_t *part, uint32_t t, uint32_t env)
{
    const void *row[TT_COLUMNS_MAX];
    for (uint32_t c = 0; c < self->seen; c++)
        row[c] = tt_vec_final(self->vec, part->first + env, c);
    finals_add(&part->finals, self->columns, t, env, row);
}

/*  Where the rows of step t lie in the block. */
static void *s_place(const rollout_t *self, const part_t *part, uint32_t t, uint32_t column)
{
    return (char *)part->at.column[column] + (size_t)t * part->E * self->columns->at[column].bytes;
}

/*  Where what step t gives is written, for all envs of the range: at once to its place if there is one block. */
static void *s_row(const rollout_t *self, uint32_t t, uint32_t column)
{
    return self->parts == 1 ? s_place(self, &self->part[0], t, column) : self->staged.column[column];
}

/*  From row `first` of a column on. */
static void *s_from(const rollout_t *self, uint32_t column, void *rows, uint32_t first)
{
    return (char *)rows + (size_t)first * self->columns->at[column].bytes;
}

/*  The envs that a part and a run have in common: *first of the range; how many. */
static uint32_t s_common(const part_t *part, const run_t *run, uint32_t *first)
{
    const uint32_t part_end = part->first + part->E, run_end = run->first + run->E;
    const uint32_t end = part_end < run_end ? part_end : run_end;
    *first = part->first > run->first ? part->first : run->first;
    return end > *first ? end - *first : 0;
}

/*  A run's rows of a column, of which there is one for each env of the range, to the places of its step. */
static void s_spread(const rollout_t *self, const run_t *run, uint32_t column, const void *rows)
{
    const size_t bytes = self->columns->at[column].bytes;
    for (uint32_t p = 0; p < self->parts; p++) {
        const part_t *part = &self->part[p];
        uint32_t first;
        const uint32_t count = s_common(part, run, &first);
        char *to = (char *)s_place(self, part, run->t, column);
        if (count)
            memcpy(to + (first - part->first) * bytes, (const char *)rows + first * bytes, count * bytes);
    }
}

/*  One for each step, the same for all envs of the job: it does not depend on who plays them, nor on which step others are at. */
static tt_status_t s_draw_noise(rollout_t *self, uint64_t clock)
{
    const tt_noise_t noise = {.seed = self->cfg.seed, .stream = TT_STREAM_NOISE, .clock = clock};
    if (self->noisy && self->noise_clock == clock)
        return TT_OK;
    self->noisy = true;
    self->noise_clock = clock;
    return tt_inference_noise(self->cfg.net, &noise);
}

/*  What the policy makes of rows: heads and values, either may be NULL. */
static tt_status_t s_evaluate(rollout_t *self, const void *const *row, uint32_t rows, float *head, float *value)
{
    float *out[TT_TOWERS_MAX] = {NULL};
    out[self->actor] = head;
    if (value)
        out[self->critic] = value;
    return tt_inference_run(self->cfg.net, row, rows, out);
}

/*  NaN and infinity survive in the sum of absolute values. */
static bool s_finite(const float *x, size_t count)
{
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fabsf(x[i]) * 0x1p-40f;
    return isfinite(sum);
}

/*  What is acted upon, and where the actions go. */
typedef struct {
    const run_t *run;
    const void *const *row;
    const uint8_t *mask;
    tt_dist_draw_t draw;
    void *action[TT_COLUMNS_MAX];
} act_t;

/*  Drawn from the distributions of the head, with what that was estimated at. */
static tt_status_t s_sample(rollout_t *self, const act_t *act)
{
    const run_t *run = act->run;
    float *value = (float *)s_row(self, run->t, (uint32_t)self->columns->value) + run->first;
    float *log_prob = (float *)s_row(self, run->t, (uint32_t)self->columns->log_prob) + run->first;
    TT_TRY(s_evaluate(self, act->row, run->E, self->head, value));
    tt_policy_sample(&self->policy, self->head, self->log_std, act->mask, run->E, &act->draw, act->action, log_prob);
    return TT_OK;
}

/*  The best choice by the head, or any. */
static tt_status_t s_explore(rollout_t *self, const act_t *act)
{
    const uint32_t rows = act->run->E;
    for (uint32_t i = 0; i < rows; i++) {
        const uint64_t row = act->draw.clock[i] * self->cfg.num_envs + act->draw.who[i];
        self->epsilon[i] = (float)tt_epsilon(&self->cfg.actor, row, self->cfg.num_envs);
    }
    TT_TRY(s_draw_noise(self, act->draw.clock[0]));
    TT_TRY(s_evaluate(self, act->row, rows, self->head, NULL));
    self->finite = self->finite && s_finite(self->head, (size_t)rows * self->policy.out);
    tt_policy_explore(&self->policy, self->head, act->mask, rows, self->epsilon, &act->draw, act->action[0]);
    return TT_OK;
}

/*  action: of all envs of the range. */
static tt_status_t s_act(rollout_t *self, const run_t *run, void *const *seen, void *const *action)
{
    const tt_columns_t *columns = self->columns;
    const uint32_t first = run->first;
    for (uint32_t i = first; i < first + run->E; i++)
        self->clock[i] = tt_vec_clock(self->vec, i);
    act_t act = {.run = run,
        .row = frames_now(&self->frames, self->vec, first, run->E, self->cfg.norm, seen),
        .draw = {self->cfg.seed, TT_STREAM_ACTION, self->who + first, self->clock + first}};
    if (columns->mask >= 0)
        act.mask = (const uint8_t *)seen[columns->mask] + (size_t)first * columns->mask_bits;
    for (uint32_t a = 0; a < columns->action_count; a++)
        act.action[a] = s_from(self, columns->action + a, action[a], first);
    return self->cfg.actor.kind == TT_ACT_SAMPLE ? s_sample(self, &act) : s_explore(self, &act);
}

static int64_t s_now_ns(const rollout_t *self)
{
    return tt_now_ns(self->cfg.clock);
}

/*  What the step gave goes to its places, if it is not there. */
static void s_put_step(const rollout_t *self, const run_t *run)
{
    for (uint32_t c = self->columns->action; self->parts > 1 && c < self->columns->count; c++)
        s_spread(self, run, c, self->staged.column[c]);
}

static void s_put_finals(const rollout_t *self, part_t *part, const run_t *run)
{
    uint32_t first;
    const uint32_t count = s_common(part, run, &first), from = first - part->first;
    const uint8_t *truncated = s_place(self, part, run->t, self->columns->truncated);
    if (count && memchr(truncated + from, 1, count))
        for (uint32_t i = from; i < from + count; i++)
            if (truncated[i])
                s_add_final(self, part, run->t, i);
}

/*  Share a, and b behind it, can be seen at once. */
static bool s_are_together(const rollout_t *self, uint32_t a, uint32_t b)
{
    return b < self->shares && self->share[a].at.t == self->share[b].at.t &&
           tt_vec_moves(self->vec, a) == tt_vec_moves(self->vec, b);
}

/*  Shares from .. end - 1. */
static run_t s_run(const rollout_t *self, uint32_t from, uint32_t end)
{
    const run_t *first = &self->share[from].at, *last = &self->share[end - 1].at;
    return (run_t){first->first, last->first + last->E - first->first, first->t};
}

/*  The next step begins of shares from .. end - 1, which are at the same one. timed: what the policy takes is counted. */
static tt_status_t s_start(rollout_t *self, uint32_t from, uint32_t end, bool timed)
{
    const tt_columns_t *columns = self->columns;
    const int64_t start_ns = timed ? s_now_ns(self) : 0;
    const run_t run = s_run(self, from, end);
    void *seen[TT_COLUMNS_MAX], *action[TT_COLUMNS_MAX];
    s_see(self, seen);
    for (uint32_t c = 0; c < self->seen; c++)
        s_spread(self, &run, c, seen[c]);
    for (uint32_t a = 0; a < columns->action_count; a++)
        action[a] = s_row(self, run.t, columns->action + a);
    TT_TRY(s_act(self, &run, seen, action));
    if (timed)
        self->policy_ns += s_now_ns(self) - start_ns;
    for (uint32_t k = from; k < end; k++) {
        TT_TRY(tt_vec_send(self->vec, k, (const void *const *)action, s_row(self, run.t, columns->reward),
            s_row(self, run.t, columns->terminated), s_row(self, run.t, columns->truncated)));
        self->share[k].plays = true;
    }
    return TT_OK;
}

static bool s_is_idle(const rollout_t *self, uint32_t k)
{
    return !self->share[k].plays && self->share[k].at.t < self->T;
}

/*  Nobody rests who has steps to make. */
static tt_status_t s_start_all(rollout_t *self, bool timed)
{
    for (uint32_t k = 0, end; k < self->shares; k = end) {
        end = k + 1;
        if (!s_is_idle(self, k))
            continue;
        while (s_are_together(self, k, end) && s_is_idle(self, end))
            end++;
        TT_TRY(s_start(self, k, end, timed));
    }
    return TT_OK;
}

/*  A share's step is over. */
static void s_end(rollout_t *self, share_t *share)
{
    share->plays = false;
    s_put_step(self, &share->at);
    for (uint32_t p = 0; p < self->parts; p++)
        s_put_finals(self, &self->part[p], &share->at);
    share->at.t++;
}

/*  Waits for one to be over, and takes all that are by then. */
static tt_status_t s_end_some(rollout_t *self)
{
    uint32_t k = 0;
    tt_status_t status = tt_vec_recv(self->vec, true, &k);
    while (status == TT_OK) {
        s_end(self, &self->share[k]);
        status = tt_vec_recv(self->vec, false, &k);
    }
    return status == TT_AGAIN ? TT_OK : status;
}

/*  Steps that everybody has made. */
static uint32_t s_least(const rollout_t *self)
{
    uint32_t t = self->share[0].at.t;
    for (uint32_t k = 1; k < self->shares; k++)
        t = self->share[k].at.t < t ? self->share[k].at.t : t;
    return t;
}

/*  One step more of everybody. Of several shares none rests when it is over: they play while nobody looks. */
static tt_status_t s_step(rollout_t *self, bool timed)
{
    const uint32_t t = self->t;
    TT_TRY(s_start_all(self, timed));
    while (self->t == t) {
        TT_TRY(s_end_some(self));
        self->t = s_least(self);
        if (self->shares > 1)
            TT_TRY(s_start_all(self, timed));
    }
    return TT_OK;
}

/*  What is not the policy's of a step is the envs'. */
static tt_status_t s_timed_step(rollout_t *self)
{
    const int64_t start_ns = s_now_ns(self), policy_ns = self->policy_ns;
    TT_TRY(s_step(self, true));
    self->env_ns += s_now_ns(self) - start_ns - (self->policy_ns - policy_ns);
    return TT_OK;
}

tt_status_t rollout_play(rollout_t *self, uint32_t max_steps, bool *done)
{
    const uint32_t every = self->T / TIMED_STEPS + 1;
    TT_CHECK(self->part[0].block);
    for (uint32_t i = 0; i < max_steps && self->t < self->T; i++)
        TT_TRY(s_lost(self, self->t % every == every / 2 ? s_timed_step(self) : s_step(self, false)));
    *done = self->t == self->T;
    return TT_OK;
}

/* ---- the end of a batch ------------------------------------------------------------------------------------------ */

/*  What the observations after the last step are estimated at, of all envs of the range. */
static tt_status_t s_estimate_last(rollout_t *self)
{
    void *seen[TT_COLUMNS_MAX];
    float *value = self->parts == 1 ? self->part[0].at.last_value : self->staged.last_value;
    s_see(self, seen);
    for (uint32_t k = 0, end; k < self->shares; k = end) {
        for (end = k + 1; s_are_together(self, k, end);)
            end++;
        const run_t run = s_run(self, k, end);
        const void *const *row = frames_now(&self->frames, self->vec, run.first, run.E, self->cfg.norm, seen);
        TT_TRY(s_evaluate(self, row, run.E, NULL, value + run.first));
    }
    for (uint32_t p = 0; self->parts > 1 && p < self->parts; p++)
        memcpy(self->part[p].at.last_value, value + self->part[p].first, self->part[p].E * sizeof *value);
    return TT_OK;
}

/*  What the finals are estimated at; and whether all estimates are numbers. */
static tt_status_t s_estimate_part(rollout_t *self, part_t *part)
{
    const tt_segment_shape_t shape = s_part_shape(self, part);
    const tt_segment_t *at = &part->at;
    const uint32_t K = shape.K;
    const size_t rows = (size_t)self->T * part->E;
    if (K)
        TT_TRY(s_evaluate(self, frames_finals(&self->frames, &shape, at, self->cfg.norm), K, NULL, at->final_value));
    self->finite = self->finite && s_finite(at->log_prob, rows) && s_finite(at->value, rows) &&
                   s_finite(at->last_value, part->E) && s_finite(at->final_value, K);
    return TT_OK;
}

static tt_status_t s_estimate(rollout_t *self)
{
    TT_TRY(s_estimate_last(self));
    for (uint32_t p = 0; p < self->parts; p++)
        TT_TRY(s_estimate_part(self, &self->part[p]));
    return TT_OK;
}

/*  A little more than there are now, so that a block is rarely taken anew; never more than there can be. */
static uint32_t s_room_for(const rollout_t *self, uint32_t finals)
{
    const uint64_t most = (uint64_t)self->T * self->widest, room = (uint64_t)finals + finals / 4 + 4;
    return (uint32_t)(room < most ? room : most);
}

/*  What was seen after the last step, and at the truncations. */
static void s_put_ends(const rollout_t *self, part_t *part)
{
    for (uint32_t c = 0; c < self->seen; c++) {
        const size_t bytes = self->columns->at[c].bytes;
        memcpy(part->at.last[c], (const char *)s_current(self, c) + part->first * bytes, part->E * bytes);
    }
    finals_put(&part->finals, self->columns, &part->at);
}

/*  The blocks get as much room as the most finals of one of them need. */
static void s_make_room(rollout_t *self)
{
    uint32_t most = 0;
    for (uint32_t p = 0; p < self->parts; p++)
        most = self->part[p].finals.count > most ? self->part[p].finals.count : most;
    if (most <= self->block_finals)
        return;
    self->block_finals = s_room_for(self, most);
    for (uint32_t p = 0; p < self->parts; p++)
        s_take_block(self, &self->part[p], self->block_finals);
}

static tt_status_t s_put_states(const rollout_t *self, const part_t *part)
{
    for (uint32_t i = 0; self->state_bytes && i < part->E; i++)
        TT_TRY(tt_vec_save(self->vec, part->first + i, part->at.states + i * self->state_bytes));
    return TT_OK;
}

static void s_wrap(rollout_t *self, part_t *part, rollout_segment_t *out)
{
    size_t size = 0;
    *out = (rollout_segment_t){.first = part->first, .shape = s_part_shape(self, part)};
    const tt_status_t fits = tt_segment_size(&out->shape, &size);
    TT_CHECK(fits == TT_OK);
    blocks_wrap(self->cfg.blocks, part->block, size, &out->frame);
    part->block = NULL;
}

tt_status_t rollout_finish(rollout_t *self, rollout_segment_t *out)
{
    TT_CHECK(self->part[0].block && self->t == self->T);
    s_make_room(self);
    for (uint32_t p = 0; p < self->parts; p++) {
        const tt_segment_shape_t shape = s_part_shape(self, &self->part[p]);
        tt_segment_map(&shape, self->part[p].block, &self->part[p].at);
        s_put_ends(self, &self->part[p]);
    }
    if (self->cfg.actor.kind == TT_ACT_SAMPLE)
        TT_TRY(s_estimate(self));
    for (uint32_t p = 0; p < self->parts; p++)
        TT_TRY(s_put_states(self, &self->part[p]));
    if (!self->finite)
        return tt_err(TT_INTERNAL, "the policy gives log-probabilities or values that are not finite: "
                                   "training has diverged; try a smaller algorithm.learning_rate");
    for (uint32_t p = 0; p < self->parts; p++)
        s_wrap(self, &self->part[p], &out[p]);
    return TT_OK;
}
