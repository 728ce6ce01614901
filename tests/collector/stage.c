#include "tests/collector/stage.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "collector/collector.h"
#include "collector/guard.h"
#include "collector/registry.h"
#include "collector/vec.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "tests/test.h"

enum { LEASE_MS = 2000, SEED = 3 };
static const char s_env[] = "CartPole-v1";

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void *s_thread(void *ctx)
{
    stage_t *self = ctx;
    tt_location_t location;
    const tt_location_args_t args = {.run = self->dir};
    self->status = tt_location_take(&location, TT_PEER_COLLECTOR, 0, &args);
    if (self->status == TT_OK)
        self->status = collector_run(&location, self->signals);
    self->ended = true;
    return NULL;
}

static void s_bind(stage_t *self, tt_sock_t **sock, tt_sock_type_t type, const char *name, char *endpoint)
{
    const tt_sock_opts_t opts = {.name = name, .max_bytes = 1 << 24};
    snprintf(endpoint, 256, "ipc://%s/sock/%s", self->dir, name);
    assert_ok(tt_sock_new(sock, type, &opts));
    assert_ok(tt_sock_bind(*sock, endpoint, NULL, 0));
}

/*  The weights of version v: an initial network of another seed. */
static float *s_params(stage_t *self, uint64_t version)
{
    float *params = tt_array0(tt_net_param_count(tt_net_spec(self->net)), sizeof *params);
    assert_ok(tt_net_init(self->net, 100 + version, 1.0f, 0));
    assert_ok(tt_net_get(self->net, params));
    return params;
}

void stage_open(stage_t *self, uint32_t lag)
{
    char endpoint[256], name[32];
    const tt_env_ops_t *env;
    *self = (stage_t){.lag = lag, .dir = tt_strdup("/tmp/tt-stage-XXXXXX"), .era = 1, .published = 1};
    assert_non_null(mkdtemp(self->dir));
    char *sock = tt_sprintf("%s/sock", self->dir);
    assert_int_equal(mkdir(sock, 0700), 0);
    free(sock);
    assert_ok(tt_env_find(&env, s_env));
    self->env_state = (uint32_t)tt_vec_save_size(env);
    self->state_bytes = self->env_state;
    const tt_net_spec_t spec = {.obs = 4, .hidden_count = 1, .hidden = {16}, .out = 2};
    assert_ok(tt_device_open(&self->device, "cpu", 0));
    assert_ok(tt_net_new(&self->net, self->device, &spec, 1));
    s_bind(self, &self->control, TT_ROUTER, "control", endpoint);
    for (int i = 0; i < STAGE_LEARNERS; i++) {
        stage_learner_t *learner = &self->learner[i];
        snprintf(name, sizeof name, "data-%d", i);
        s_bind(self, &learner->data, TT_ROUTER, name, learner->data_ipc);
        snprintf(name, sizeof name, "weights-%d", i);
        s_bind(self, &learner->pub, TT_PUB, name, learner->weights_ipc);
    }
    guard_arm(); /* before there are threads, as the program does */
    assert_ok(tt_signals_open(&self->signals));
    assert_int_equal(pthread_create(&self->thread, NULL, s_thread, self), 0);
}

static void s_send_control(stage_t *self, const void *msg)
{
    tt_status_t status = TT_UNAVAILABLE; /* not there yet, or connecting anew */
    stage_until(
        self, self->peer[0] && (status = tt_sock_send(self->control, self->peer, msg, NULL, 0)) != TT_UNAVAILABLE);
    assert_ok(status);
}

void stage_close(stage_t *self)
{
    if (!self->ended)
        s_send_control(self, &TT_MSG(STOP, .reason = (char *)"the test is over"));
    stage_until(self, self->ended);
    pthread_join(self->thread, NULL);
    close(self->signals);
    tt_sock_destroy(&self->control);
    for (int i = 0; i < STAGE_LEARNERS; i++) {
        stage_learner_t *learner = &self->learner[i];
        tt_sock_destroy(&learner->data);
        tt_sock_destroy(&learner->pub);
        for (size_t k = 0; k < learner->segments; k++)
            free(learner->segment[k].block);
    }
    tt_net_destroy(&self->net);
    tt_device_close(&self->device);
    char *command = tt_sprintf("rm -rf '%s'", self->dir);
    assert_int_equal(system(command), 0);
    free(command);
    free(self->config);
    free(self->dir);
}

