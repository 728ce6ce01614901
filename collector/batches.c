#include "collector/batches.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "collector/guard.h"
#include "collector/peers.h"
#include "collector/registry.h"
#include "collector/rollout.h"
#include "collector/same_env.h"
#include "collector/vec.h"
#include "collector/weights.h"
#include "common/base/backoff.h"
#include "common/base/laps.h"
#include "common/base/mem.h"
#include "common/job/diverged.h"
#include "common/job/fit.h"
#define TT_LOG_COMPONENT "collector"
#include "common/base/log.h"

enum {
    SLICE_US = 400,       /* of play between two looks at the sockets                              */
    WEIGHTS_MS = 20,      /* a version that has not come by itself for so long is fetched          */
    ATTACH_FIRST_MS = 4,  /* ATTACH is said again after this, then after twice as long, ...        */
    FRAME_SLACK = 1 << 16 /* beyond the largest array in a frame                                   */
};

typedef enum {
    AT_ROSTER,  /* not in a roster: waiting for one          */
    AT_ATTACH,  /* waiting for the credit of every learner   */
    AT_STATES,  /* waiting for env states                    */
    AT_LOAD,    /* envs are put where these say              */
    AT_CREDIT,  /* waiting for credit that covers the batch  */
    AT_WEIGHTS, /* waiting for the batch's policy version   */
    AT_PLAY
} phase_t;

/*  What the time goes to, as heartbeats say it. Wait_roster: for a roster, a learner's first credit, env states. */
#define STAGES(X) X(env) X(policy) X(wait_credit) X(wait_weights) X(wait_roster)
typedef enum {
#define X(name) STAGE_##name,
    STAGES(X)
#undef X
        STAGE_COUNT
} stage_t;

struct batches {
    batches_opts_t o;
    const tt_clock_t *clock;
    phase_t phase;
    int64_t phase_ns; /* since when                               */

    tt_packet_t roster; /* to be acted on                         */
    bool roster_new;
    uint32_t era;
    uint64_t epoch, generation;
    uint32_t env_lo, env_count; /* our range; 0 = none                    */
    bool placed;                /* envs and `next` are right for era and range */
    bool drawn;                 /* its envs may come out of `left`             */
    bool warm;                  /* envs of this job have been made here        */

    peers_t peers;
    weights_t weights;
    resend_t resend;
    blocks_t *blocks;
    tt_inference_t *net;
    tt_norm_t *norm; /* NULL = observations are not normalised */
    tt_columns_t *columns;
    tt_env_arg_t args[TT_ENV_ARGS_MAX + 1];
    rollout_t *rollout; /* of our range                           */
    tt_vec_t *left;     /* envs of the range before it, for what the next one has use for; NULL = none */
    uint64_t next;      /* first batch that is not collected      */
    uint64_t loaded;    /* version in net and norm; UINT64_MAX = none */
    uint64_t env_steps;
    uint64_t loads, moves; /* progress besides: times that envs got on with being loaded; and of this load */
    bool said_first_step;

    uint32_t awaited;            /* the learner whose credit we wait for              */
    int64_t ask_ns, ask_wait_ms; /* last ATTACH, FETCH ..., and when to say it again */
    uint64_t fetch_id;           /* of the FETCH whose answer we wait for; 0 = none  */
    uint64_t fetches;
    bool heard_weights; /* WEIGHTS come by themselves from this roster's rank 0 */
    tt_laps_t laps;
};

/* ---- small things ------------------------------------------------------------------------------------------------ */

static void s_enter(batches_t *self, phase_t phase)
{
    self->phase = phase;
    self->phase_ns = tt_now_ns(self->clock);
    self->ask_ns = 0;
    self->ask_wait_ms = 0;
    self->fetch_id = 0;
}

