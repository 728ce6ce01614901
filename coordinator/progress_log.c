#define TT_LOG_COMPONENT "run"
#include "coordinator/progress_log.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "common/base/log.h"
#include "coordinator/state.h"

enum { QUICK = 10, QUICK_S = 1, SLOW_S = 10, WAIT_S = 30 };
static const int64_t s_second_ns = 1000000000;

/*  Does the run lack those without whom nothing moves? */
static bool s_waits(const coordinator_t *self)
{
    const uint32_t learners = roster_ready(self->roster, TT_PEER_LEARNER);
    return learners == 0 || roster_ready(self->roster, TT_PEER_COLLECTOR) == 0 ||
           (learners > 1 && roster_ready(self->roster, TT_PEER_AGGREGATOR) == 0);
}

static void s_say_waiting(const coordinator_t *self)
{
    const uint32_t learners = roster_ready(self->roster, TT_PEER_LEARNER);
    log_info(
        "waiting for members: %u collectors, %u learners and %u aggregators take part; at least one collector and one "
        "learner must%s",
        roster_ready(self->roster, TT_PEER_COLLECTOR), learners, roster_ready(self->roster, TT_PEER_AGGREGATOR),
        learners > 1 ? ", and an aggregator where there are two learners" : "");
}

static void s_say_progress(const coordinator_t *self)
{
    const progress_t *p = &self->progress;
    const double sps = progress_sps(p);
    char mean[32] = "none yet", speed[40] = "";
    if (isfinite(p->return_mean))
        snprintf(mean, sizeof mean, "%.1f", p->return_mean);
    if (sps > 0)
        snprintf(speed, sizeof speed, ", %.0f steps/s", sps);
    log_info("update %" PRIu64 ", %" PRIu64 " env steps, mean return %s%s; %u collectors, %u learners", p->at.update,
        p->at.env_steps, mean, speed, roster_ready(self->roster, TT_PEER_COLLECTOR),
        roster_ready(self->roster, TT_PEER_LEARNER));
}

/*  Not said at once: it is how every run begins. */
static void s_wait(const coordinator_t *self, progress_log_t *progress_log, int64_t now_ns)
{
    if (progress_log->waits_due_ns == 0)
        progress_log->waits_due_ns = now_ns + WAIT_S * s_second_ns;
    if (now_ns < progress_log->waits_due_ns)
        return;
    s_say_waiting(self);
    progress_log->waits_due_ns = now_ns + WAIT_S * s_second_ns;
}

void progress_log_turn(coordinator_t *self, int64_t now_ns)
{
    progress_log_t *progress_log = &self->progress_log;
    if (self->ends.phase == ENDS_ENDED)
        return;
    if (s_waits(self)) {
        s_wait(self, progress_log, now_ns);
        return;
    }
    progress_log->waits_due_ns = 0;
    if (now_ns < progress_log->due_ns || !self->progress.at.any || self->progress.at.update == progress_log->updates)
        return;
    s_say_progress(self);
    progress_log->updates = self->progress.at.update;
    progress_log->due_ns = now_ns + (++progress_log->lines < QUICK ? QUICK_S : SLOW_S) * s_second_ns;
}