/* ---- the coordinator ----------------------------------------------------------------------------------------------- */

/*  A collector that was told to go, or could not stay, may be gone before its last words are read. */
static void s_answer_control(stage_t *self, const void *msg)
{
    const tt_status_t status = tt_sock_send(self->control, self->peer, msg, NULL, 0);
    assert_true(status == TT_OK || status == TT_UNAVAILABLE);
}

static void s_welcome(stage_t *self)
{
    free(self->config);
    self->config = tt_sprintf("env: %s\nseed: %d\nnum_envs: %d\nnum_steps: %d\nlag: %u\nname: test\n"
                              "network:\n  hidden: [16]\nspace:\n  obs: 4\n  actions: 2\n  action_dims: 1\n"
                              "  env_state: %u\n",
        s_env, SEED, STAGE_ENVS, STAGE_STEPS, self->lag, self->env_state);
    const tt_msg_WELCOME_t welcome = TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .beat_ms = 200, .lease_ms = LEASE_MS,
        .config = self->config, .run_dir = self->dir);
    s_answer_control(self, &welcome);
}

static void s_on_control(stage_t *self, tt_packet_t *packet)
{
    snprintf(self->peer, sizeof self->peer, "%s", packet->peer);
    switch (packet->msg.type) {
    case TT_MSG_HELLO:
        self->instance = packet->msg.HELLO.instance;
        s_welcome(self);
        break;
    case TT_MSG_HEARTBEAT:
        s_answer_control(self, &TT_MSG(HEARTBEAT, .seq = packet->msg.HEARTBEAT.seq));
        break;
    case TT_MSG_EVENT:
        if (strcmp(packet->msg.EVENT.kind, "first_step") == 0)
            self->first_steps++;
        snprintf(self->event, sizeof self->event, "%s", packet->msg.EVENT.kind);
        snprintf(self->event_text, sizeof self->event_text, "%s", packet->msg.EVENT.text);
        break;
    case TT_MSG_DRAINED:
        snprintf(self->drained, sizeof self->drained, "%s", packet->msg.DRAINED.reason);
        break;
    default:
        break;
    }
}

void stage_roster(stage_t *self, uint32_t learners, uint32_t env_lo, uint32_t env_count)
{
    tt_rec_MEMBER_t member[STAGE_LEARNERS + 1];
    size_t count = 0;
    stage_until(self, self->instance);
    for (uint32_t i = 0; i < STAGE_LEARNERS; i++) {
        if (!(learners >> i & 1))
            continue;
        member[count] =
            (tt_rec_MEMBER_t){.role = TT_PEER_LEARNER, .index = i, .instance = 100 + i, .rank = (uint32_t)count};
        member[count].data_ipc = self->learner[i].data_ipc;
        member[count++].weights_ipc = self->learner[i].weights_ipc;
    }
    if (env_count)
        member[count++] = (tt_rec_MEMBER_t){
            .role = TT_PEER_COLLECTOR, .instance = self->instance, .env_lo = env_lo, .env_count = env_count};
    const tt_msg_ROSTER_t roster = TT_MSG(ROSTER, .era = self->era, .epoch = ++self->epoch, .generation = self->epoch,
        .members = member, .members_count = count);
    s_send_control(self, &roster);
}

/* ---- the learners -------------------------------------------------------------------------------------------------- */

static void s_send_credit(stage_t *self, stage_learner_t *learner)
{
    const tt_msg_CREDIT_t credit =
        TT_MSG(CREDIT, .era = self->era, .epoch = learner->epoch, .upto = learner->upto, .base = learner->base);
    tt_sock_send(learner->data, learner->peer, &credit, NULL, 0);
}

void stage_credit(stage_t *self, uint32_t number, uint64_t base, uint64_t upto)
{
    stage_learner_t *learner = &self->learner[number];
    learner->answers = true;
    learner->base = base;
    learner->upto = upto;
    if (learner->peer[0])
        s_send_credit(self, learner);
}

