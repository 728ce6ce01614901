/*  update - one turn: batch n makes version n + 1. */
#define TT_LOG_COMPONENT "update"
#include "common/base/log.h"
#include "common/job/diverged.h"
#include "common/nn/tree.h"
#include "learner/core.h"

/*  Nothing of the update in hand counts any more. */
static bool s_void(const core_t *self)
{
    return self->ending.leave || !self->at.holds || !self->view.member || !self->at.begun;
}

/* ---- begin ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_assemble(core_t *self)
{
    const uint64_t n = self->at.update, lag = self->model.train.lag;
    /* this version's normalisers, though newer ones are there: every learner must see the same numbers */
    version_t *version = publish_find(self->data.publish, n > lag ? n - lag : 0);
    TT_CHECK(version != NULL);
    TT_TRY(statistics_load(&self->statistics, version));
    data_assemble(&self->data, n, n * self->model.batch_steps, self->statistics.obs_norm, self->statistics.reward_norm);
    return TT_OK;
}

static void s_count_episodes(core_t *self)
{
    if (self->at.batches_counted > self->at.update)
        return;
    const uint32_t broken = statistics_count(&self->statistics, self->data.batch, &self->data.current);
    if (broken)
        log_info("batch %llu: %u of %u envs begin anew: what was seen of their episodes does not count",
            (unsigned long long)self->at.update, broken, self->model.train.num_envs);
    position_count(&self->at);
}

static void s_check_rules(core_t *self)
{
    const stop_facts_t facts = report_facts(self);
    if (!self->record.solved_steps && stop_solved(&self->model.train, &facts))
        report_solved(self);
    ending_rule(&self->ending, stop_reason(&self->model.train, &facts));
}

static tt_status_t s_begin_batch(core_t *self)
{
    const tt_algorithm_t *algorithm = self->model.algorithm;
    const tt_evaluator_t net = compute_evaluator(self->data.compute);
    TT_TRY(compute_batch(self->data.compute, &self->data.current));
    TT_TRY(algorithm->begin(self->model.algo, &self->data.current, &net));
    position_plan(&self->at, algorithm->steps(self->model.algo));
    return TT_OK;
}

/*  Rows of any age are read with the normaliser of version n, which knows all batches before this one. Where nothing is owed there is one step all the same, of nothing: its sum tells that everyone has the batch, which is
 *  acknowledged after it. */
static tt_status_t s_begin_replay(core_t *self)
{
    const intake_batch_t *batch = intake_batch(self->data.intake, self->at.update);
    version_t *version = publish_find(self->data.publish, self->at.update);
    TT_CHECK(version != NULL);
    TT_TRY(memory_scale(self->data.memory, version_norm(version)));
    TT_TRY(memory_insert(self->data.memory, batch, tt_episodes_broken(self->statistics.episodes)));
    position_owe(&self->at, memory_owed(self->data.memory, self->at.update));
    return TT_OK;
}

static tt_status_t s_begin(core_t *self)
{
    results_drop(compute_results(self->data.compute));        /* of an update that is void */
    compute_progress(self->data.compute, core_gets_on(self)); /* an update may outlast what anybody may stand still */
    core_lap(self, CORE_wait_batch);
    tt_link_state(self->link, "update %llu: begins", (unsigned long long)self->at.update);
    TT_TRY(s_assemble(self));
    s_count_episodes(self);
    s_check_rules(self);
    if (self->ending.reason)
        return TT_OK;
    TT_TRY(self->data.memory ? s_begin_replay(self) : s_begin_batch(self));
    TT_TRY(boundary_begin(self));
    if (self->data.resume) {
        /* joined in the middle: begin needed the weights of version n, the steps go on from those of now */
        TT_TRY(tt_net_put(self->model.net, self->model.stream, 0, self->data.resume));
        data_resume(&self->data, NULL, 0);
    }
    position_begin(&self->at, batch_oldest_version(self->data.batch));
    core_lap(self, CORE_begin);
    tt_link_state(self->link, "update %llu: %u steps", (unsigned long long)self->at.update, self->at.step_count);
    return TT_OK;
}

/* ---- what steps came to --------------------------------------------------------------------------------------------- */

