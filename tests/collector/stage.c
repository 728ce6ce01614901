#include "tests/collector/stage.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "collector/collector.h"
#include "collector/guard.h"
#include "collector/registry.h"
#include "collector/vec.h"
#include "common/base/mem.h"
#include "common/base/signals.h"

enum { SEED = 3 };
static const char s_env[] = "CartPole-v1";

/* ---- life -------------------------------------------------------------------------------------------------------- */

/*  The weights of version v: an initial network of another seed. */
static float *s_params(stage_t *self, uint64_t version)
{
    float *params = tt_array0(tt_net_param_count(tt_net_spec(tt_inference_net(self->net))), sizeof *params);
    assert_ok(tt_net_init(tt_inference_net(self->net), tt_inference_stream(self->net), 100 + version,
        (const float[]){1.0f, 1.0f, 1.0f, 1.0f}, 0, TT_NO_PROGRESS));
    assert_ok(tt_net_get(tt_inference_net(self->net), tt_inference_stream(self->net), 0, params));
    return params;
}

static void s_version(void *ctx, uint64_t version, zmq_msg_t frames[2])
{
    stage_t *self = ctx;
    float *params = s_params(self, version);
    const size_t bytes = tt_net_param_count(tt_net_spec(tt_inference_net(self->net))) * sizeof *params;
    tt_frame_new(&frames[0], bytes);
    memcpy(zmq_msg_data(&frames[0]), params, bytes);
    tt_frame_new(&frames[1], 0);
    free(params);
}

static void s_on_event(void *ctx, const tt_msg_EVENT_t *event)
{
    stage_t *self = ctx;
    self->first_steps += strcmp(event->kind, "first_step") == 0;
    snprintf(self->event, sizeof self->event, "%s", event->kind);
    snprintf(self->event_text, sizeof self->event_text, "%s", event->text);
}

static void s_open_run(stage_t *self, uint32_t env_state)
{
    const tt_actor_t *actor = &self->actor;
    fake_open(&self->run,
        tt_sprintf(
            "env: %s\nseed: %d\nnum_envs: %d\nnum_steps: %d\nlag: %u\nname: test\n"
            "network:\n  hidden: [16]\n  rnn: %s\n  rnn_size: %u\nspace:\n  obs: float32[4]\n  action: discrete(2)\n"
            "  env_state: %u\nactor: {kind: %s, epsilon: %g, epsilon_end: %g, epsilon_rows: %" PRIu64
            ", random_rows: %" PRIu64 "}\n",
            s_env, SEED, STAGE_ENVS, STAGE_STEPS, self->lag, self->units ? "gru" : "none",
            self->units ? self->units : 1, env_state, actor->kind == TT_ACT_SAMPLE ? "sample" : "argmax",
            actor->epsilon, actor->epsilon_end, actor->epsilon_rows, actor->random_rows));
    self->run.beat_ms = 20;
    self->run.lease_ms = STAGE_LEASE_MS;
    self->run.era = 1;
    self->run.on_event = s_on_event;
    self->run.ctx = self;
}

static void s_open(stage_t *self, uint32_t lag, uint32_t other_state, const tt_actor_t *actor, uint32_t units)
{
    const tt_env_ops_t *env;
    tt_net_spec_t spec = actor->kind == TT_ACT_SAMPLE
                             ? tt_net_actor_critic(4, (const uint32_t[]){16}, 1, TT_NN_TANH, 2, 0)
                             : tt_net_one("q", 4, (const uint32_t[]){16}, 1, TT_NN_TANH, 2);
    int signals;
    *self = (stage_t){
        .lag = lag, .actor = *actor, .units = units, .store = {.published = 1, .version = s_version, .ctx = self}};
    assert_ok(tt_env_find(&env, s_env));
    assert_ok(tt_columns_new(&self->columns, &env->obs, &env->action, false, actor->kind == TT_ACT_SAMPLE));
    if (units) {
        tt_net_put_recurrent(&spec, TT_TOWER_GRU, units, true);
        tt_columns_put_carry(self->columns, tt_net_carry(&spec));
    }
    self->store.columns = self->columns;
    self->store.state_bytes = tt_vec_save_size(env, 1) + self->columns->carry * sizeof(float);
    assert_ok(tt_inference_new(&self->net, "cpu", 0, &spec));
    s_open_run(self, (uint32_t)tt_vec_save_size(env, 1) + other_state);
    for (uint32_t i = 0; i < STAGE_LEARNERS; i++)
        fake_learner_open(&self->learner[i], &self->run, &self->store, i);
    guard_arm(); /* before there are threads, as the program does */
    assert_ok(tt_signals_open(&signals));
    fake_role_start(&self->collector, &self->run, TT_PEER_COLLECTOR, collector_run, signals);
}

void stage_open(stage_t *self, uint32_t lag, uint32_t other_state)
{
    s_open(self, lag, other_state, &(tt_actor_t){0}, 0);
}