/*  Is it time to ask (again)? Then the next time is twice as far away, at most a quarter of a lease. */
static bool s_ask_now(batches_t *self, int64_t first_ms)
{
    const int64_t now = tt_now_ns(self->clock);
    if (self->ask_ns && now - self->ask_ns < self->ask_wait_ms * 1000000)
        return false;
    const tt_backoff_rule_t rule = {.first = first_ms, .most = self->o.lease_ms / 4 + 1};
    self->ask_ns = now;
    self->ask_wait_ms = tt_backoff_next(&rule, self->ask_wait_ms);
    return true;
}

static int64_t s_until_ask(const batches_t *self)
{
    const int64_t left = self->ask_ns + self->ask_wait_ms * 1000000 - tt_now_ns(self->clock);
    return left > 0 ? left / 1000000 + 1 : 1;
}

static uint32_t s_index(const batches_t *self)
{
    return tt_link_index(self->o.link);
}

static uint64_t s_version_of(const batches_t *self, uint64_t batch)
{
    return batch > self->o.cfg->lag ? batch - self->o.cfg->lag : 0;
}

static void s_fetch(batches_t *self, tt_msg_FETCH_t *fetch)
{
    peer_t *rank0 = peers_of_rank(&self->peers, 0);
    if (!rank0)
        return;
    fetch->id = self->fetch_id = ++self->fetches;
    fetch->era = self->era;
    if (tt_sock_send(rank0->sock, NULL, fetch, NULL, 0) != TT_OK)
        log_debug("FETCH to learner/%u: %s", rank0->index, tt_err_text());
}

/* ---- what learners say ------------------------------------------------------------------------------------------- */

/*  Half a lease for each segment: where there are several, each is large. */
static int64_t s_patience_ns(const batches_t *self, uint64_t batch)
{
    const uint32_t parts = resend_parts(&self->resend, batch);
    return self->o.lease_ms * 500000 * (parts ? parts : 1);
}

/*  A learner whose base stands still although it was sent that batch long ago has lost it: send it again. */
static void s_on_credit(batches_t *self, peer_t *peer, const tt_msg_CREDIT_t *credit)
{
    if (credit->era != self->era || credit->epoch != self->epoch)
        return;
    if (credit->base > credit->upto) {
        log_warn("CREDIT from learner/%u dropped: it lacks batch %" PRIu64 " and takes those below %" PRIu64,
            peer->index, credit->base, credit->upto);
        return;
    }
    const int64_t now = tt_now_ns(self->clock);
    if (!peer->credited || credit->base != peer->base)
        peer->base_ns = now;
    if (!peer->credited || (peer->next > credit->base && now - peer->base_ns > s_patience_ns(self, credit->base))) {
        peers_aim(peer, credit->base);
        peer->base_ns = now;
    }
    if (!peer->credited || credit->upto > peer->upto) /* a version may have said more before this came */
        peer->upto = credit->upto;
    peer->credited = true;
    peer->base = credit->base;
}

/*  What is trained was sent, and so lay within credit. */
static void s_on_ack(batches_t *self, const peer_t *peer, uint64_t below)
{
    if (peer->credited && below > peer->upto)
        log_warn("ACK below batch %" PRIu64 " from learner/%u dropped: its credit ends below %" PRIu64, below,
            peer->index, peer->upto);
    else if (peer->credited)
        resend_drop(&self->resend, below);
}

static void s_on_weights(batches_t *self, uint32_t era, uint64_t version, tt_packet_t *packet)
{
    if (era != self->era)
        return;
    const uint64_t need = s_version_of(self, self->next);
    if (weights_add(&self->weights, version, need, packet->frame, packet->frame_count) != TT_OK)
        log_warn("dropped: %s", tt_err_text());
}

/*  Who publishes version v trains batch v next, and has room for those that the lag allows: that is CREDIT too, and it is
 *  here before the one that follows. From this roster's rank 0 only: another may be an update behind. */
static void s_on_published(batches_t *self, const tt_msg_WEIGHTS_t *weights)
{
    peer_t *rank0 = peers_of_rank(&self->peers, 0);
    const uint64_t upto = weights->version + self->o.cfg->lag + 1;
    if (weights->era != self->era || weights->generation != self->generation || weights->version > self->next)
        return;
    if (rank0 && rank0->credited && rank0->upto < upto)
        rank0->upto = upto;
}

