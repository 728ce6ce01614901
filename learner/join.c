/*  join - from nothing to weights. */
#define TT_LOG_COMPONENT "learner"
#include <stdio.h>
#include <string.h>
#include "common/base/log.h"
#include "learner/core.h"

void join_reset(core_t *self)
{
    if (self->at.holds)
        log_warn("era %u: what came after the snapshot is void", self->view.era);
    position_reset(&self->at);
    boundary_drop(&self->boundary);
    compose_reset(&self->compose);
    record_reset(&self->record);
    ending_reset(&self->ending);
    keeping_reset(self);
    data_reset(&self->data);
    if (self->evaluate)
        evaluate_reset(self->evaluate);
    statistics_reset(&self->statistics);
}

/*  We have weights: say so, let collectors send, answer who waited for us. */
static tt_status_t s_hold(core_t *self)
{
    position_hold(&self->at, self->view.era);
    warm_reset(self);
    core_lap(self, CORE_other);
    report_begin(self);
    checkpoint_begin(self);
    tt_log_version((int64_t)self->at.update);
    tt_link_holds(self->link, true, self->at.update, self->view.era, self->view.generation);
    core_progress(self);
    if (core_leads(self)) {
        report_solved_again(self); /* of the snapshot: the coordinator may have lost its journal, and this with it */
        TT_TRY(publish_send(
            publish_newest(self->data.publish), self->socks.weights, self->view.era, self->view.generation));
    }
    feed_credit_all(self);
    fetch_retry(self);
    return TT_OK;
}

static tt_status_t s_make_version_0(core_t *self)
{
    tt_link_state(self->link, "making the first weights"); /* orthogonal ones of wide layers take minutes */
    TT_TRY(model_init(&self->model, core_gets_on(self)));
    version_t *version = publish_add(self->data.publish, 0);
    TT_TRY(tt_net_get(self->model.net, self->model.stream, 0, version_params(version)));
    tt_norm_t *obs = tt_norm_new(self->model.columns->scaled), *reward = tt_norm_new(1);
    tt_norm_save(obs, version_norm(version));
    tt_norm_save(reward, version->reward);
    tt_norm_destroy(&obs);
    tt_norm_destroy(&reward);
    log_info("version 0 from seed %llu", (unsigned long long)self->model.train.seed);
    return TT_OK;
}

/*  Of a run directory on another host, by way of the coordinator. TT_STOPPED: another roster came meanwhile. */
static tt_status_t s_read_there(core_t *self, tt_snapshot_t *snapshot, const char *path)
{
    tt_buf_t bytes;
    const uint64_t epoch = self->view.epoch;
    tt_buf_init(&bytes, TT_SNAPSHOT_WIRE_MAX);
    tt_status_t status = snapshot_remote_load(self, path, &bytes);
    if (status == TT_OK && self->view.epoch != epoch)
        status = TT_STOPPED;
    if (status == TT_OK)
        status = tt_snapshot_decode(snapshot, bytes.data, bytes.size);
    tt_buf_free(&bytes);
    return status;
}

static tt_status_t s_load(core_t *self, const char *path)
{
    tt_snapshot_t snapshot;
    char folder[4200] = "";
    state_expect(self, &snapshot);
    if (self->location->dir[0])
        snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    TT_TRY(folder[0] ? tt_snapshot_read(&snapshot, path) : s_read_there(self, &snapshot, path));
    tt_status_t status = snapshot.step == 0 ? state_restore(self, &snapshot, folder)
                                            : tt_err(TT_DATA, "not at a boundary between updates");
    tt_snapshot_close(&snapshot);
    if (status != TT_OK)
        return tt_err_wrap(status, "%s", path);
    log_info("update %llu from %s", (unsigned long long)self->at.update, path);
    return TT_OK;
}

/*  The roster's words may be gone before they are read. */
static tt_status_t s_restore(core_t *self)
{
    char path[4200];
    snprintf(path, sizeof path, "%s", self->view.restore);
    const tt_status_t status = s_load(self, path);
    return status != TT_OK && keeping_refuse(self, path) ? TT_STOPPED : status;
}

static tt_status_t s_take_state(core_t *self, tt_packet_t *packet)
{
    const tt_msg_FETCHED_t *answer = &packet->msg.FETCHED;
    if (answer->gone || packet->frame_count != 1) {
        warm_again(self); /* too much is lacking; or of another era: a roster is on its way */
        return TT_AGAIN;
    }
    tt_snapshot_t snapshot;
    state_expect(self, &snapshot);
    TT_TRY(tt_snapshot_decode(&snapshot, zmq_msg_data(&packet->frame[0]), zmq_msg_size(&packet->frame[0])));
    const tt_status_t status = state_restore(self, &snapshot, NULL);
    tt_snapshot_close(&snapshot);
    if (status == TT_OK)
        log_info("joined at update %llu, step %u", (unsigned long long)self->at.update, self->at.step);
    return status;
}

static tt_status_t s_fetch_state(core_t *self)
{
    const view_peer_t *leader = &self->view.learner[0];
    const tt_msg_FETCH_t question = TT_MSG(FETCH, .what = TT_FETCH_STATE, .era = self->view.era,
        .generation = self->view.generation, .batch = warm_next(self));
    tt_packet_t packet = {0};
    tt_status_t status = ask_for(self->data.ask, leader, &question, &packet);
    if (status == TT_OK) {
        status = s_take_state(self, &packet);
        tt_packet_clear(&packet);
    }
    if (status == TT_AGAIN)
        return core_wait(self, "waiting for the state of learner/%u", leader->index);
    return status == TT_OK ? s_hold(self) : status;
}

/*  In the roster already: an era begins with all who are there. */
static tt_status_t s_follow(core_t *self)
{
    char words[96];
    bool warm;
    TT_TRY(warm_turn(self, &warm));
    return warm ? s_fetch_state(self) : core_wait(self, "%s", warm_words(self, words, sizeof words));
}

tt_status_t join_outside(core_t *self)
{
    char words[96];
    const view_t *view = &self->view;
    bool warm = true;
    if (view->learners > 0 && view->learners < self->model.train.learner.shards)
        TT_TRY(warm_turn(self, &warm));
    return core_wait(
        self, "%s", warm ? "idle: waiting for a place in the roster" : warm_words(self, words, sizeof words));
}

tt_status_t join_turn(core_t *self)
{
    if (self->view.rank > 0)
        return s_follow(self);
    /* only the coordinator knows that nobody holds newer weights: to begin unasked would make two histories */
    if (!self->view.fresh)
        return core_wait(self, "waiting for a roster in which rank 0 has weights, or may make them");
    if (keeping_refused(self))
        return core_wait(self, "waiting for a roster with another snapshot: this one's replay is damaged");
    const tt_status_t status = self->view.restore ? s_restore(self) : s_make_version_0(self);
    if (status == TT_STOPPED)
        return TT_OK;
    return status == TT_OK ? s_hold(self) : status;
}
