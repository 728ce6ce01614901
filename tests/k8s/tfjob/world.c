#include "tests/k8s/tfjob/world.h"
#include <stdio.h>
#include "k8s/front/object.h"

#define TEMPLATE "{'spec':{'containers':[{'name':'tensorflow','image':'tf'}]}}"

char *world_spec(const char *spec)
{
    char *out = tt_strdup("");
    for (const char *at = spec, *next; *at; at = next) {
        const char *mark = strstr(at, "'template':T");
        const size_t size = mark ? (size_t)(mark - at) : strlen(at);
        char *more = tt_sprintf("%s%.*s%s", out, (int)size, at, mark ? "'template':" TEMPLATE : "");
        free(out);
        out = more;
        next = at + size + (mark ? strlen("'template':T") : 0);
    }
    return out;
}

tfjob_t *world_decode(const char *version, const char *meta, const char *spec)
{
    tfjob_t *job = NULL;
    char *whole = world_spec(spec), *api = version ? tt_sprintf("'apiVersion':'kubeflow.org/%s',", version) : NULL;
    char *text = tt_sprintf("{%s'kind':'TFJob','metadata':%s,'spec':%s}", api ? api : "", meta, whole);
    json_t *object = json_of(text);
    assert_ok(tfjob_from_json(&job, object));
    json_decref(object);
    free(text);
    free(api);
    free(whole);
    return job;
}

void assert_invalid(tfjob_t *job, const char *words)
{
    if (!job->invalid || !strstr(job->invalid, words))
        fail_msg("'%s' and not '%s' of %s", job->invalid ? job->invalid : "nothing", words, job->meta.name);
    tfjob_destroy(&job);
}

void world_edit(world_t *self, const char *spec)
{
    char *text = world_spec(spec);
    json_object_set_new(self->job, "spec", json_of(text));
    free(text);
}

void world_init(world_t *self, const char *spec)
{
    *self = (world_t){.now_s = 1800000000};
    self->job = json_of("{'apiVersion':'kubeflow.org/v1','kind':'TFJob','metadata':{'name':'mnist','namespace':'ns',"
                        "'uid':'job-uid','generation':1}}");
    world_edit(self, spec);
}

void world_free(world_t *self)
{
    for (size_t i = 0; i < self->pod_count; i++)
        json_decref(self->pods[i]);
    for (size_t i = 0; i < self->service_count; i++)
        json_decref(self->services[i]);
    for (size_t i = 0; i < TFJOB_OLD_OBJECTS; i++)
        json_decref(self->objects[i]);
    json_decref(self->job);
}

/* ---- objects ----------------------------------------------------------------------------------------------------------------- */

static const char *s_name(const json_t *object)
{
    return parts_text(json_object_get(object, "metadata"), "name", "");
}

static json_t *s_find(json_t *const *objects, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(s_name(objects[i]), name) == 0)
            return objects[i];
    return NULL;
}

json_t *world_pod(const world_t *self, const char *name)
{
    return s_find(self->pods, self->pod_count, name);
}

json_t *world_service(const world_t *self, const char *name)
{
    return s_find(self->services, self->service_count, name);
}

static void s_take(json_t **objects, size_t *count, size_t at)
{
    json_decref(objects[at]);
    memmove(&objects[at], &objects[at + 1], (--*count - at) * sizeof *objects);
}

void world_remove(world_t *self, json_t *pod)
{
    for (size_t i = 0; i < self->pod_count; i++)
        if (self->pods[i] == pod) {
            s_take(self->pods, &self->pod_count, i);
            return;
        }
    fail_msg("no such pod");
}

void world_remove_service(world_t *self, size_t at)
{
    s_take(self->services, &self->service_count, at);
}

static json_t *s_must(const world_t *self, const char *name)
{
    json_t *pod = world_pod(self, name);
    if (!pod)
        fail_msg("no pod %s", name);
    return pod;
}

void world_run(world_t *self, const char *name)
{
    json_object_set_new(s_must(self, name), "status",
        json_of("{'phase':'Running','podIP':'10.0.0.1','conditions':[{'type':'Ready','status':'True'}],"
                "'containerStatuses':[{'name':'tensorflow','restartCount':0,'state':{'running':{}}}]}"));
}

