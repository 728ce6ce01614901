/*  task - pods of the tasks' shape (v2alpha1): a rank in the job, a rank in the task, and the names of all others. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "k8s/dijob/parts.h"

enum {
    NODES_MAX = 1 << 20, /* bytes of a list of names: 4096 pods with names of 200 characters */
    RANKS_MAX = 1000,    /* numbers of addresses that a task has on one machine */
};

static const char *s_type(const json_t *task)
{
    return parts_text(task, "type", "");
}

static const char *s_name(const json_t *task)
{
    const char *name = parts_text(task, "name", "");
    return *name ? name : s_type(task);
}

static int64_t s_replicas(const json_t *task)
{
    int64_t replicas = 1;
    bool bad = false;
    parts_int(task, "replicas", 1, 4096, &replicas, &bad);
    return replicas;
}

static int64_t s_all_replicas(const json_t *tasks)
{
    int64_t sum = 0;
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task)
    {
        sum += s_replicas(task);
    }
    return sum;
}

/*  Name of the service below which the pods are found. Caller frees. */
static char *s_subdomain(const json_t *job, const dijob_pod_want_t *want)
{
    return tt_sprintf("%s%s", want->old_service ? "" : "di-", parts_job_name(job));
}

/*  Who is told of, and how: by their names, or by addresses where names lead nowhere (machine: NULL = by names). */
typedef struct {
    const json_t *job, *tasks;
    const char *subdomain;
    const front_machine_t *machine;
} nodes_t;

static void s_address(const front_machine_t *machine, size_t task, int64_t rank, char ip[16])
{
    machine->address(machine->ctx, (unsigned)task * RANKS_MAX + (unsigned)rank, ip);
}

static tt_status_t s_node(tt_buf_t *out, const nodes_t *self, size_t task, int64_t rank)
{
    const char *comma = out->size ? "," : "";
    char ip[16];
    if (!self->machine)
        return tt_buf_printf(out, "%s%s-%s-%lld.%s.%s.svc.cluster.local", comma, parts_job_name(self->job),
            s_name(json_array_get(self->tasks, task)), (long long)rank, self->subdomain,
            parts_job_namespace(self->job));
    s_address(self->machine, task, rank, ip);
    return tt_buf_printf(out, "%s%s", comma, ip);
}

/*  The pods of all tasks, or of those of one type (NULL = all), in the order of tasks, divided by commas. */
static tt_status_t s_nodes(tt_buf_t *out, const nodes_t *self, const char *type)
{
    size_t i;
    json_t *task;
    json_array_foreach((json_t *)(uintptr_t)self->tasks, i, task)
    {
        for (int64_t rank = 0; rank < s_replicas(task) && (!type || strcmp(type, s_type(task)) == 0); rank++)
            TT_TRY(s_node(out, self, i, rank));
    }
    return TT_OK;
}

static tt_status_t s_env_nodes(json_t *spec, const nodes_t *nodes, const char *name, const char *type)
{
    tt_buf_t text;
    tt_buf_init(&text, NODES_MAX);
    const tt_status_t status = s_nodes(&text, nodes, type);
    if (status == TT_OK)
        parts_env(spec, name, tt_buf_text(&text));
    tt_buf_free(&text);
    return status;
}

