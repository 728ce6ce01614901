/*  plan_trouble - why a job does not get on: what its pods say, what the API server refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/plan.h"
#include "k8s/dijob/planner.h"

enum { LOOP_BACKOFF_S = 4, LOOP_SEEN_S = 120, LOOP_RESTARTS = 3 };

/*  "pod x ended with exit code 78 (bad configuration): job.yaml:3:1: unknown key"; of other programs' codes the kubelet's
 *  word is told, such as OOMKilled. */
char *plan_words(const planner_t *self, const dijob_pod_t *pod)
{
    const char *colon = pod->words ? ": " : "", *words = pod->words ? pod->words : "",
               *why = pod->why ? pod->why : "Error";
    if (pod->last_exit < 0)
        return tt_sprintf("pod %s: %s%s%s", pod->meta.name, why, colon, words);
    const char *text = self->job->tutti ? tt_exit_text(pod->last_exit) : NULL;
    return tt_sprintf(
        "pod %s ended with exit code %d (%s)%s%s", pod->meta.name, pod->last_exit, text ? text : why, colon, words);
}

/* ---- what may pass --------------------------------------------------------------------------------------------------------- */

/*  Made anew so often that it waits between. */
static bool s_is_again(const planner_t *self, const dijob_pod_t *pod)
{
    return pod->role == DIJOB_COORDINATOR ? draft_count(&self->draft, "restarts") >= LOOP_RESTARTS
                                          : pod->backoff_s >= LOOP_BACKOFF_S;
}

/*  Failed soon, and not for the first time; nobody is in its place yet. */
static bool s_loops(const planner_t *self, size_t at)
{
    const dijob_pod_t *pod = self->pods[at];
    return !self->replaced[at] && !pod->disrupted && s_is_again(self, pod) &&
           plan_ended_s(pod) - pod->created_s < TT_PLAN_RESET_S;
}

/*  The next one runs: whether it fails as the last one did is seen after a while only. */
static bool s_still_loops(planner_t *self, const dijob_pod_t *pod)
{
    const json_t *old = draft_condition(&self->draft, "PodTrouble");
    const int64_t left_s = pod->created_s + LOOP_SEEN_S - self->view->now_s;
    if (!s_is_again(self, pod) || left_s <= 0 || !parts_is(old, "status", "True") ||
        !parts_is(old, "reason", "CrashLoop"))
        return false;
    draft_again(&self->draft, left_s);
    return true;
}

/*  The word for what is wrong with a pod; NULL. */
static const char *s_why(planner_t *self, size_t at)
{
    const dijob_pod_t *pod = self->pods[at];
    const char counts = dijob_pod_counts(pod);
    if (!planner_stays(self, at) || counts == 's')
        return NULL;
    if (counts == 'f')
        return s_loops(self, at) ? "CrashLoop" : NULL;
    if (pod->why && pod->exit_code <= 0) /* else it is about to be started again */
        return pod->why;
    return s_still_loops(self, pod) ? "CrashLoop" : NULL;
}

static bool s_before(const dijob_pod_t *a, const dijob_pod_t *b)
{
    return a->role != b->role ? a->role < b->role : strcmp(a->meta.name, b->meta.name) < 0;
}

/*  Of several the first one of the first role has the word. The words of a trouble that lasts stay: they change with every
 *  back-off. */
void plan_trouble(planner_t *self)
{
    const json_t *old = draft_condition(&self->draft, "PodTrouble");
    const dijob_pod_t *worst = NULL;
    const char *why = NULL;
    for (size_t i = 0; i < self->view->pod_count; i++) {
        const char *word = s_why(self, i);
        if (word && (!worst || s_before(self->pods[i], worst))) {
            worst = self->pods[i];
            why = word;
        }
    }
    if (!worst) {
        planner_condition(self, "PodTrouble", false, "NoTrouble", "");
        return;
    }
    self->reason = why;
    if (parts_is(old, "status", "True") && parts_is(old, "reason", why))
        return;
    char *words = plan_words(self, worst);
    if (planner_condition(self, "PodTrouble", true, why, words))
        draft_event(&self->draft, "Warning", why, "%s", words);
    free(words);
}

/* ---- what was refused ------------------------------------------------------------------------------------------------------ */

static const char *s_refusal(const front_refusal_t *refusal)
{
    if (!refusal->reason || strcmp(refusal->reason, "Forbidden") != 0)
        return "TemplateRefused";
    return strstr(refusal->words, "exceeded quota") ? "QuotaExceeded" : "PodForbidden";
}

/*  Its words are for the user (of several those of the first role), and no more of that role is made till the view says
 *  otherwise. */
void plan_refusals(planner_t *self)
{
    static const char *const types[] = {"TemplateRefused", "QuotaExceeded", "PodForbidden"};
    const front_refusal_t *first = NULL;
    for (size_t i = 0; i < self->view->refusal_count; i++) {
        const front_refusal_t *one = &self->view->refusals[i];
        if (!first || one->group < first->group)
            first = one;
    }
    const char *type = first ? s_refusal(first) : "";
    for (size_t i = 0; i < TT_COUNT(types); i++)
        if (strcmp(types[i], type) != 0 && (first || self->creates == 0))
            planner_condition(self, types[i], false, "Accepted", "");
    if (!first)
        return;
    self->reason = type;
    const char *reason = first->reason && *first->reason ? first->reason : "Refused";
    if (planner_condition(self, type, true, reason, first->words))
        draft_event(&self->draft, "Warning", "FailedCreate", "%s", first->words);
}
