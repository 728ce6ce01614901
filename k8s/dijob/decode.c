/*  decode - a DIJob's JSON -> dijob_t. The rules are those of the schema in k8s/crd, in the same words: a job that came by
 *  another schema, or by no server at all, is told what is wrong with it here. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/config/config.h"
#include "k8s/dijob/parts.h"
#include "k8s/front/kueue.h"
#include "k8s/front/policy.h"
#include "k8s/front/spec.h"

enum { JOB_NAME_MAX = 45, TASK_AND_JOB_MAX = 57, TASKS_MAX = 64, TASKS_BACKOFF_LIMIT = 3, LABEL_MAX = 63 };

#define INVALID(job, ...)  SPEC_WRONG(&(job)->invalid, __VA_ARGS__)
#define MISNAMED(job, ...) SPEC_WRONG(&(job)->misnamed, __VA_ARGS__)

static void s_clean(dijob_t *self, const json_t *spec)
{
    const char *text = spec_text(&self->invalid, spec, "spec", "cleanPodPolicy");
    if (strcmp(text, "") == 0 || strcmp(text, "Running") == 0)
        self->clean = TT_CLEAN_RUNNING;
    else if (strcmp(text, "All") == 0 || strcmp(text, "ALL") == 0)
        self->clean = TT_CLEAN_ALL;
    else if (strcmp(text, "None") == 0)
        self->clean = TT_CLEAN_NONE;
    else
        INVALID(self, "Invalid CleanPodPolicy %.64s, expected in [None, Running, All]", text);
}

/*  One of two words, or nothing. */
static bool s_choice(dijob_t *self, const json_t *spec, const char *key, const char *plain, const char *special)
{
    const char *text = spec_text(&self->invalid, spec, "spec", key);
    if (strcmp(text, special) == 0)
        return true;
    if (*text && strcmp(text, plain) != 0)
        INVALID(self, "spec.%s: '%.40s' is neither %s nor %s", key, text, plain, special);
    return false;
}

static bool s_template_ok(dijob_t *self, const json_t *holder, const char *where)
{
    const json_t *template_ = parts_object(holder, "template");
    const json_t *containers = parts_array(parts_object(template_, "spec"), "containers");
    if (!template_)
        INVALID(self, "expected %s.template", where);
    else if (!containers || json_array_size(containers) == 0)
        INVALID(self, "expected %s.template.spec.containers", where);
    size_t i;
    json_t *container;
    json_array_foreach(containers, i, container)
    {
        if (!parts_text(container, "name", NULL))
            INVALID(self, "expected %s.template.spec.containers[%zu].name", where, i);
    }
    return containers != NULL;
}

/*  In the schema's words. */
static void s_bounds(dijob_t *self, dijob_role_t role, const char *where)
{
    const int64_t replicas = self->replicas[role], least = self->least[role], most = self->most[role];
    if (most > 0 && least > most)
        INVALID(self, "%s.minReplicas: expected at most maxReplicas", where);
    if (replicas >= 0 && replicas < least)
        INVALID(self, "%s.replicas: expected at least minReplicas", where);
    if (most > 0 && replicas > most)
        INVALID(self, "%s.replicas: expected at most maxReplicas", where);
}

/*  spec.coordinator, .collector, .learner, .aggregator. */
static void s_role(dijob_t *self, const json_t *spec, dijob_role_t role, int64_t most)
{
    char where[32];
    const char *name = dijob_role_label(role);
    const json_t *holder = json_object_get(spec, name);
    snprintf(where, sizeof where, "spec.%s", name);
    self->replicas[role] = self->least[role] = -1;
    if (!holder || json_is_null(holder))
        return;
    if (!json_is_object(holder)) {
        INVALID(self, "%s: expected a mapping", where);
        return;
    }
    if (role != DIJOB_AGGREGATOR || json_object_get(holder, "template"))
        self->has[role] = s_template_ok(self, holder, where);
    if (most == 0)
        return;
    self->replicas[role] = spec_number(&self->invalid, holder, where, "replicas", -1, 0, most);
    if (role == DIJOB_AGGREGATOR)
        return;
    self->least[role] = spec_number(&self->invalid, holder, where, "minReplicas", -1, 0, most);
    self->most[role] = spec_number(&self->invalid, holder, where, "maxReplicas", 0, 1, most);
    s_bounds(self, role, where);
}

