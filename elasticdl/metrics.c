#include "elasticdl/metrics.h"
#include <inttypes.h>
#include <string.h>
#include "common/http/exposition.h"

#define PREFIX "tutti_master_"

/*  Of every state, also of those that none is in: what is not there cannot be watched. */
static const char *const s_states[] = {"queued", "starting", "running", "ending"};
static const char *const s_outcomes[EDL_TASK_OUTCOMES] = {
    [EDL_TASK_SUCCEEDED] = "succeeded", [EDL_TASK_FAILED] = "failed", [EDL_TASK_DELETED] = "deleted"};

static tt_status_t s_in_state(tt_buf_t *out, const edl_tasks_t *tasks, const char *state)
{
    size_t count = 0;
    const edl_task_t *task;
    for (size_t i = 0; (task = edl_tasks_nth(tasks, i)) != NULL; i++)
        count += strcmp(edl_task_state(task), state) == 0;
    return tt_buf_printf(out, PREFIX "tasks{state=\"%s\"} %zu\n", state, count);
}

static tt_status_t s_ended(tt_buf_t *out, const edl_tasks_stats_t *stats)
{
    TT_TRY(tt_exposition_head(
        out, PREFIX, "tasks_finished_total", "counter", "tasks whose end this master saw, by outcome"));
    for (size_t i = EDL_TASK_UNDECIDED + 1; i < EDL_TASK_OUTCOMES; i++)
        TT_TRY(tt_buf_printf(
            out, PREFIX "tasks_finished_total{outcome=\"%s\"} %" PRIu64 "\n", s_outcomes[i], stats->finished[i]));
    return TT_OK;
}

tt_status_t edl_metrics(tt_buf_t *out, const edl_tasks_t *tasks, double started_s)
{
    const edl_tasks_stats_t stats = edl_tasks_stats(tasks);
    TT_TRY(tt_exposition_head(out, PREFIX, "tasks", "gauge", "tasks that are not over, by state"));
    for (size_t i = 0; i < TT_COUNT(s_states); i++)
        TT_TRY(s_in_state(out, tasks, s_states[i]));
    TT_TRY(tt_exposition_one(out, PREFIX, "tasks_created_total", "counter",
        "tasks that this master was asked for and took", (double)stats.created));
    TT_TRY(s_ended(out, &stats));
    TT_TRY(tt_exposition_one(out, PREFIX, "members", "gauge", "members of the tasks that are not over", stats.members));
    TT_TRY(tt_exposition_one(out, PREFIX, "members_running", "gauge", "members whose program runs", stats.running));
    return tt_exposition_process(out, started_s);
}