void stage_ack(stage_t *self, uint32_t number, uint64_t below)
{
    stage_learner_t *learner = &self->learner[number];
    assert_ok(tt_sock_send(learner->data, learner->peer, &TT_MSG(ACK, .era = self->era, .below = below), NULL, 0));
}

static void s_version_frames(stage_t *self, uint64_t version, zmq_msg_t frames[2])
{
    float *params = s_params(self, version);
    const size_t bytes = tt_net_param_count(tt_net_spec(self->net)) * sizeof *params;
    tt_frame_new(&frames[0], bytes);
    memcpy(zmq_msg_data(&frames[0]), params, bytes);
    tt_frame_new(&frames[1], 0);
    free(params);
}

static bool s_answer(stage_t *self, stage_learner_t *learner, const tt_msg_FETCH_t *fetch)
{
    tt_msg_FETCHED_t answer = TT_MSG(FETCHED, .id = fetch->id, .what = fetch->what, .era = self->era,
        .version = fetch->version, .batch = fetch->batch, .env_lo = fetch->env_lo, .env_count = fetch->env_count);
    zmq_msg_t frames[2];
    size_t count = 1;
    if (fetch->what == TT_FETCH_ENVS && learner->gone) {
        learner->gone = false;
        learner->base = fetch->batch + 1;
        answer.gone = true;
        assert_ok(tt_sock_send(learner->data, learner->peer, &answer, NULL, 0));
        return true;
    }
    if (fetch->what == TT_FETCH_WEIGHTS && fetch->version < self->published) {
        answer.version = fetch->newest ? self->published - 1 : fetch->version;
        s_version_frames(self, answer.version, frames);
        count = 2;
        learner->weights_fetched++;
    } else if (fetch->what == TT_FETCH_ENVS && self->states) {
        tt_frame_new(&frames[0], fetch->env_count * self->state_bytes);
        memcpy(zmq_msg_data(&frames[0]), self->states + fetch->env_lo * self->state_bytes,
            fetch->env_count * self->state_bytes);
        learner->envs_fetched++;
    } else {
        return false;
    }
    assert_ok(tt_sock_send(learner->data, learner->peer, &answer, frames, count));
    return true;
}

static void s_retry(stage_t *self, stage_learner_t *learner)
{
    for (size_t i = 0; i < learner->pendings;)
        if (s_answer(self, learner, &learner->pending[i]))
            learner->pending[i] = learner->pending[--learner->pendings];
        else
            i++;
}

void stage_publish(stage_t *self, uint64_t count)
{
    while (self->published < count) {
        const tt_msg_WEIGHTS_t weights =
            TT_MSG(WEIGHTS, .era = self->era, .generation = 1, .version = self->published++);
        zmq_msg_t frames[2];
        s_version_frames(self, weights.version, frames);
        if (!self->silent_pub)
            assert_ok(tt_sock_send(self->learner[0].pub, NULL, &weights, frames, 2));
        tt_frame_close(&frames[0]);
        tt_frame_close(&frames[1]);
    }
    for (int i = 0; i < STAGE_LEARNERS; i++)
        s_retry(self, &self->learner[i]);
}

static void s_on_segment(stage_learner_t *learner, tt_packet_t *packet)
{
    const tt_msg_SEGMENT_t *msg = &packet->msg.SEGMENT;
    assert_true(learner->segments < STAGE_SEGMENTS);
    assert_int_equal(packet->frame_count, 1);
    stage_segment_t *segment = &learner->segment[learner->segments++];
    segment->msg = *msg;
    segment->shape = (tt_segment_shape_t){.T = msg->steps,
        .E = msg->env_count,
        .D = msg->obs,
        .A = msg->action_dims,
        .K = msg->finals,
        .S = msg->state_bytes};
    segment->bytes = zmq_msg_size(&packet->frame[0]);
    segment->block = tt_aligned0(segment->bytes);
    memcpy(segment->block, zmq_msg_data(&packet->frame[0]), segment->bytes);
    assert_ok(tt_segment_check(&segment->shape, segment->block, segment->bytes));
}