static void s_roles(dijob_t *self, const json_t *spec)
{
    s_role(self, spec, DIJOB_COORDINATOR, 0);
    s_role(self, spec, DIJOB_COLLECTOR, 65536);
    s_role(self, spec, DIJOB_LEARNER, 256);
    s_role(self, spec, DIJOB_AGGREGATOR, 64);
    self->has[DIJOB_DDP_LEARNER] = self->has[DIJOB_LEARNER];
    self->replicas[DIJOB_DDP_LEARNER] = self->replicas[DIJOB_TASK] = -1; /* nobody can say how many */
    if (!self->has[DIJOB_COORDINATOR])
        INVALID(self, "expected spec.coordinator, or spec.tasks");
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------------- */

static void s_task(dijob_t *self, const json_t *item, size_t index)
{
    static const char *const types[] = {"", "learner", "collector", "evaluator", "none"};
    dijob_task_t *task = &self->tasks[index];
    const char *type = parts_text(item, "type", "");
    const char *name = parts_text(item, "name", "");
    char where[32];
    snprintf(where, sizeof where, "spec.tasks[%zu]", index);
    const size_t word = spec_word(&self->invalid, item, where, "type", types, TT_COUNT(types));
    const bool anonymous = !*name && strcmp(type, "none") == 0;
    if (!*name)
        name = type;
    task->type = tt_strdup(type);
    task->name = tt_strdup(name);
    if (word == 0)
        INVALID(self, "expected %s.type: one of learner, collector, evaluator, none", where);
    else if (anonymous)
        INVALID(self, "%s: a task of type none must have a name", where);
    else if (!spec_is_label(name, LABEL_MAX, false))
        INVALID(self, "%s.name: '%.80s' is not made of lower case letters, digits and dashes", where, name);
    else if (strlen(name) + strlen(self->meta.name) > TASK_AND_JOB_MAX)
        MISNAMED(self, "Invalid task name %s, together with the job's name it has more than %d characters", name,
            TASK_AND_JOB_MAX);
    task->replicas = (uint32_t)spec_number(&self->invalid, item, where, "replicas", 1, 1, 4096);
    s_template_ok(self, item, where);
}

/*  Types but none once, names once. */
static void s_tasks_differ(dijob_t *self)
{
    for (size_t i = 0; i < self->task_count; i++)
        for (size_t k = 0; k < i; k++) {
            const dijob_task_t *a = &self->tasks[k], *b = &self->tasks[i];
            if (strcmp(a->type, b->type) == 0 && strcmp(a->type, "none") != 0)
                INVALID(self, "spec.tasks has type %s twice", a->type);
            if (strcmp(a->name, b->name) == 0)
                INVALID(self, "spec.tasks has name %s twice", a->name);
        }
}

static void s_tasks(dijob_t *self, const json_t *spec)
{
    const json_t *tasks = parts_array(spec, "tasks");
    const size_t count = json_array_size(tasks);
    self->tasks_shape = true;
    for (int role = 0; role < DIJOB_ROLES; role++)
        self->replicas[role] = -1;
    if (json_object_get(spec, "coordinator") || json_object_get(spec, "collector") ||
        json_object_get(spec, "learner") || json_object_get(spec, "aggregator"))
        INVALID(
            self, "spec.tasks cannot stand beside spec.coordinator, spec.collector, spec.learner or spec.aggregator");
    if (count < 1 || count > TASKS_MAX) {
        INVALID(self, "spec.tasks: expected 1 to %d tasks", TASKS_MAX);
        return;
    }
    self->has[DIJOB_TASK] = true;
    self->tasks = tt_array0(count, sizeof *self->tasks);
    self->task_count = count;
    for (size_t i = 0; i < count; i++)
        s_task(self, json_array_get(tasks, i), i);
    s_tasks_differ(self);
}

/*  No label's value is longer. */
static void s_queue(dijob_t *self, const json_t *metadata)
{
    const char *queue = parts_text(parts_object(metadata, "labels"), KUEUE_LABEL, "");
    if (*queue && strlen(queue) <= LABEL_MAX)
        self->queue = tt_strdup(queue);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

static void s_volumes(dijob_t *self, const json_t *spec)
{
    const json_t *volumes = json_object_get(spec, "volumes");
    if (volumes && !json_is_null(volumes) && !json_is_array(volumes))
        INVALID(self, "spec.volumes: expected a list");
    size_t i;
    json_t *volume;
    json_array_foreach(volumes, i, volume)
    {
        if (!parts_text(volume, "name", NULL))
            INVALID(self, "expected spec.volumes[%zu].name", i);
    }
}

/*  What batch/v1's Job calls the same. Nobody is left to do it where the job's own coordinator is what ends. */
static void s_batch(dijob_t *self, const json_t *spec)
{
    self->deadline_s = spec_number(&self->invalid, spec, "spec", "activeDeadlineSeconds", -1, 1, INT32_MAX);
    self->ttl_s = spec_number(&self->invalid, spec, "spec", "ttlSecondsAfterFinished", -1, 0, INT32_MAX);
    self->suspend = spec_flag(&self->invalid, spec, "spec", "suspend");
    if (self->embedded && (self->suspend || self->deadline_s >= 0 || self->ttl_s >= 0))
        INVALID(self, "spec.suspend, spec.activeDeadlineSeconds and spec.ttlSecondsAfterFinished need an operator, and "
                      "spec.managedBy is coordinator");
}

/*  Ours say by their codes that the same would come again; of other programs the user knows. */
static void s_fatal(dijob_t *self, const json_t *spec)
{
    for (int code = 0; code < TT_EXIT_CODES && self->tutti; code++)
        tt_code_set_put(&self->fatal, code, tt_exit_is_final(code));
    self->policy = policy_read(&self->invalid, spec, &self->fatal);
}

static void s_spec(dijob_t *self, const json_t *spec)
{
    if (!spec_is_label(self->meta.name, JOB_NAME_MAX, true))
        MISNAMED(self,
            "Invalid name %s, expected at most %d lower case letters, digits and dashes, a letter first and no dash "
            "last",
            self->meta.name, JOB_NAME_MAX);
    s_clean(self, spec);
    self->tutti = s_choice(self, spec, "engine", "di-engine", "tutti");
    self->embedded = s_choice(self, spec, "managedBy", "operator", "coordinator");
    s_choice(self, spec, "priority", "normal", "high");
    spec_text(&self->invalid, spec, "spec", "group");
    spec_text(&self->invalid, spec, "spec", "priorityClassName");
    s_batch(self, spec);
    s_fatal(self, spec);
    s_volumes(self, spec);
    self->preemptible = json_is_true(json_object_get(spec, "preemptible"));
    const json_t *tasks = json_object_get(spec, "tasks");
    const bool by_tasks = tasks && !json_is_null(tasks);
    self->backoff_limit =
        spec_number(&self->invalid, spec, "spec", "backoffLimit", by_tasks ? TASKS_BACKOFF_LIMIT : -1, 0, INT32_MAX);
    if (by_tasks)
        s_tasks(self, spec);
    else
        s_roles(self, spec);
}

static void s_status(dijob_t *self, const json_t *status)
{
    const char *phase = parts_text(status, "phase", "");
    self->phase = DIJOB_PHASE_UNKNOWN;
    for (int i = 0; i < DIJOB_PHASES; i++)
        if (strcmp(phase, dijob_phase_name((dijob_phase_t)i)) == 0)
            self->phase = (dijob_phase_t)i;
    if (status)
        self->status = kube_dump(status);
}

/*  A job that is a file: its owner stands for it. */
static void s_owner(dijob_t *self, const json_t *metadata)
{
    const json_t *owner = parts_controller(metadata);
    const char *uid = parts_text(owner, "uid", "");
    if (self->meta.uid[0] || !*uid || strlen(uid) >= sizeof self->meta.uid)
        return;
    snprintf(self->meta.uid, sizeof self->meta.uid, "%s", uid);
    self->owner = kube_dump(owner);
}

tt_status_t dijob_from_json(dijob_t **out, const json_t *object)
{
    dijob_t head = {0};
    TT_TRY(spec_head(object, "DIJob", DIJOB_GROUP, &head.meta, &head.generation, &head.deleting));
    dijob_t *self = tt_new0(sizeof *self);
    *self = head;
    s_owner(self, json_object_get(object, "metadata"));
    s_queue(self, json_object_get(object, "metadata"));
    const json_t *spec = parts_object(object, "spec");
    if (!spec)
        INVALID(self, "expected spec");
    s_spec(self, spec);
    s_status(self, parts_object(object, "status"));
    *out = self;
    return TT_OK;
}

tt_status_t dijob_decode(dijob_t **out, const char *json, size_t size)
{
    json_t *object = NULL;
    TT_TRY(spec_load(&object, "a DIJob", json, size));
    const tt_status_t status = dijob_from_json(out, object);
    json_decref(object);
    return status;
}

void dijob_destroy(dijob_t **self_p)
{
    dijob_t *self = *self_p;
    if (!self)
        return;
    for (size_t i = 0; i < self->task_count; i++) {
        free(self->tasks[i].name);
        free(self->tasks[i].type);
    }
    free(self->tasks);
    free(self->owner);
    free(self->queue);
    free(self->status);
    free(self->invalid);
    free(self->misnamed);
    kube_meta_clear(&self->meta);
    free(self);
    *self_p = NULL;
}

const char *dijob_refusal(const dijob_t *self)
{
    return self->invalid ? self->invalid : self->misnamed;
}
