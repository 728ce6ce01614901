/*  victims - who counts as there, who goes first, and how long the place of one that ended stays empty. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/planner.h"

bool dijob_pod_alive(const dijob_pod_t *pod)
{
    const char counts = dijob_pod_counts(pod);
    return !pod->deleting && counts != 's' && counts != 'f';
}

/*  Before the other one: has done least so far. */
static int s_compare(const void *left, const void *right)
{
    const dijob_pod_t *a = *(const dijob_pod_t *const *)left, *b = *(const dijob_pod_t *const *)right;
    if (a->scheduled != b->scheduled)
        return a->scheduled ? 1 : -1;
    if (a->ready != b->ready)
        return a->ready ? 1 : -1;
    if (a->created_s != b->created_s)
        return a->created_s > b->created_s ? -1 : 1;
    return strcmp(a->meta.name, b->meta.name);
}

size_t dijob_victims(
    const dijob_pod_t *const *pods, size_t pod_count, dijob_role_t role, size_t n, const dijob_pod_t **out)
{
    const dijob_pod_t **all = tt_array0(pod_count, sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < pod_count; i++)
        if (pods[i]->role == role && dijob_pod_alive(pods[i]))
            all[count++] = pods[i];
    qsort(all, count, sizeof *all, s_compare);
    const size_t chosen = n < count ? n : count;
    if (chosen > 0)
        memcpy(out, all, chosen * sizeof *out);
    free(all);
    return chosen;
}

int64_t plan_delay_s(const dijob_pod_t *pod)
{
    const bool well = dijob_pod_counts(pod) == 's';
    const int64_t first = well ? PLAN_SUCCESS_S : 1;
    if (pod->disrupted)
        return 0;
    if (plan_ended_s(pod) - pod->created_s >= PLAN_RESET_S)
        return first;
    const int64_t next = 2 * (int64_t)pod->backoff_s;
    return next < first ? first : next > PLAN_BACKOFF_MAX_S ? PLAN_BACKOFF_MAX_S : next;
}

int64_t plan_wait_s(const dijob_pod_t *pod, int64_t delay_s, int64_t now_s)
{
    const int64_t wait_s = plan_ended_s(pod) + delay_s - now_s;
    if (wait_s > 2 * PLAN_BACKOFF_MAX_S) /* its node's clock is wrong */
        return 0;
    return wait_s > 0 ? wait_s : 0;
}
