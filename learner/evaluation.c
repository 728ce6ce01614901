#define TT_LOG_COMPONENT "evaluation"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>
#include "common/base/log.h"
#include "learner/core.h"

/*  Only so that a wait ends; evaluation_turn takes what has come. */
static tt_status_t s_on_fd(void *ctx, int fd)
{
    (void)ctx;
    uint64_t rung;
    const ssize_t got = read(fd, &rung, sizeof rung);
    return got == sizeof rung || errno == EAGAIN || errno == EINTR ? TT_OK : tt_err_errno(TT_OS, "eventfd");
}

tt_status_t evaluation_open(core_t *self)
{
    const tt_train_cfg_t *train = &self->model.train;
    if (!train->eval.every)
        return TT_OK;
    const evaluate_cfg_t cfg = {.play = self->play,
        .train = train,
        .params = self->model.params,
        .norm = tt_norm_block_count(self->model.columns->scaled)};
    TT_TRY(evaluate_new(&self->evaluate, &cfg));
    tt_loop_fd(self->loop, evaluate_fd(self->evaluate), s_on_fd, self);
    return TT_OK;
}

static void s_tell(core_t *self, uint64_t version, const evaluate_result_t *result)
{
    const uint32_t episodes = self->model.train.eval.episodes;
    const tt_msg_EVALUATED_t evaluated = TT_MSG(EVALUATED, .era = self->view.era, .update = version,
        .env_steps = version * self->model.batch_steps, .episodes = episodes, .cut = result->cut,
        .mean_reward = result->mean, .std_reward = result->std, .min_reward = result->min, .max_reward = result->max,
        .mean_ep_length = result->length, .time_ns = tt_now_ns(self->clock));
    if (tt_link_send(self->link, &evaluated) != TT_OK)
        log_warn("EVALUATED: %s", tt_err_text());
    log_info("version %llu, %llu env steps: mean return %.9g of %u episodes", (unsigned long long)version,
        (unsigned long long)evaluated.env_steps, result->mean, episodes);
    if (result->cut) {
        char text[160];
        snprintf(text, sizeof text, "evaluation of version %llu: %u of %u episodes did not end by themselves",
            (unsigned long long)version, result->cut, episodes);
        report_event(self, "warning", text, 0);
    }
}

static tt_status_t s_take(core_t *self)
{
    tt_snapshot_version_t version;
    evaluate_result_t result;
    const tt_status_t status = evaluate_take(self->evaluate, &version, &result);
    if (status != TT_OK)
        return status == TT_AGAIN ? TT_OK : status;
    const uint32_t era = self->view.era;
    checkpoint_best(self, &version, result.mean); /* it may serve meanwhile */
    if (!core_leads(self) || self->view.era != era)
        return TT_OK;
    s_tell(self, version.version, &result);
    evaluate_done(self->evaluate);
    core_progress(self);
    return TT_OK;
}

tt_status_t evaluation_turn(core_t *self, bool last, bool *done)
{
    evaluate_t *evaluate = self->evaluate;
    *done = true;
    if (!evaluate || !core_leads(self) ||
        self->ending.finish) /* who is asked to end leaves it to the next life of the run */
        return TT_OK;
    TT_TRY(s_take(self));
    TT_TRY(evaluate_begin(evaluate));
    if (evaluate_outstanding(evaluate) <= (last ? 0 : 1))
        return TT_OK;
    *done = false;
    char doing[96];
    if (evaluate_moved(evaluate))
        core_progress(self);
    TT_TRY(core_wait(self, "evaluating %s", evaluate_doing(evaluate, doing, sizeof doing)));
    core_lap(self, CORE_wait_eval);
    core_tell_laps(self);
    return TT_OK;
}