static tt_status_t s_new_rollout(batches_t *self, bool loads);

static tt_status_t s_on_states(batches_t *self, const tt_msg_FETCHED_t *msg, tt_packet_t *packet)
{
    if (self->phase != AT_STATES || msg->batch != self->next || packet->frame_count != 1)
        return TT_OK;
    const size_t bytes = zmq_msg_size(&packet->frame[0]);
    if (bytes)
        TT_TRY(rollout_load(self->rollout, zmq_msg_data(&packet->frame[0]), bytes));
    else if (self->drawn) /* they begin anew: not in envs that have been played before */
        TT_TRY(s_new_rollout(self, false));
    tt_link_state(self->o.link, "loading states of envs %u..%u", self->env_lo, self->env_lo + self->env_count - 1);
    self->moves = 0;
    s_enter(self, AT_LOAD);
    return TT_OK;
}

/*  What we asked for is gone: the run has moved on, and so do we; a little later, lest two of us chase each other. */
static void s_start_over(batches_t *self)
{
    self->placed = false;
    peers_uncredit(&self->peers);
    s_enter(self, AT_ATTACH);
    self->ask_ns = self->phase_ns;
    self->ask_wait_ms = WEIGHTS_MS;
}

static tt_status_t s_on_fetched(batches_t *self, tt_packet_t *packet)
{
    const tt_msg_FETCHED_t *msg = &packet->msg.FETCHED;
    if (msg->what == TT_FETCH_WEIGHTS && !msg->gone)
        s_on_weights(self, msg->era, msg->version, packet);
    if (msg->id != self->fetch_id || msg->era != self->era)
        return TT_OK;
    if (msg->gone)
        s_start_over(self);
    else if (msg->what == TT_FETCH_ENVS)
        return s_on_states(self, msg, packet);
    return TT_OK;
}

static tt_status_t s_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    batches_t *self = ctx;
    peer_t *peer = peers_of_sock(&self->peers, sock);
    switch (packet->msg.type) {
    case TT_MSG_WEIGHTS:
        self->heard_weights = true;
        s_on_published(self, &packet->msg.WEIGHTS);
        s_on_weights(self, packet->msg.WEIGHTS.era, packet->msg.WEIGHTS.version, packet);
        return TT_OK;
    case TT_MSG_CREDIT:
        if (peer)
            s_on_credit(self, peer, &packet->msg.CREDIT);
        return TT_OK;
    case TT_MSG_ACK:
        if (peer && packet->msg.ACK.era == self->era)
            s_on_ack(self, peer, packet->msg.ACK.below);
        return TT_OK;
    case TT_MSG_FETCHED:
        return s_on_fetched(self, packet);
    default:
        log_warn("%s from a learner dropped", tt_msg_name(packet->msg.type));
        return TT_OK;
    }
}

/* ---- rosters ----------------------------------------------------------------------------------------------------- */

void batches_roster(batches_t *self, tt_packet_t *roster)
{
    tt_packet_clear(&self->roster);
    self->roster = (tt_packet_t){.msg = roster->msg}; /* a ROSTER has no frames */
    self->roster_new = true;
    *roster = (tt_packet_t){0};
}

static const tt_rec_MEMBER_t *s_me(const batches_t *self, const tt_msg_ROSTER_t *roster)
{
    for (size_t i = 0; i < roster->members_count; i++)
        if (roster->members[i].role == TT_PEER_COLLECTOR &&
            roster->members[i].instance == tt_link_instance(self->o.link))
            return &roster->members[i];
    return NULL;
}

/*  The envs of what was our range wait for the next one. */
static void s_leave(batches_t *self)
{
    if (!self->rollout)
        return;
    tt_vec_destroy(&self->left);
    self->left = rollout_leave(&self->rollout);
}