/*  Steps of the update in hand, from the oldest that is queued. */
typedef struct {
    core_t *core;
    uint32_t step;
    uint64_t steps, made;
    bool last;
} telling_t;

static tt_status_t s_found(const telling_t *self, const float *priority)
{
    const core_t *core = self->core;
    const tt_status_t status = core->data.memory ? memory_found(core->data.memory, self->made, priority) : TT_OK;
    return status == TT_DIVERGED ? tt_diverged("update %llu: %s", (unsigned long long)core->at.update, tt_err_text())
                                 : status;
}

static tt_status_t s_tell(void *ctx, const results_step_t *step)
{
    telling_t *self = ctx;
    const model_t *model = &self->core->model;
    if (step->taken != TT_OK)
        return tt_diverged("update %llu, optimiser step %llu (learning rate %g): %s",
            (unsigned long long)self->core->at.update, (unsigned long long)self->steps, (double)step->rate,
            tt_err_text());
    TT_TRY(s_found(self, step->result.ride));
    self->last = model->algorithm->after(model->algo, self->step, &step->result) && step->ends;
    self->step++;
    self->steps++;
    self->made++;
    return TT_OK;
}

tt_status_t update_settle(core_t *self)
{
    results_t *results = compute_results(self->data.compute);
    const uint32_t count = results_count(results);
    const position_t *at = &self->at;
    telling_t telling = {self, at->step - count, at->steps - count, at->made - count, false};
    const tt_status_t status = results_settle(results, s_tell, &telling);
    if (status != TT_OK && status != TT_DIVERGED)
        return tt_err_wrap(status, "update %llu, optimiser step %llu", (unsigned long long)at->update,
            (unsigned long long)telling.steps);
    if (telling.last)
        position_end(&self->at);
    return status;
}

/* ---- one optimiser step ------------------------------------------------------------------------------------------ */

/*  TT_OK with *sum_p NULL: another generation came, start again (or it is all void). */
static tt_status_t s_sum_with_others(core_t *self, uint32_t lo, uint32_t hi, const float **sum_p)
{
    const uint64_t generation = self->view.generation;
    char whom[64];
    TT_TRY(allreduce_send(self->data.allreduce, self->at.steps, lo, hi, compute_node, self->data.compute));
    while (!s_void(self) && self->view.generation == generation) {
        *sum_p = allreduce_sum(self->data.allreduce);
        if (*sum_p)
            return TT_OK;
        TT_TRY(core_wait(self, "update %llu step %u/%u: waiting for SUM of step %llu from %s",
            (unsigned long long)self->at.update, self->at.step, self->at.step_count, (unsigned long long)self->at.steps,
            allreduce_awaited(self->data.allreduce, whom, sizeof whom)));
        TT_TRY(allreduce_nudge(self->data.allreduce));
        core_lap(self, CORE_wait_sum);
        core_tell_laps(self);
    }
    *sum_p = NULL;
    return TT_OK;
}

/*  The gradients of shards lo .. hi-1; of a replay only the observations of those are read. minibatch NULL: of nothing. */
static tt_status_t s_gradients(core_t *self, const tt_minibatch_t *minibatch, uint32_t lo, uint32_t hi)
{
    const data_t *data = &self->data;
    const uint32_t shards = self->model.train.learner.shards;
    TT_TRY(compute_noise(data->compute, self->at.made));
    if (!data->memory || !minibatch)
        return compute_gradients(data->compute, minibatch, NULL, lo, hi);
    const uint32_t count = minibatch->rows / (minibatch->length ? minibatch->length : 1);
    const compute_units_t *units =
        memory_units(data->memory, tt_sums_first(shards, count, lo), tt_sums_first(shards, count, hi));
    return compute_gradients(data->compute, minibatch, units, lo, hi);
}

/*  The sum over all learners. *sum_p: as it came from the others; NULL when there are none. *done: false when all is void. */
static tt_status_t s_sum(core_t *self, const tt_minibatch_t *minibatch, const float **sum_p, bool *done)
{
    const uint32_t shards = self->model.train.learner.shards;
    for (*sum_p = NULL, *done = false; !*done && !s_void(self);) {
        uint32_t lo, hi;
        tt_tree_run(shards, self->view.learners, self->view.rank, &lo, &hi);
        TT_TRY(s_gradients(self, minibatch, lo, hi));
        core_lap(self, CORE_gradients);
        *done = self->view.learners == 1;
        if (*done)
            continue;
        TT_TRY(s_sum_with_others(self, lo, hi, sum_p));
        core_lap(self, CORE_wait_sum);
        *done = *sum_p != NULL;
    }
    return TT_OK;
}

