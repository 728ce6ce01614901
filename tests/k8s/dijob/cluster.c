#include "tests/k8s/dijob/cluster.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

static void s_init(cluster_t *self, const char *name)
{
    *self = (cluster_t){.now_s = 1800000000, .random = 7, .curve = true};
    self->job.meta = (kube_meta_t){.namespace_ = tt_strdup("default"), .name = tt_strdup(name), .uid = "job-uid"};
    self->job.generation = 1;
    self->job.clean = TT_CLEAN_RUNNING;
    self->job.backoff_limit = 3;
    self->job.deadline_s = self->job.ttl_s = -1;
    for (int i = 0; i < DIJOB_ROLES; i++)
        self->job.replicas[i] = self->job.least[i] = -1;
}

void cluster_roles(cluster_t *self, const char *name)
{
    s_init(self, name);
    self->job.backoff_limit = -1; /* as decoded where there is none */
    self->job.has[DIJOB_COORDINATOR] = self->job.has[DIJOB_COLLECTOR] = self->job.has[DIJOB_LEARNER] = true;
    self->job.has[DIJOB_DDP_LEARNER] = true;
}

static void s_free_tasks(cluster_t *self)
{
    for (size_t i = 0; i < self->job.task_count; i++) {
        free(self->job.tasks[i].name);
        free(self->job.tasks[i].type);
    }
    free(self->job.tasks);
    self->job.tasks = NULL;
    self->job.task_count = 0;
}

void cluster_set_tasks(cluster_t *self, const char *tasks)
{
    char name[32];
    unsigned replicas;
    int used;
    s_free_tasks(self);
    self->job.tasks = tt_array0(8, sizeof *self->job.tasks);
    while (sscanf(tasks, " %31[^:]:%u%n", name, &replicas, &used) == 2) {
        self->job.tasks[self->job.task_count++] =
            (dijob_task_t){.name = tt_strdup(name), .type = tt_strdup(name), .replicas = replicas};
        tasks += used;
    }
}

void cluster_tasks(cluster_t *self, const char *name, const char *tasks)
{
    s_init(self, name);
    self->job.tasks_shape = true;
    cluster_set_tasks(self, tasks);
}

static void s_free_pod(dijob_pod_t *pod)
{
    free(pod->meta.name);
    free(pod->replaces);
    free(pod->owner_pod);
    free(pod->why);
    free(pod->words);
    free(pod->asked);
    free(pod);
}

static void s_free_service(dijob_service_t *service)
{
    free(service->meta.name);
    free(service);
}

void cluster_free(cluster_t *self)
{
    cluster_watch(self);
    for (size_t i = 0; i < self->pod_count; i++)
        s_free_pod(self->pods[i]);
    for (size_t i = 0; i < self->service_count; i++)
        s_free_service(self->services[i]);
    s_free_tasks(self);
    free(self->job.status);
    free(self->job.meta.name);
    free(self->job.meta.namespace_);
}

int cluster_teardown(void **state)
{
    cluster_free(*state);
    return 0;
}

static dijob_pod_t *s_new(cluster_t *self, dijob_role_t role, const char *name)
{
    dijob_pod_t *pod = tt_new0(sizeof *pod);
    pod->meta.name = tt_strdup(name);
    snprintf(pod->meta.uid, sizeof pod->meta.uid, "uid-%u", ++self->uids);
    pod->role = (uint8_t)role;
    pod->rank = pod->task_rank = -1;
    pod->exit_code = pod->last_exit = -1;
    pod->created_s = self->now_s;
    return pod;
}

dijob_pod_t *cluster_add(cluster_t *self, dijob_role_t role, const char *name)
{
    assert_true(self->pod_count < CLUSTER_PODS);
    return self->pods[self->pod_count++] = s_new(self, role, name);
}

void cluster_add_service(cluster_t *self, const char *name)
{
    assert_true(self->service_count < CLUSTER_PODS);
    dijob_service_t *service = tt_new0(sizeof *service);
    service->meta.name = tt_strdup(name);
    self->services[self->service_count++] = service;
}

void cluster_remove(cluster_t *self, dijob_pod_t *pod)
{
    for (size_t i = 0; i < self->pod_count; i++)
        if (self->pods[i] == pod) {
            s_free_pod(pod);
            self->pods[i] = self->pods[--self->pod_count];
            return;
        }
    fail_msg("no such pod");
}

dijob_pod_t *cluster_get(const cluster_t *self, const char *name)
{
    for (size_t i = 0; i < self->pod_count; i++)
        if (strcmp(self->pods[i]->meta.name, name) == 0)
            return self->pods[i];
    return NULL;
}

dijob_pod_t *cluster_nth(const cluster_t *self, dijob_role_t role, size_t n)
{
    for (size_t i = 0; i < self->pod_count; i++)
        if (self->pods[i]->role == role && n-- == 0)
            return self->pods[i];
    return NULL;
}