static tt_status_t s_take_range(batches_t *self, const tt_rec_MEMBER_t *me)
{
    const uint32_t lo = me ? me->env_lo : 0, count = me ? me->env_count : 0, all = self->o.cfg->num_envs;
    if (lo > all || count > all - lo)
        return tt_err(TT_PROTOCOL, "ROSTER: envs %u..+%u, the job has %u", lo, count, all);
    if (lo == self->env_lo && count == self->env_count)
        return TT_OK;
    self->env_lo = lo;
    self->env_count = count;
    self->placed = false;
    s_leave(self);
    return TT_OK;
}

/*  Who has made envs is not waited for by those that play already. */
static void s_say_warm(batches_t *self, bool warm)
{
    self->warm = warm;
    if (tt_train_collectors_warm(self->o.cfg))
        tt_link_warm(self->o.link, warm);
}

/*  Left out of a roster that others play in: envs that take long to make are made now, as many as our part will be, for the range that is
 *  ours once we say so. */
static tt_status_t s_warm_up(batches_t *self, const tt_msg_ROSTER_t *roster)
{
    uint32_t parts = 1;
    for (size_t i = 0; i < roster->members_count; i++)
        parts += roster->members[i].role == TT_PEER_COLLECTOR;
    const uint32_t all = self->o.cfg->num_envs, count = all / parts + (all % parts != 0);
    if (!tt_train_collectors_warm(self->o.cfg) || self->warm || parts == 1 || parts > all)
        return TT_OK;
    const tt_vec_cfg_t cfg = {.ops = self->o.env,
        .args = self->args,
        .columns = self->columns,
        .squash = self->o.cfg->actor.squash,
        .seed = self->o.cfg->seed,
        .lo = all - count,
        .count = count};
    tt_link_state(self->o.link, "warming: making %u envs of %s", count, self->o.env->id);
    tt_vec_destroy(&self->left);
    TT_TRY(tt_vec_new(&self->left, &cfg));
    s_say_warm(self, true);
    tt_link_state(self->o.link, "idle: warm, waiting for a place in the roster");
    return TT_OK;
}

static tt_status_t s_take_roster(batches_t *self)
{
    const tt_msg_ROSTER_t *roster = &self->roster.msg.ROSTER;
    const tt_rec_MEMBER_t *me = s_me(self, roster);
    if (roster->era != self->era) { /* what came before is void */
        self->placed = false;
        resend_drop(&self->resend, UINT64_MAX);
        weights_clear(&self->weights);
        self->loaded = UINT64_MAX;
    }
    self->era = roster->era;
    self->epoch = roster->epoch;
    self->generation = roster->generation;
    self->heard_weights = false;
    TT_TRY(s_take_range(self, me));
    TT_TRY(peers_take(&self->peers, self->env_count ? roster : NULL));
    tt_link_roster(self->o.link, roster);
    tt_link_holds(self->o.link, false, 0, roster->era, roster->generation);
    if (self->env_count)
        log_info("epoch %" PRIu64 ": envs %u..%u, %zu learners", self->epoch, self->env_lo,
            self->env_lo + self->env_count - 1, self->peers.count);
    else
        tt_link_state(self->o.link, "idle: no envs for me in the roster");
    if (!me)
        TT_TRY(s_warm_up(self, roster));
    s_enter(self, self->env_count && self->peers.count ? AT_ATTACH : AT_ROSTER);
    return TT_OK;
}

/* ---- the phases: each returns TT_OK when it moved on, TT_AGAIN to wait --------------------------------------------- */

static void s_attach(batches_t *self, peer_t *peer)
{
    const tt_msg_ATTACH_t attach = TT_MSG(ATTACH, .role = TT_PEER_COLLECTOR, .index = s_index(self),
        .instance = tt_link_instance(self->o.link), .era = self->era, .epoch = self->epoch);
    if (tt_sock_send(peer->sock, NULL, &attach, NULL, 0) != TT_OK)
        log_debug("ATTACH to learner/%u: %s", peer->index, tt_err_text());
}

/*  Envs of our range at their beginnings, as many steps on as batches have been. loads: states will be put over them, so that they
 *  may be those of the range before, which else are none that this one could begin with. */