/*  A draw sees priorities that have been given. */
static tt_status_t s_settle_before_draw(core_t *self)
{
    const tt_feed_t *feed = &self->model.shape.feed;
    const bool sees = feed->alpha > 0 && results_count(compute_results(self->data.compute)) > feed->priority_delay;
    return sees ? update_settle(self) : TT_OK;
}

/*  What the step in hand is made of. */
static tt_status_t s_describe(core_t *self, tt_minibatch_t *out)
{
    const model_t *model = &self->model;
    memory_t *memory = self->data.memory;
    tt_at_t at = {.update = self->at.update,
        .rows = (self->at.update + 1) * model->batch_steps,
        .total = self->at.made,
        .step = self->at.step};
    if (memory) {
        at.replay = memory_replay(memory);
        TT_TRY(s_settle_before_draw(self));
        TT_TRY(memory_draw(memory, at.total, &at.sample));
    }
    return model->algorithm->minibatch(model->algo, &at, out);
}

/*  One optimiser step with the sum. */
static tt_status_t s_apply(core_t *self, const tt_minibatch_t *minibatch, const float *sum)
{
    const tt_status_t status = compute_step(self->data.compute, minibatch, sum);
    return status == TT_OK ? TT_OK
                           : tt_err_wrap(status, "update %llu, optimiser step %llu",
                                 (unsigned long long)self->at.update, (unsigned long long)self->at.steps);
}

static void s_step_done(core_t *self, bool made)
{
    if (self->view.learners > 1)
        allreduce_finish(self->data.allreduce);
    else
        /* alone nobody is a step behind; a sum of earlier days would mislead who joins */
        allreduce_forget(self->data.allreduce);
    position_step(&self->at, made);
    core_progress(self);
}

/*  Whoever waits for a device does so as seldom as nobody is kept waiting by it. */
static tt_status_t s_settle_if_due(core_t *self, bool ends)
{
    const bool done = self->at.step >= self->at.step_count;
    return ends || done || results_due(compute_results(self->data.compute)) ? update_settle(self) : TT_OK;
}