size_t cluster_count(const cluster_t *self, dijob_role_t role)
{
    size_t count = 0;
    for (size_t i = 0; i < self->pod_count; i++)
        count += self->pods[i]->role == role;
    return count;
}

size_t cluster_alive(const cluster_t *self, dijob_role_t role)
{
    size_t count = 0;
    for (size_t i = 0; i < self->pod_count; i++)
        count += self->pods[i]->role == role && dijob_pod_alive(self->pods[i]);
    return count;
}

void cluster_watch(cluster_t *self)
{
    while (self->unseen_count > 0)
        self->pods[self->pod_count++] = self->unseen[--self->unseen_count];
}

/* ---- plans -------------------------------------------------------------------------------------------------------------- */

void cluster_plan(const cluster_t *self, front_plan_t *out)
{
    const front_refusal_t refusal = {.group = dijob_group(self->refused_role, 0),
        .words = self->refused,
        .reason = self->refused_reason ? self->refused_reason : "Invalid"};
    const front_view_t view = {.job = &self->job,
        .pods = (const void *const *)self->pods,
        .pod_count = self->pod_count,
        .services = (const void *const *)self->services,
        .service_count = self->service_count,
        .made = self->curve ? 1u << DIJOB_CURVE : 0,
        .now_s = self->now_s,
        .random = self->random,
        .refusals = &refusal,
        .refusal_count = self->refused ? 1 : 0,
        .admission = self->admission};
    assert_ok(dijob_plan(out, &view));
}

static bool s_chance(cluster_t *self, unsigned percent)
{
    return self->draw && self->draw(self->ctx) % 100 < percent;
}

static bool s_exists(const cluster_t *self, const char *name)
{
    for (size_t i = 0; i < self->unseen_count; i++)
        if (strcmp(self->unseen[i]->meta.name, name) == 0)
            return true;
    return cluster_get(self, name) != NULL;
}

static void s_create(cluster_t *self, const front_action_t *action)
{
    const dijob_pod_want_t *want = action->own;
    assert_string_equal(action->name, want->name);
    if (want->role == DIJOB_DDP_LEARNER) { /* whoever it replaces: ranks of a group that is there */
        assert_true(want->local_world_size > 0 && want->start_rank >= 0);
        assert_true(want->start_rank + want->local_world_size <= want->world_size);
    }
    if (s_exists(self, want->name))
        return; /* AlreadyExists is success */
    dijob_pod_t *pod = s_new(self, want->role, want->name);
    pod->replaces = tt_strdup(want->replaces);
    pod->backoff_s = (uint16_t)want->backoff_s;
    pod->failures = (uint16_t)want->failures;
    pod->rank = want->rank;
    pod->task_rank = want->task_rank;
    pod->reschedules = want->reschedules;
    pod->own_curve = !want->old_curve;
    pod->gpu_ports = (uint16_t)(want->gpus > 1 ? want->gpus - 1 : 0);
    pod->ddp_master = want->split && want->master;
    pod->owner_pod = tt_strdup(want->role == DIJOB_TASK ? self->job.tasks[want->task].name : want->aggregator);
    if (s_chance(self, self->repeat) && self->unseen_count < CLUSTER_PODS)
        self->unseen[self->unseen_count++] = pod;
    else
        self->pods[self->pod_count++] = pod;
    assert_true(self->pod_count + self->unseen_count < CLUSTER_PODS);
}

static void s_delete(cluster_t *self, const front_action_t *action)
{
    dijob_pod_t *pod = cluster_get(self, action->name);
    assert_non_null(pod);
    assert_false(pod->deleting);
    if (!pod->scheduled || action->grace_s == 0 || pod->phase == POD_FAILED || pod->phase == POD_SUCCEEDED)
        cluster_remove(self, pod);
    else
        pod->deleting = true;
}

void cluster_remove_service(cluster_t *self, size_t at)
{
    s_free_service(self->services[at]);
    self->services[at] = self->services[--self->service_count];
}

static void s_delete_service(cluster_t *self, const char *name)
{
    for (size_t i = 0; i < self->service_count; i++)
        if (strcmp(self->services[i]->meta.name, name) == 0) {
            cluster_remove_service(self, i);
            return;
        }
    fail_msg("no such service");
}

static void s_create_service(cluster_t *self, const char *name)
{
    char *text = name ? tt_strdup(name) : tt_sprintf("di-%s", self->job.meta.name);
    for (size_t i = 0; i < self->service_count; i++)
        assert_string_not_equal(self->services[i]->meta.name, text);
    if (name)
        assert_non_null(cluster_get(self, name));
    cluster_add_service(self, text);
    free(text);
}

static void s_event(cluster_t *self, const front_action_t *action)
{
    const size_t room = sizeof self->events - self->event_size;
    const int size =
        snprintf(self->events + self->event_size, room, "%s %s %s\n", action->type, action->reason, action->message);
    if (size > 0 && (size_t)size < room)
        self->event_size += (size_t)size;
}