static tt_status_t s_new_rollout(batches_t *self, bool loads)
{
    s_leave(self);
    if (!loads)
        tt_vec_destroy(&self->left);
    const rollout_cfg_t cfg = {.env = self->o.env,
        .args = self->args,
        .columns = self->columns,
        .net = self->net,
        .norm = self->norm,
        .blocks = self->blocks,
        .clip_obs = self->o.cfg->normalize.clip_obs,
        .seed = self->o.cfg->seed,
        .env_lo = self->env_lo,
        .env_count = self->env_count,
        .steps = self->o.cfg->num_steps,
        .segment_envs = tt_train_segment_envs(self->o.cfg, self->columns),
        .taken = self->next * self->o.cfg->num_steps,
        .clock = self->clock,
        .actor = self->o.cfg->actor,
        .num_envs = self->o.cfg->num_envs,
        .from = self->left};
    const tt_status_t status = rollout_new(&self->rollout, &cfg);
    self->drawn = self->left != NULL;
    tt_vec_destroy(&self->left);
    if (status == TT_OK)
        s_say_warm(self, true);
    return status;
}

/*  Where what we collect again has other bits, batches that rank 0 has stay as they are: the others get them from it. */
static uint64_t s_first_needed(const batches_t *self)
{
    const peer_t *rank0 = peers_of_rank(&self->peers, 0);
    const bool same_bits = self->o.cfg->lag <= 1 && self->o.cfg->space.env_state > 0;
    return same_bits || !rank0 ? peers_start(&self->peers) : rank0->base;
}

/*  Every learner has said where it stands: go on, or start over from the earliest. */
static tt_status_t s_start(batches_t *self)
{
    const uint64_t start = s_first_needed(self);
    const bool still_kept = start == self->next || (start < self->next && resend_parts(&self->resend, start));
    if (self->placed && still_kept) {
        s_enter(self, rollout_in_hand(self->rollout) ? AT_PLAY : AT_CREDIT);
        return TT_OK;
    }
    resend_drop(&self->resend, UINT64_MAX);
    peers_aim_all(&self->peers); /* who was early with its credit has been sent what there was of the range before */
    self->next = start;
    tt_link_state(
        self->o.link, "making envs %u..%u of %s", self->env_lo, self->env_lo + self->env_count - 1, self->o.env->id);
    const bool loads = start > 0 && self->o.cfg->space.env_state > 0;
    TT_TRY(s_new_rollout(self, loads));
    self->placed = start == 0 || rollout_state_bytes(self->rollout) == 0;
    if (self->placed && start > 0)
        log_warn("%s cannot save its state: envs %u..%u begin anew at batch %" PRIu64 "; this run is not reproducible",
            self->o.env->id, self->env_lo, self->env_lo + self->env_count - 1, start);
    s_enter(self, self->placed ? AT_CREDIT : AT_STATES);
    return TT_OK;
}

static tt_status_t s_do_attach(batches_t *self)
{
    const peer_t *silent = peers_silent(&self->peers);
    if (!silent)
        return s_start(self);
    if (s_ask_now(self, ATTACH_FIRST_MS)) {
        for (size_t i = 0; i < self->peers.count; i++)
            if (!self->peers.at[i].credited)
                s_attach(self, &self->peers.at[i]);
        tt_link_state(
            self->o.link, "waiting for CREDIT of epoch %" PRIu64 " from learner/%u", self->epoch, silent->index);
    }
    return TT_AGAIN;
}

static tt_status_t s_do_states(batches_t *self)
{
    if (!s_ask_now(self, self->o.lease_ms / 4))
        return TT_AGAIN;
    const peer_t *rank0 = peers_of_rank(&self->peers, 0);
    tt_msg_FETCH_t fetch =
        TT_MSG(FETCH, .what = TT_FETCH_ENVS, .batch = self->next, .env_lo = self->env_lo, .env_count = self->env_count);
    s_fetch(self, &fetch);
    tt_link_state(self->o.link, "waiting for env states of batch %" PRIu64 " from learner/%u", self->next,
        rank0 ? rank0->index : 0);
    return TT_AGAIN;
}

