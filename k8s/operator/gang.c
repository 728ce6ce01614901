/*  gang - a job's PodGroup on the API server: written before its pods, gone when they are.
 *
 *  It is not watched. What was written last is remembered in the job; after a restart, or when another has led, it is written once more,
 *  when pods are. It is applied (server-side), so that making and changing are one request, and members that a scheduler set stay. */
#include <stdlib.h>
#include <string.h>
#include "k8s/api/dump.h"
#include "k8s/operator/parts.h"

/* ---- what is due ---------------------------------------------------------------------------------------------------- */

bool gang_over(const operator_t *op, const job_t *job)
{
    const front_job_t info = job_info(job);
    return op->gang && !job->notes.ungrouped && !info.deleting &&
           (info.final || info.suspended || admission_waits(op, job));
}

bool gang_groups(const operator_t *op, const job_t *job)
{
    const void **pods = NULL;
    size_t alive = 0, grouped = 0;
    if (!op->gang || op->opts.manifest || op->opts.own_pod || job_info(job).refusal)
        return false;
    const size_t count = cache_pods(job->kind, job->meta.uid, &pods);
    for (size_t i = 0; i < count; i++) {
        const front_pod_t *pod = pods[i];
        const bool counts = !pod->deleting && !entry_ended(pod);
        alive += counts;
        grouped += counts && pod->grouped;
    }
    free(pods);
    return alive ? grouped > 0 : !job->notes.gangless;
}

char *gang_due(const operator_t *op, const job_t *job, const json_t *whole)
{
    front_admission_t admission;
    (void)admission_see(&admission, op, job);
    json_t *group = gang_make(op->gang, job->kind->front, job->own, &admission, whole);
    char *text = group ? kube_dump(group) : NULL;
    json_decref(group);
    if (!text || !job->notes.gang || strcmp(text, job->notes.gang) != 0)
        return text;
    free(text);
    return NULL;
}

/* ---- writing and removing -------------------------------------------------------------------------------------------- */

static void s_note_made(errand_t *self, job_t *job)
{
    if (!job->notes.gang)
        errand_tell_made(self, self->job);
    free(job->notes.gang);
    job->notes.gang = self->text;
    self->text = NULL;
    job->notes.gangless = job->notes.ungrouped = false;
}

/*  404: the cluster has no PodGroups. That is somebody's mistake, but no reason for the job to wait for ever. */
static tt_status_t s_applied(errand_t *self, job_t *job, const kube_reply_t *reply)
{
    if (errand_well(reply)) {
        s_note_made(self, job);
    } else if (reply->code == 404) {
        errand_tell(self, "NoPodGroups", "The pods are made without a PodGroup", reply->text);
        job->notes.gangless = true;
    } else if (!reply->held_back) {
        errand_tell_of(self, "FailedCreate", "Create", reply->text);
    }
    return errand_well(reply) || reply->code == 404 ? TT_OK : TT_UNAVAILABLE;
}

static void s_gone(errand_t *self, job_t *job)
{
    (void)self;
    free(job->notes.gang);
    job->notes.gang = NULL;
    job->notes.gangless = false;
    job->notes.ungrouped = true;
}

static errand_t *s_errand(operator_t *op, const job_t *job, errand_fn done, void *ctx)
{
    static const errand_way_t way = {.word = "podgroup", .applied = s_applied, .gone = s_gone};
    char *path = gang_path(op->gang, job->meta.namespace_, job->meta.name);
    errand_t *errand = errand_new(op, job, &way, path, done, ctx);
    free(path);
    return errand;
}

errand_t *gang_write(operator_t *op, const job_t *job, const char *text, errand_fn done, void *ctx)
{
    errand_t *errand = s_errand(op, job, done, ctx);
    errand_apply(errand, text);
    return errand;
}

errand_t *gang_remove(operator_t *op, const job_t *job, errand_fn done, void *ctx)
{
    errand_t *errand = s_errand(op, job, done, ctx);
    errand_remove(errand);
    return errand;
}