static void s_act(cluster_t *self, const front_action_t *action)
{
    switch (action->what) {
    case FRONT_CREATE_POD:
        s_create(self, action);
        break;
    case FRONT_DELETE_POD:
        s_delete(self, action);
        break;
    case FRONT_CREATE_SERVICE:
        s_create_service(self, action->name);
        break;
    case FRONT_DELETE_SERVICE:
        s_delete_service(self, action->name);
        break;
    case FRONT_CREATE_OBJECT:
        self->curve = true;
        break;
    case FRONT_DELETE_OBJECT:
        fail_msg("the key goes with its job");
        break;
    case FRONT_DELETE_JOB:
        self->gone = true;
        break;
    case FRONT_EVENT:
        s_event(self, action);
        break;
    }
}

static void s_write(cluster_t *self, const char *status)
{
    free(self->job.status);
    self->job.status = tt_strdup(status);
    self->writes++;
    json_t *object = json_loads(status, 0, NULL);
    assert_non_null(object);
    const char *phase = json_string_value(json_object_get(object, "phase"));
    self->job.phase = DIJOB_PHASE_UNKNOWN;
    for (int i = 0; i < DIJOB_PHASES; i++)
        if (strcmp(phase ? phase : "", dijob_phase_name((dijob_phase_t)i)) == 0)
            self->job.phase = (dijob_phase_t)i;
    json_decref(object);
}

void cluster_do(cluster_t *self, const front_plan_t *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (!s_chance(self, self->lose))
            s_act(self, &plan->actions[i]);
    if (plan->status && !s_chance(self, self->lose))
        s_write(self, plan->status);
    self->random = self->random * 6364136223846793005u + 1442695040888963407u;
}

bool cluster_round(cluster_t *self)
{
    front_plan_t plan;
    cluster_plan(self, &plan);
    const bool something = plan.count > 0 || plan.status;
    cluster_do(self, &plan);
    front_plan_clear(&plan);
    return something;
}

void cluster_settle(cluster_t *self, int most)
{
    for (int i = 0; i < most && !self->gone; i++) {
        front_plan_t plan;
        cluster_plan(self, &plan);
        const bool nothing = plan.count == 0 && !plan.status;
        const int64_t again_s = plan.again_s;
        cluster_do(self, &plan);
        front_plan_clear(&plan);
        if (nothing && again_s < 0)
            return;
        if (nothing)
            self->now_s += again_s > 0 ? again_s : 1;
    }
    if (!self->gone)
        fail_msg("still something to do: %s", self->job.status);
}

/* ---- what a kubelet does ---------------------------------------------------------------------------------------------------- */

void pod_run(cluster_t *self, dijob_pod_t *pod)
{
    (void)self;
    pod->scheduled = pod->ready = true;
    pod->phase = POD_RUNNING;
    pod->main = MAIN_RUNNING;
}

void cluster_run_all(cluster_t *self, int most)
{
    for (size_t i = 0; i < self->pod_count; i++)
        if (self->pods[i]->phase == POD_PENDING)
            pod_run(self, self->pods[i]);
    cluster_settle(self, most);
}

void pod_end(cluster_t *self, dijob_pod_t *pod, int exit_code)
{
    pod->scheduled = true;
    pod->ready = false;
    pod->stuck = true;
    pod->phase = exit_code == 0 ? POD_SUCCEEDED : POD_FAILED;
    pod->main = exit_code == 0 ? MAIN_COMPLETED : MAIN_ERROR;
    pod->exit_code = pod->last_exit = (int16_t)exit_code;
    if (exit_code != 0)
        pod->why = pod->why ? pod->why : tt_strdup("Error");
    pod->finished_s = self->now_s;
}

/* ---- what is to be seen ------------------------------------------------------------------------------------------------------- */

const char *cluster_phase(const cluster_t *self)
{
    return dijob_phase_name(self->job.phase);
}

const char *cluster_status(const cluster_t *self, const char *path)
{
    static char text[1024];
    json_t *object = self->job.status ? json_loads(self->job.status, 0, NULL) : json_object();
    json_t *at = object;
    char *copy = tt_strdup(path), *save = NULL;
    for (char *part = strtok_r(copy, ".", &save); part; part = strtok_r(NULL, ".", &save))
        at = json_object_get(at, part);
    char *dump = at ? kube_dump(at) : NULL;
    snprintf(text, sizeof text, "%s", json_is_string(at) ? json_string_value(at) : dump ? dump : "");
    free(dump);
    free(copy);
    json_decref(object);
    return text;
}

const char *cluster_condition(const cluster_t *self, const char *type)
{
    static char text[2048];
    json_t *object = self->job.status ? json_loads(self->job.status, 0, NULL) : json_object(), *item;
    size_t i;
    text[0] = 0;
    json_array_foreach(json_object_get(object, "conditions"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, "type"));
        if (name && strcmp(name, type) == 0)
            snprintf(text, sizeof text, "%s %s %s", json_string_value(json_object_get(item, "status")),
                json_string_value(json_object_get(item, "reason")),
                json_string_value(json_object_get(item, "message")));
    }
    json_decref(object);
    return text;
}