static void s_tell_progress(batches_t *self)
{
    tt_link_progress(self->o.link, self->env_steps + self->loads);
}

/*  Actions that are made again take long: whoever gets on with them says so. */
static tt_status_t s_do_load(batches_t *self)
{
    bool all;
    uint64_t moves;
    TT_TRY(rollout_loaded(self->rollout, &all, &moves));
    if (moves != self->moves) {
        self->moves = moves;
        self->loads++;
        s_tell_progress(self);
    }
    if (!all)
        return TT_AGAIN;
    self->placed = true;
    s_enter(self, AT_CREDIT);
    return TT_OK;
}

static tt_status_t s_do_credit(batches_t *self)
{
    const peer_t *tight = peers_tight(&self->peers, self->next);
    if (!tight) {
        s_enter(self, AT_WEIGHTS);
        return TT_OK;
    }
    const bool first = self->ask_ns == 0;
    if (first || tight->index != self->awaited)
        tt_link_state(
            self->o.link, "waiting for credit for batch %" PRIu64 " from learner/%u", self->next, tight->index);
    self->awaited = tight->index;
    if (s_ask_now(self, self->o.lease_ms / 4) && !first) /* a message may have been lost with a connection */
        for (size_t i = 0; i < self->peers.count; i++)
            s_attach(self, &self->peers.at[i]);
    return TT_AGAIN;
}

static tt_status_t s_load(batches_t *self, const weights_version_t *weights)
{
    if (self->loaded == weights->version)
        return TT_OK;
    zmq_msg_t *params = (zmq_msg_t *)&weights->params, *norm = (zmq_msg_t *)&weights->norm;
    float *copy = tt_aligned0(zmq_msg_size(params)); /* a frame need not be aligned for floats */
    memcpy(copy, zmq_msg_data(params), zmq_msg_size(params));
    tt_status_t status = tt_inference_put(self->net, copy);
    free(copy);
    if (status == TT_OK && self->norm) {
        double *block = tt_aligned0(self->weights.norm_bytes);
        memcpy(block, zmq_msg_data(norm), self->weights.norm_bytes);
        status = tt_norm_load(self->norm, block, self->weights.norm_bytes / sizeof *block);
        free(block);
    }
    if (status == TT_OK)
        self->loaded = weights->version;
    return status;
}

static tt_status_t s_do_weights(batches_t *self)
{
    const bool exact = self->o.cfg->lag <= 1;
    const uint64_t version = s_version_of(self, self->next);
    const weights_version_t *weights =
        exact ? weights_find(&self->weights, version) : weights_newest(&self->weights, version, self->next);
    if (weights) {
        TT_TRY(s_load(self, weights));
        TT_TRY(rollout_begin(self->rollout));
        s_enter(self, AT_PLAY);
        tt_link_state(self->o.link, "collecting batch %" PRIu64 " with version %" PRIu64, self->next, self->loaded);
        return TT_OK;
    }
    const bool patient = self->heard_weights && tt_now_ns(self->clock) - self->phase_ns < WEIGHTS_MS * 1000000;
    if (self->ask_ns == 0 && !patient)
        tt_link_state(self->o.link, "waiting for version %" PRIu64, version);
    if (!patient && s_ask_now(self, self->o.lease_ms / 4)) {
        tt_msg_FETCH_t fetch = TT_MSG(FETCH, .what = TT_FETCH_WEIGHTS, .version = version, .newest = !exact);
        s_fetch(self, &fetch);
    }
    return TT_AGAIN;
}

static void s_say_first_step(batches_t *self)
{
    self->said_first_step = true; /* the coordinator keeps the first of all, in a resumed run too */
    tt_link_send(self->o.link, &TT_MSG(EVENT, .kind = (char *)"first_step", .time_ns = tt_now_ns(self->clock)));
}

