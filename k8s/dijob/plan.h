/*  plan - what is to be done about a job, as a pure function of what is seen: no I/O, no clock of its own.
 *
 *  The operator looks (front_view_t), dijob_plan decides (front_plan_t), the operator does, and looks again. Everything
 *  that is decided, is decided here: counts, replacement, victims, phases, conditions, counters, cleanup. Rules:
 *  docs/internals/k8s.md. Planning twice on the same view gives the same plan, and a job in its wanted state an empty one
 *  (no writes in steady state). */
#pragma once
#include "k8s/dijob/build.h"
#include "k8s/front/front.h"

/*  dijob_front.objects. */
enum { DIJOB_CURVE };

/*  front_t.plan. An action that creates a pod has a dijob_pod_want_t as its own. Events are about phases; those about single writes
 *  (SuccessfulCreate and so on) are of who does them. */
tt_status_t dijob_plan(front_plan_t *out, const front_view_t *view);

/*  The n pods of a role that go first when fewer are wanted: unscheduled, not ready, newest, then by name; never one that is
 *  already going. Writes borrowed pointers; returns how many. Also what the replicas API's DELETE uses. */
size_t dijob_victims(
    const dijob_pod_t *const *pods, size_t pod_count, dijob_role_t role, size_t n, const dijob_pod_t **out);
/*  Of how many failed ones in a row the next takes the place: tt_plan_failures, without a clock. */
int dijob_failures(const dijob_pod_t *pod);
/*  Pods of a role that count as there: not deleting, not finished. Also what the replicas API's GET shows. */
bool dijob_pod_alive(const dijob_pod_t *pod);

/*  What a ddp learner is that takes the place of `pod` under the name `name`: its group's ranks, its aggregator. Strings are
 *  borrowed from the pods and `name`. False: it has no aggregator that is there. */
bool dijob_ddp_want(
    dijob_pod_want_t *want, const dijob_pod_t *const *pods, size_t pod_count, const dijob_pod_t *pod, const char *name);

/* ---- status.c: counters, conditions ------------------------------------------------------------------------------------ */

/*  How a pod counts: 'a'ctive, 's'ucceeded, 'f'ailed, 0 = nowhere. */
char dijob_pod_counts(const dijob_pod_t *pod);
/*  status.conditions after one more (docs/internals/k8s.md has the rule of each shape). `conditions` is changed in place. */
void dijob_condition_set(
    json_t *conditions, bool tasks_shape, const char *type, const char *reason, const char *message, int64_t now_s);