void world_end(world_t *self, const char *name, int exit_code)
{
    json_t *at = parts_time_text(self->now_s);
    json_object_set_new(s_must(self, name), "status",
        json_pack("{s:s, s:[{s:s, s:i, s:{s:{s:i, s:s, s:O}}}]}", "phase", exit_code ? "Failed" : "Succeeded",
            "containerStatuses", "name", "tensorflow", "restartCount", 0, "state", "terminated", "exitCode", exit_code,
            "reason", exit_code ? "Error" : "Completed", "finishedAt", at));
    json_decref(at);
}

void world_again(world_t *self, const char *name, int restarts)
{
    json_t *statuses = json_object_get(json_object_get(s_must(self, name), "status"), "containerStatuses");
    json_object_set_new(json_array_get(statuses, 0), "restartCount", json_integer(restarts));
}

/* ---- a look ------------------------------------------------------------------------------------------------------------------ */

typedef struct {
    void *job, *pods[WORLD_OBJECTS], *services[WORLD_OBJECTS];
} entries_t;

static void s_decode(tt_status_t (*decode)(void **, const char *, size_t), const json_t *object, void **out)
{
    char *text = kube_dump(object);
    assert_ok(decode(out, text, strlen(text)));
    free(text);
}

static void s_look(const world_t *self, entries_t *seen)
{
    s_decode(tfjob_front.job_decode, self->job, &seen->job);
    for (size_t i = 0; i < self->pod_count; i++)
        s_decode(tfjob_front.pod_decode, self->pods[i], &seen->pods[i]);
    for (size_t i = 0; i < self->service_count; i++)
        s_decode(tfjob_front.service_decode, self->services[i], &seen->services[i]);
}

static void s_forget(const world_t *self, entries_t *seen, size_t pods, size_t services)
{
    (void)self;
    tfjob_front.job_destroy(seen->job);
    for (size_t i = 0; i < pods; i++)
        tt_pool_free(seen->pods[i]);
    for (size_t i = 0; i < services; i++)
        tt_pool_free(seen->services[i]);
}

static void s_plan(const world_t *self, const entries_t *seen, front_plan_t *plan)
{
    const front_view_t view = {.job = seen->job,
        .pods = (const void *const *)seen->pods,
        .pod_count = self->pod_count,
        .services = (const void *const *)seen->services,
        .service_count = self->service_count,
        .made = self->made,
        .now_s = self->now_s,
        .refusals = &self->refusal,
        .refusal_count = self->refusal.words != NULL};
    assert_ok(tfjob_front.plan(plan, &view));
}

/* ---- doing ------------------------------------------------------------------------------------------------------------------- */

static void s_create(world_t *self, const entries_t *seen, const front_action_t *action)
{
    const bool pod = action->what == FRONT_CREATE_POD;
    json_t *object = NULL, *at = parts_time_text(self->now_s);
    char uid[32];
    assert_ok(tfjob_front.build(&object, action, &(front_parts_t){.job = seen->job, .whole = self->job}));
    assert_null(pod ? world_pod(self, s_name(object)) : world_service(self, s_name(object)));
    snprintf(uid, sizeof uid, "u%u", ++self->uids);
    json_object_set_new(json_object_get(object, "metadata"), "uid", json_string(uid));
    json_object_set_new(json_object_get(object, "metadata"), "creationTimestamp", at);
    size_t *count = pod ? &self->pod_count : &self->service_count;
    assert_true(*count < WORLD_OBJECTS);
    (pod ? self->pods : self->services)[(*count)++] = object;
}

/*  Again where it is there already, as by an operator that has just begun. */
static void s_object(world_t *self, const entries_t *seen, const front_action_t *action)
{
    json_t *object = NULL;
    assert_int_equal(action->needs, FRONT_NEEDS_JOB);
    assert_ok(tfjob_front.build(&object, action, &(front_parts_t){.job = seen->job, .whole = self->job}));
    json_decref(self->objects[action->object]);
    self->objects[action->object] = object;
    self->made |= 1u << action->object;
}