static void s_keep(batches_t *self, rollout_segment_t *played)
{
    const tt_segment_shape_t *shape = &played->shape;
    const tt_msg_SEGMENT_t segment = TT_MSG(SEGMENT, .era = self->era, .instance = tt_link_instance(self->o.link),
        .batch = self->next, .version = self->loaded, .env_lo = self->env_lo + played->first, .env_count = shape->E,
        .steps = shape->T, .columns = self->columns->hash, .finals = shape->K, .state_bytes = shape->S,
        .before = played->first, .after = self->env_count - played->first - shape->E);
    resend_add(&self->resend, &segment, &played->frame);
}

static tt_status_t s_with_version(const batches_t *self, tt_status_t status)
{
    return status == TT_DIVERGED ? tt_diverged("batch %" PRIu64 ", played with version %" PRIu64 ": %s", self->next,
                                       self->loaded, tt_err_text())
                                 : status;
}

static tt_status_t s_finish(batches_t *self)
{
    const uint32_t count = rollout_segments(self->rollout);
    rollout_segment_t *segment = tt_array0(count, sizeof *segment);
    const tt_status_t status = s_with_version(self, rollout_finish(self->rollout, segment));
    for (uint32_t i = 0; status == TT_OK && i < count; i++)
        s_keep(self, &segment[i]);
    free(segment);
    TT_TRY(status);
    self->next++;
    s_enter(self, AT_CREDIT);
    return TT_OK;
}

static tt_status_t s_do_play(batches_t *self)
{
    const int64_t start = tt_now_ns(self->clock);
    bool done = false;
    if (!self->said_first_step)
        s_say_first_step(self);
    do {
        TT_TRY(s_with_version(self, rollout_play(self->rollout, 1, &done)));
        self->env_steps += self->env_count;
    } while (!done && tt_now_ns(self->clock) - start < SLICE_US * 1000);
    s_tell_progress(self);
    return done ? s_finish(self) : TT_AGAIN;
}

/*  A lap of play is divided as the timed steps say. */
static void s_lap(batches_t *self, phase_t phase)
{
    static const stage_t stages[] = {
        [AT_ROSTER] = STAGE_wait_roster,
        [AT_ATTACH] = STAGE_wait_roster,
        [AT_STATES] = STAGE_wait_roster,
        [AT_LOAD] = STAGE_wait_roster,
        [AT_CREDIT] = STAGE_wait_credit,
        [AT_WEIGHTS] = STAGE_wait_weights,
        [AT_PLAY] = STAGE_env,
    };
    const int64_t now = tt_now_ns(self->clock), lap = now - self->laps.lap_ns;
    if (phase == AT_PLAY && self->rollout)
        tt_lap(&self->laps, STAGE_policy, now - (int64_t)((double)lap * rollout_env_share(self->rollout)));
    tt_lap(&self->laps, stages[phase], now);
}

static void s_tell_laps(batches_t *self)
{
    static const char *const names[] = {
#define X(name) #name,
        STAGES(X)
#undef X
    };
    tt_link_spent(self->o.link, names, self->laps.spent_ns, STAGE_COUNT);
}

static int64_t s_wait_ms(const batches_t *self, tt_status_t status)
{
    if (status == TT_OK || self->phase == AT_PLAY || self->phase == AT_LOAD)
        return 0;
    if (self->phase == AT_WEIGHTS && self->ask_ns == 0)
        return WEIGHTS_MS;
    return s_until_ask(self);
}

/*  Without a range for long, nothing is kept for the next one. */
static void s_forget_left(batches_t *self)
{
    if (self->left && tt_now_ns(self->clock) - self->phase_ns > guard_idle_ms() * 1000000) {
        tt_vec_destroy(&self->left);
        s_say_warm(self, false);
    }
}