static tt_status_t s_step(core_t *self)
{
    const bool empty = self->data.memory && !self->at.owed; /* a step of nothing */
    tt_minibatch_t minibatch;
    const float *sum;
    bool done;
    TT_TRY(results_check(compute_results(self->data.compute))); /* who found it may have been asked by somebody else */
    if (!empty)
        TT_TRY(s_describe(self, &minibatch));
    TT_TRY(s_sum(self, empty ? NULL : &minibatch, &sum, &done));
    if (!done)
        return TT_OK;
    if (!empty)
        TT_TRY(s_apply(self, &minibatch, sum));
    s_step_done(self, !empty);
    if (!empty)
        TT_TRY(s_settle_if_due(self, minibatch.ends));
    core_lap(self, CORE_apply);
    return core_glance(self);
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

/*  Version n + 1: the weights now, and the normalisers of version n joined with batch n. */
static tt_status_t s_make_version(core_t *self)
{
    TT_TRY(statistics_load(&self->statistics, publish_newest(self->data.publish)));
    statistics_learn(&self->statistics, &self->model.train, self->data.batch, &self->data.current);
    version_t *version = publish_add(self->data.publish, self->at.update + 1);
    statistics_save(&self->statistics, version);
    TT_TRY(tt_net_get(self->model.net, self->model.stream, 0, version_params(version)));
    if (self->evaluate)
        evaluate_keep(self->evaluate, version);
    return TT_OK;
}

static tt_status_t s_finish(core_t *self)
{
    boundary_end(self);
    TT_TRY(s_make_version(self));
    const uint32_t filled = intake_batch(self->data.intake, self->at.update)->filled;
    position_finish(&self->at, (uint64_t)filled * self->model.train.num_steps);
    if (core_leads(self))
        TT_TRY(publish_send(
            publish_newest(self->data.publish), self->socks.weights, self->view.era, self->view.generation));
    /* weights went first, collectors wait for them; acknowledged is only what is trained: it may be needed again */
    intake_advance(self->data.intake, self->at.update);
    feed_credit_all(self);
    if (core_leads(self)) {
        feed_ack_all(self);
        report_stats(self);
    }
    fetch_retry(self);
    tt_log_version((int64_t)self->at.update);
    tt_link_holds(self->link, true, self->at.update, self->view.era, self->view.generation);
    core_progress(self);
    if (core_leads(self))
        TT_TRY(checkpoint_when_due(self));
    core_lap(self, CORE_publish);
    core_tell_laps(self);
    return TT_OK;
}

/*  The end of the run need not wait for an update that lasts. By the clock of rank 0 it ends as it would have before the update began, with its
 *  batch counted; when somebody asks, as before the batch. The others learn of it by STOP, and what they have of the update goes with them. */
static tt_status_t s_give_up(core_t *self)
{
    if (!core_leads(self) || !boundary_may(self) || self->at.step >= self->at.step_count)
        return TT_OK;
    const stop_facts_t facts = report_facts(self);
    ending_rule(&self->ending, stop_reason(&self->model.train, &facts)); /* the others did not hold when it began */
    const bool by_rule = self->ending.reason;
    if (!by_rule && boundary_is_long(self))
        ending_boundary(&self->ending);
    if (!self->ending.reason)
        return TT_OK;
    boundary_leave(self);
    if (by_rule)
        return TT_OK;
    position_uncount(&self->at);
    return statistics_uncount(&self->statistics);
}

static tt_status_t s_train(core_t *self)
{
    while (self->at.step < self->at.step_count && !s_void(self)) {
        TT_TRY(s_step(self));
        if (!s_void(self))
            TT_TRY(s_give_up(self));
        if (self->boundary.left)
            return TT_OK;
    }
    return s_void(self) ? TT_OK : s_finish(self);
}

/* ---- ends of a run ----------------------------------------------------------------------------------------------- */

/*  Rank 0 writes the last checkpoint and says so; everyone then waits for STOP. */
static tt_status_t s_end_run(core_t *self)
{
    if (core_leads(self) && !self->ending.reported) {
        bool evaluated;
        TT_TRY(evaluation_turn(self, true, &evaluated));
        if (!evaluated)
            return TT_OK;
        char path[4200];
        TT_TRY(checkpoint_final(self, path, sizeof path));
        /* writing by way of the coordinator serves meanwhile: another may lead by now, or all be void */
        if (!core_leads(self) || !self->ending.reason)
            return TT_OK;
        report_finished(self, path);
        ending_report(&self->ending);
    }
    core_lap(self, CORE_other);
    return core_wait(self, "idle: finished (%s), waiting for STOP", self->ending.reason);
}

static tt_status_t s_farewell(core_t *self)
{
    char path[4200];
    TT_TRY(checkpoint_final(self, path, sizeof path));
    ending_bid(&self->ending);
    return self->location->pod[0] ? TT_OK
                                  : control_leave(self, "signal"); /* in a pod another may come in the meantime */
}

/*  Between updates. */
static tt_status_t s_await_batch(core_t *self)
{
    const intake_batch_t *batch = intake_batch(self->data.intake, self->at.update);
    core_lap(self, CORE_wait_batch);
    core_tell_laps(self);
    return core_wait(self, CORE_BATCH " %llu: have %u of %u envs", (unsigned long long)self->at.update, batch->filled,
        self->model.train.num_envs);
}

tt_status_t update_turn(core_t *self)
{
    if (!self->at.begun)
        ending_boundary(&self->ending);
    if (self->ending.reason)
        return s_end_run(self);
    /* between updates only: a file of the middle of one is not gone on from (join.c) */
    if (self->ending.farewell && !self->at.begun)
        return s_farewell(self);
    if (!self->at.begun) {
        bool evaluated;
        TT_TRY(evaluation_turn(self, false, &evaluated));
        if (!evaluated)
            return TT_OK;
        if (!compose_done(self))
            return compose_turn(self);
        if (!intake_complete(self->data.intake, self->at.update))
            return s_await_batch(self);
        TT_TRY(s_begin(self));
    }
    return self->at.begun ? s_train(self) : TT_OK;
}