static void s_on_data(stage_t *self, stage_learner_t *learner, tt_packet_t *packet)
{
    snprintf(learner->peer, sizeof learner->peer, "%s", packet->peer);
    switch (packet->msg.type) {
    case TT_MSG_ATTACH:
        assert_true(packet->msg.ATTACH.instance == self->instance);
        learner->epoch = packet->msg.ATTACH.epoch;
        if (learner->answers && learner->epoch == self->epoch) /* of an older roster: it will attach anew */
            s_send_credit(self, learner);
        break;
    case TT_MSG_FETCH:
        assert_true(learner->pendings < TT_COUNT(learner->pending));
        learner->pending[learner->pendings++] = packet->msg.FETCH;
        s_retry(self, learner);
        break;
    case TT_MSG_SEGMENT:
        s_on_segment(learner, packet);
        break;
    default:
        fail_msg("a learner got %s", tt_msg_name(packet->msg.type));
    }
}

void stage_pump(stage_t *self)
{
    tt_packet_t packet = {0};
    bool busy = false;
    while (tt_sock_recv(self->control, &packet) == TT_OK) {
        s_on_control(self, &packet);
        busy = true;
    }
    for (int i = 0; i < STAGE_LEARNERS; i++) {
        while (tt_sock_recv(self->learner[i].data, &packet) == TT_OK) {
            s_on_data(self, &self->learner[i], &packet);
            busy = true;
        }
    }
    tt_packet_clear(&packet);
    if (!busy)
        poll(NULL, 0, 1);
}

/* ---- what must come out -------------------------------------------------------------------------------------------- */

const stage_segment_t *stage_segment(const stage_t *self, uint32_t learner, uint64_t batch, size_t k)
{
    const stage_learner_t *from = &self->learner[learner];
    for (size_t i = 0; i < from->segments; i++)
        if (from->segment[i].msg.batch == batch && k-- == 0)
            return &from->segment[i];
    return NULL;
}

stage_segment_t stage_reference(stage_t *self, uint64_t batch)
{
    blocks_t *blocks = blocks_new();
    rollout_t *rollout;
    rollout_cfg_t cfg = {
        .net = self->net, .blocks = blocks, .seed = SEED, .env_count = STAGE_ENVS, .steps = STAGE_STEPS};
    assert_ok(tt_env_find(&cfg.env, s_env));
    assert_ok(rollout_new(&rollout, &cfg));
    stage_segment_t out = {0};
    for (uint64_t n = 0; n <= batch; n++) {
        zmq_msg_t frame;
        bool done;
        free(s_params(self, n > self->lag ? n - self->lag : 0));
        rollout_begin(rollout);
        assert_ok(rollout_play(rollout, STAGE_STEPS, &done));
        assert_ok(rollout_finish(rollout, &out.shape, &frame));
        free(out.block);
        out.bytes = zmq_msg_size(&frame);
        out.block = tt_aligned0(out.bytes);
        memcpy(out.block, zmq_msg_data(&frame), out.bytes);
        tt_frame_close(&frame);
    }
    rollout_destroy(&rollout);
    blocks_destroy(&blocks);
    return out;
}

void stage_assert_part(const stage_segment_t *whole, const stage_segment_t *part)
{
    tt_segment_t a, b;
    const uint32_t lo = part->msg.env_lo, E = part->shape.E, D = whole->shape.D, W = whole->shape.E;
    tt_segment_map(&whole->shape, whole->block, &a);
    tt_segment_map(&part->shape, part->block, &b);
    for (uint32_t t = 0; t < whole->shape.T; t++) {
        const size_t w = (size_t)t * W + lo, p = (size_t)t * E;
        assert_memory_equal(a.obs + w * D, b.obs + p * D, E * D * sizeof(float));
        assert_memory_equal((int32_t *)a.action + w, (int32_t *)b.action + p, E * sizeof(int32_t));
        assert_memory_equal(a.log_prob + w, b.log_prob + p, E * sizeof(float));
        assert_memory_equal(a.value + w, b.value + p, E * sizeof(float));
    }
    assert_memory_equal(a.states + lo * whole->shape.S, b.states, E * whole->shape.S);
}
