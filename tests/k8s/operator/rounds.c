#include "tests/k8s/operator/rounds.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/front/draft.h"

/* ---- jobs ------------------------------------------------------------------------------------------------------------ */

static const char s_coordinator_only[] =
    "{'apiVersion':'" DIJOB_GROUP "/v1alpha1','kind':'DIJob','metadata':{'name':'j'},'spec':{'cleanPodPolicy':'All',"
    "'coordinator':{'template':{'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}}}}";

static const char s_of_queue[] =
    "{'apiVersion':'" DIJOB_GROUP
    "/v1alpha1','kind':'DIJob','metadata':{'name':'j','labels':{'kueue.x-k8s.io/queue-name':'q'}},'spec':{"
    "'coordinator':{'template':{'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}}}}";

static int s_setup(int (*setup)(void **state), void **state, const char *job)
{
    if (setup(state) != 0)
        return -1;
    bench_t *bench = *state;
    bench_make(bench, JOBS, job);
    bench_until(bench, rounds_know_job, bench->op);
    return 0;
}

int rounds_setup_by(int (*setup)(void **state), void **state)
{
    return s_setup(setup, state, s_coordinator_only);
}

int rounds_setup_queue_by(int (*setup)(void **state), void **state)
{
    return s_setup(setup, state, s_of_queue);
}

int rounds_setup_gang_by(int (*setup)(void **state), void **state)
{
    if (setup(state) != 0)
        return -1;
    bench_t *bench = *state;
    assert_ok(gang_pick(&bench->op->gang, "volcano"));
    return 0;
}

/* ---- a kind with an object beside pods and services ------------------------------------------------------------------ */

rounds_plan_t rounds_planned;

static tt_status_t s_plan_object(front_plan_t *out, const front_view_t *view)
{
    draft_t draft;
    const dijob_t *job = view->job;
    const bool goes = job->suspend;
    rounds_planned = (rounds_plan_t){job, view->made, view->removed};
    draft_open(&draft, out, job->status, view->now_s);
    if (!((goes ? view->removed : view->made) & 1))
        draft_add(&draft, goes ? FRONT_DELETE_OBJECT : FRONT_CREATE_OBJECT, "j-key");
    draft_close(&draft);
    return TT_OK;
}

static tt_status_t s_build_object(json_t **out, const front_action_t *action, const front_parts_t *parts)
{
    (void)parts;
    *out = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Secret", "metadata", "name", action->name);
    return TT_OK;
}

int rounds_setup_object_by(int (*setup)(void **state), void **state)
{
    static front_t with_object;
    if (setup(state) != 0)
        return -1;
    bench_t *bench = *state;
    with_object = dijob_front;
    with_object.plan = s_plan_object;
    with_object.build = s_build_object;
    bench_kind(bench->op)->front = &with_object;
    return 0;
}

/* ---- what is so ------------------------------------------------------------------------------------------------------ */

void rounds_run(bench_t *bench, bool (*until)(void *ctx))
{
    tt_queue_pause(bench->op->queue, false);
    bench_until(bench, until, bench->op);
}

job_t *rounds_job(const operator_t *op)
{
    return cache_job(&op->cache->kinds[0], "n", "j");
}

bool rounds_know_job(void *ctx)
{
    return bench_job(ctx) != NULL;
}

bool rounds_rest(void *ctx)
{
    const operator_t *op = ctx;
    return bench_dijob(op)->status && !op->rounds && tt_queue_depth(op->queue) == 0 &&
           kube_client_pending(op->client) == 0;
}

bool rounds_have_coordinator(void *ctx)
{
    return kube_store_count(bench_pods(ctx)) == 1 && rounds_rest(ctx);
}

bool rounds_made_object(void *ctx)
{
    const operator_t *op = ctx;
    return rounds_job(op)->notes.made == 1 && !op->rounds;
}

bool rounds_made_workload(void *ctx)
{
    return bench_job(ctx)->notes.workload && rounds_rest(ctx);
}

rounds_pod_t rounds_coordinator(const operator_t *op)
{
    const dijob_pod_t *pod = kube_store_get(bench_pods(op), "n", "j-coordinator");
    assert_non_null(pod);
    return (rounds_pod_t){op, tt_strdup(pod->meta.uid)};
}

bool rounds_have_another(void *ctx)
{
    const rounds_pod_t *first = ctx;
    const dijob_pod_t *pod = kube_store_get(bench_pods(first->op), "n", "j-coordinator");
    return pod && strcmp(pod->meta.uid, first->uid) != 0;
}