/*  "DI_MY_TASK_NODES" of task "my-task". Caller frees. */
static char *s_nodes_env(const json_t *task)
{
    char *text = tt_sprintf("DI_%s_NODES", s_name(task));
    for (char *c = text; *c; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    return text;
}

static tt_status_t s_env_of(json_t *spec, const nodes_t *nodes, const dijob_pod_want_t *want)
{
    const json_t *task = json_array_get(nodes->tasks, (size_t)want->task);
    char *own = s_nodes_env(task);
    tt_status_t status = s_env_nodes(spec, nodes, "DI_NODES", NULL);
    if (status == TT_OK)
        status = s_env_nodes(spec, nodes, own, s_type(task));
    free(own);
    return status;
}

static tt_status_t s_env(json_t *spec, const json_t *job, const json_t *tasks, const dijob_pod_want_t *want)
{
    const nodes_t nodes = {.job = job, .tasks = tasks, .subdomain = parts_text(spec, "subdomain", "")};
    char *id = tt_sprintf("%s/%s", parts_job_namespace(job), parts_job_name(job));
    parts_env(spec, "DI_JOB_ID", id);
    parts_env(spec, "DI_SERVER_URL", want->server_url ? want->server_url : "");
    parts_env_int(spec, "DI_RANK", want->rank);
    free(id);
    return s_env_of(spec, &nodes, want);
}

static void s_metadata(json_t *pod, const json_t *job, const json_t *tasks, const dijob_pod_want_t *want)
{
    const json_t *task = json_array_get(tasks, (size_t)want->task);
    const char *node = parts_text(json_object_get(pod, "spec"), "nodeName", "");
    parts_label(pod, "diengine/job", parts_job_name(job));
    parts_label(pod, "diengine/operator", "di-operator");
    parts_label(
        pod, "controller-name", "di-operator"); /* beside upstream's: what selects all of ours finds these too */
    parts_label(pod, "diengine/pod", want->name);
    parts_label(pod, "diengine/task-type", s_type(task));
    parts_label(pod, "diengine/task-name", s_name(task));
    parts_recommend(parts_labels(pod), "dijob", parts_job_name(job), s_name(task));
    parts_annotate_int(pod, "diengine/replicas", s_all_replicas(tasks));
    parts_annotate_int(pod, "diengine/rank", want->rank);
    parts_annotate_int(pod, "diengine/task-rank", want->task_rank);
    parts_annotate(pod, "diengine/node", node);
    parts_replaces(pod, want);
    if (want->reschedules > 0)
        parts_annotate_int(pod, PARTS_OWN "reschedules", want->reschedules);
    json_object_set_new(json_object_get(pod, "metadata"), "ownerReferences", json_pack("[o]", parts_owner(job, true)));
}

tt_status_t parts_task_pod(json_t **out, const json_t *job, const dijob_pod_want_t *want)
{
    const json_t *job_spec = json_object_get(job, "spec"), *tasks = json_object_get(job_spec, "tasks");
    const json_t *template_ = json_object_get(json_array_get(tasks, (size_t)want->task), "template");
    if (want->task < 0 || !json_is_object(template_))
        return tt_err(TT_NOT_FOUND, "DIJob %s has no spec.tasks[%d].template", parts_job_name(job), want->task);
    json_t *pod = parts_pod_from(job, template_, want->name), *spec = json_object_get(pod, "spec");
    char *subdomain = s_subdomain(job, want);
    json_object_set_new(spec, "restartPolicy", json_string("Never"));
    json_object_set_new(spec, "hostname", json_string(want->name));
    json_object_set_new(spec, "subdomain", json_string(subdomain));
    free(subdomain);
    parts_volumes(spec, json_object_get(job_spec, "volumes"));
    s_metadata(pod, job, tasks, want);
    const tt_status_t status = s_env(spec, job, tasks, want);
    if (status == TT_OK && parts_is_tutti(job))
        parts_mount_curve(pod, job, want->old_curve);
    if (status == TT_OK)
        *out = pod;
    else
        json_decref(pod);
    return status;
}

tt_status_t parts_task_settle(
    const front_machine_t *machine, json_t *spec, const dijob_pod_want_t *want, front_spot_t *spot)
{
    const json_t *tasks = json_object_get(json_object_get(machine->whole, "spec"), "tasks");
    const nodes_t nodes = {.job = machine->whole, .tasks = tasks, .machine = machine};
    s_address(machine, (size_t)want->task, want->task_rank, spot->ip);
    return machine->names ? TT_OK : s_env_of(spec, &nodes, want);
}