tt_status_t batches_advance(batches_t *self, int64_t *wait_ms)
{
    static tt_status_t (*const s_do[])(batches_t *) = {
        [AT_ATTACH] = s_do_attach,
        [AT_STATES] = s_do_states,
        [AT_LOAD] = s_do_load,
        [AT_CREDIT] = s_do_credit,
        [AT_WEIGHTS] = s_do_weights,
        [AT_PLAY] = s_do_play,
    };
    if (self->roster_new && self->phase != AT_LOAD) { /* who loads can be asked for nothing else */
        self->roster_new = false;
        TT_TRY(s_take_roster(self));
    }
    *wait_ms = self->o.lease_ms;
    const phase_t phase = self->phase;
    s_lap(self, phase); /* until now we waited */
    s_tell_laps(self);
    if (phase == AT_ROSTER) {
        s_forget_left(self);
        return TT_OK;
    }
    const tt_status_t status = s_do[phase](self);
    peers_flush(&self->peers, &self->resend, self->next);
    s_lap(self, phase);
    *wait_ms = s_wait_ms(self, status);
    return status == TT_AGAIN ? TT_OK : status;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static size_t s_largest(size_t a, size_t b, size_t c)
{
    const size_t ab = a > b ? a : b;
    return ab > c ? ab : c;
}

static tt_status_t s_open(batches_t *self)
{
    const tt_train_cfg_t *cfg = self->o.cfg;
    TT_TRY(tt_train_fit(NULL, cfg));
    TT_TRY(tt_train_columns(&self->columns, cfg));
    const tt_net_spec_t spec = tt_train_net(cfg, self->columns);
    TT_TRY(tt_inference_new(&self->net, cfg->collector.device, tt_link_index(self->o.link), &spec));
    log_info("policy: %zu parameters, %s", tt_net_param_count(&spec), tt_inference_device(self->net));
    if (cfg->normalize.obs)
        self->norm = tt_norm_new(self->columns->scaled);
    const size_t params = tt_mul(tt_net_param_count(&spec), sizeof(float));
    const size_t states = tt_mul(cfg->num_envs, tt_train_state_bytes(cfg, self->columns));
    const size_t norm = self->norm ? tt_norm_block_count(self->columns->scaled) * sizeof(double) : 0;
    const tt_segment_shape_t largest = tt_train_segment(cfg, self->columns);
    size_t segment;
    TT_TRY(tt_segment_size(&largest, &segment));
    weights_init(&self->weights, cfg->lag + 2, params, norm);
    self->peers = (peers_t){.location = self->o.location, .loop = self->o.loop, .on_packet = s_on_packet, .ctx = self};
    self->peers.max_bytes = FRAME_SLACK + norm + s_largest(params, states, 2 * segment); /* twice: finals */
    snprintf(self->peers.identity, sizeof self->peers.identity, "collector/%u/%" PRIx64, s_index(self),
        tt_link_instance(self->o.link));
    return peers_init(&self->peers);
}

tt_status_t batches_new(batches_t **self_p, const batches_opts_t *opts)
{
    TT_TRY(same_env_check(opts->env, opts->cfg));
    batches_t *self = tt_new0(sizeof *self);
    self->o = *opts;
    self->clock = opts->location->clock;
    self->laps.lap_ns = tt_now_ns(self->clock);
    self->blocks = blocks_new();
    self->loaded = UINT64_MAX;
    tt_env_args_of(self->args, opts->cfg);
    const tt_status_t status = s_open(self);
    if (status != TT_OK) {
        batches_destroy(&self);
        return status;
    }
    *self_p = self;
    return TT_OK;
}

void batches_destroy(batches_t **self_p)
{
    batches_t *self = *self_p;
    if (!self)
        return;
    peers_free(&self->peers);
    rollout_destroy(&self->rollout);
    tt_vec_destroy(&self->left);
    resend_free(&self->resend);
    weights_free(&self->weights);
    blocks_destroy(&self->blocks);
    tt_norm_destroy(&self->norm);
    tt_inference_destroy(&self->net);
    tt_packet_clear(&self->roster);
    tt_columns_destroy(&self->columns);
    free(self);
    *self_p = NULL;
}

uint64_t batches_env_steps(const batches_t *self)
{
    return self->env_steps;
}

uint64_t batches_next(const batches_t *self)
{
    return self->next;
}