void stage_open_recurrent(stage_t *self, uint32_t lag)
{
    s_open(self, lag, 0, &(tt_actor_t){0}, 6);
}

void stage_open_actor(stage_t *self, uint32_t lag, const tt_actor_t *actor)
{
    s_open(self, lag, 0, actor, 0);
}

void stage_close(stage_t *self)
{
    fake_role_stop(&self->collector);
    close(self->collector.signals);
    for (uint32_t i = 0; i < STAGE_LEARNERS; i++)
        fake_learner_close(&self->learner[i]);
    fake_close(&self->run);
    tt_inference_destroy(&self->net);
    tt_columns_destroy(&self->columns);
}

/* ---- what happens -------------------------------------------------------------------------------------------------- */

void stage_roster(stage_t *self, uint32_t learners, uint32_t env_lo, uint32_t env_count)
{
    fake_member_t *collector = self->collector.member;
    stage_until(self, collector->hello);
    for (uint32_t i = 0; i < STAGE_LEARNERS; i++)
        fake_out(&self->run, self->learner[i].member);
    for (uint32_t i = 0; i < STAGE_LEARNERS; i++)
        if (learners >> i & 1)
            fake_in(&self->run, self->learner[i].member);
    collector->in = env_count > 0;
    collector->env_lo = env_lo;
    collector->env_count = env_count;
    fake_roster(&self->run, false, NULL);
}

void stage_publish(stage_t *self, uint64_t count)
{
    while (self->store.published < count) {
        const uint64_t version = self->store.published++;
        if (!self->store.silent_pub)
            fake_learner_publish(&self->learner[0], version);
    }
    for (int i = 0; i < STAGE_LEARNERS; i++)
        fake_learner_retry(&self->learner[i]);
}

void stage_stay(stage_t *self, const char *words)
{
    const char *state = self->collector.member->state;
    fake_until(&self->run, strstr(state, words), words);
    fake_role_pass(&self->collector, STAGE_LEASE_MS / 8);
    assert_non_null(strstr(state, words));
}

/* ---- what must come out -------------------------------------------------------------------------------------------- */

const fake_segment_t *stage_segment(const stage_t *self, uint32_t learner, uint64_t batch, size_t k)
{
    const fake_learner_t *from = &self->learner[learner];
    for (size_t i = 0; i < from->segments; i++)
        if (from->segment[i].msg.batch == batch && k-- == 0)
            return &from->segment[i];
    return NULL;
}

fake_segment_t stage_reference(stage_t *self, uint64_t batch)
{
    blocks_t *blocks = blocks_new();
    rollout_t *rollout;
    rollout_cfg_t cfg = {.columns = self->columns,
        .net = self->net,
        .blocks = blocks,
        .seed = SEED,
        .env_count = STAGE_ENVS,
        .segment_envs = STAGE_ENVS,
        .steps = STAGE_STEPS,
        .actor = self->actor,
        .num_envs = STAGE_ENVS};
    assert_ok(tt_env_find(&cfg.env, s_env));
    assert_ok(rollout_new(&rollout, &cfg));
    fake_segment_t out = {0};
    for (uint64_t n = 0; n <= batch; n++) {
        rollout_segment_t played;
        bool done;
        free(s_params(self, n > self->lag ? n - self->lag : 0));
        assert_ok(rollout_begin(rollout));
        assert_ok(rollout_play(rollout, STAGE_STEPS, &done));
        assert_ok(rollout_finish(rollout, &played));
        free(out.block);
        out.shape = played.shape;
        out.bytes = zmq_msg_size(&played.frame);
        out.block = tt_aligned0(out.bytes);
        memcpy(out.block, zmq_msg_data(&played.frame), out.bytes);
        tt_frame_close(&played.frame);
    }
    rollout_destroy(&rollout);
    blocks_destroy(&blocks);
    return out;
}

void stage_assert_part(const fake_segment_t *whole, const fake_segment_t *part)
{
    tt_segment_t a, b;
    const uint32_t lo = part->msg.env_lo, E = part->shape.E, W = whole->shape.E;
    const tt_columns_t *columns = whole->shape.columns;
    tt_segment_map(&whole->shape, whole->block, &a);
    tt_segment_map(&part->shape, part->block, &b);
    for (uint32_t c = 0; c < columns->count; c++) {
        const size_t bytes = columns->at[c].bytes;
        for (size_t t = 0; t < whole->shape.T; t++)
            assert_memory_equal(
                (char *)a.column[c] + (t * W + lo) * bytes, (char *)b.column[c] + t * E * bytes, E * bytes);
    }
    const size_t carried = columns->carry * sizeof *a.carry;
    if (carried)
        assert_memory_equal((char *)a.carry + lo * carried, b.carry, E * carried);
    assert_memory_equal(a.states + lo * whole->shape.S, b.states, E * whole->shape.S);
}