/*  One that never ran goes at once. */
static void s_delete(world_t *self, const char *name)
{
    json_t *pod = s_must(self, name);
    const char *phase = parts_text(json_object_get(pod, "status"), "phase", "");
    if (strcmp(phase, "Running") == 0)
        json_object_set_new(json_object_get(pod, "metadata"), "deletionTimestamp", parts_time_text(self->now_s));
    else
        world_remove(self, pod);
}

static void s_event(world_t *self, const front_action_t *action)
{
    const int size = snprintf(self->events + self->event_size, sizeof self->events - self->event_size, "%s %s %s\n",
        action->type, action->reason, action->message);
    self->event_size += (size_t)size;
    assert_true(self->event_size < sizeof self->events);
}

static void s_do(world_t *self, const entries_t *seen, const front_action_t *action)
{
    if (self->lose && action->what != FRONT_EVENT && self->draw(self->ctx) % 100 < self->lose)
        return;
    switch (action->what) {
    case FRONT_CREATE_POD:
    case FRONT_CREATE_SERVICE:
        s_create(self, seen, action);
        break;
    case FRONT_DELETE_POD:
        s_delete(self, action->name);
        break;
    case FRONT_DELETE_SERVICE:
        for (size_t i = self->service_count; i-- > 0;)
            if (strcmp(s_name(self->services[i]), action->name) == 0)
                world_remove_service(self, i);
        break;
    case FRONT_DELETE_JOB:
        self->gone = true;
        break;
    case FRONT_EVENT:
        s_event(self, action);
        break;
    case FRONT_CREATE_OBJECT:
        s_object(self, seen, action);
        break;
    case FRONT_DELETE_OBJECT:
        fail_msg("a TFJob's objects go with it");
    }
}

bool world_round(world_t *self)
{
    entries_t seen;
    front_plan_t plan;
    const size_t pods = self->pod_count, services = self->service_count;
    s_look(self, &seen);
    s_plan(self, &seen, &plan);
    const bool something = plan.status || plan.count > 0;
    if (plan.status) {
        json_object_set_new(self->job, "status", json_loads(plan.status, 0, NULL));
        self->writes++;
    }
    for (size_t i = 0; i < plan.count; i++)
        s_do(self, &seen, &plan.actions[i]);
    front_plan_clear(&plan);
    s_forget(self, &seen, pods, services);
    self->rounds += something;
    return something;
}

int64_t world_again_s(const world_t *self)
{
    entries_t seen;
    front_plan_t plan;
    s_look(self, &seen);
    s_plan(self, &seen, &plan);
    const int64_t again_s = plan.again_s;
    front_plan_clear(&plan);
    s_forget(self, &seen, self->pod_count, self->service_count);
    return again_s;
}

static bool s_go(world_t *self)
{
    bool gone = false;
    for (size_t i = self->pod_count; i-- > 0;)
        if (json_object_get(json_object_get(self->pods[i], "metadata"), "deletionTimestamp")) {
            s_take(self->pods, &self->pod_count, i);
            gone = true;
        }
    return gone;
}

void world_settle(world_t *self, int most)
{
    for (int i = 0; i < most && !self->gone; i++) {
        const bool something = world_round(self), gone = s_go(self);
        const int64_t again_s = something || gone ? -1 : world_again_s(self);
        if (!something && !gone && again_s < 0)
            return;
        self->now_s += again_s > 0 ? again_s : 0;
    }
    if (!self->gone)
        fail_msg("no rest after %d rounds: %s", most, world_last(self));
}

/* ---- the status -------------------------------------------------------------------------------------------------------------- */

static const json_t *s_conditions(const world_t *self)
{
    return json_object_get(json_object_get(self->job, "status"), "conditions");
}

const char *world_last(const world_t *self)
{
    const size_t count = json_array_size(s_conditions(self));
    return count ? parts_text(json_array_get(s_conditions(self), count - 1), "type", "") : "";
}

const char *world_condition(const world_t *self, const char *type, const char *member)
{
    return parts_text(parts_condition(s_conditions(self), type), member, "");
}

int world_count(const world_t *self, const char *type, const char *member)
{
    const json_t *all = json_object_get(json_object_get(self->job, "status"), "replicaStatuses");
    return (int)json_integer_value(json_object_get(json_object_get(all, type), member));
}

const char *world_text(const world_t *self, const char *key)
{
    return parts_text(json_object_get(self->job, "status"), key, "");
}
