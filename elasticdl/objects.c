#include "elasticdl/objects.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/when.h"
#include "common/base/words.h"
#include "k8s/front/gang.h"
#include "k8s/front/kueue.h"
#include "k8s/front/object.h"

#define AGENT_DIR EDL_AGENT_DIR
#define TOKEN_DIR EDL_TOKEN_DIR

enum { AGENT_GROUP = 65532, TOKEN_MODE = 0440, KILL_AFTER_S = 5, PROBE_FAILURES = 3 };

/* ---- names and labels --------------------------------------------------------------------------------------------------- */

tt_status_t edl_set_name(char out[EDL_SET_NAME], const char *task, elasticdl_type_t type, int id)
{
    if (snprintf(out, EDL_SET_NAME, "%s-%s-%d", task, elasticdl_type_name(type), id) >= EDL_SET_NAME)
        return tt_err(TT_INVALID, "name: %s-%s-%d is longer than the %d characters that a StatefulSet may have", task,
            elasticdl_type_name(type), id, EDL_SET_NAME - 1);
    return TT_OK;
}

void edl_set_address(char out[ELASTICDL_ADDRESS], const edl_objects_t *self, const char *set, int ordinal)
{
    snprintf(out, ELASTICDL_ADDRESS, "%s-%d.%s.%s.svc:%d", set, ordinal, set, self->namespace_, EDL_PROGRAM_PORT);
}

static json_t *s_selector(const edl_task_t *task, elasticdl_type_t type)
{
    char id[16];
    snprintf(id, sizeof id, "%d", task->id);
    return json_pack("{s:s, s:s}", EDL_LABEL, id, "type", elasticdl_type_name(type));
}

static json_t *s_task_labels(const edl_task_t *task)
{
    char app[EDL_TASK_FOLDER], id[16];
    edl_task_folder(task, app);
    snprintf(id, sizeof id, "%d", task->id);
    json_t *labels = json_pack("{s:s}", EDL_LABEL, id);
    json_object_set_new(labels, "app", json_string(app));
    json_object_set_new(labels, "app.kubernetes.io/managed-by", json_string("tutti-master"));
    parts_recommend(labels, "elasticdl", app, "");
    return labels;
}

static json_t *s_labels(const edl_task_t *task, elasticdl_type_t type)
{
    json_t *labels = s_task_labels(task);
    json_object_set_new(labels, "type", json_string(elasticdl_type_name(type)));
    json_object_set_new(labels, "app.kubernetes.io/component", json_string(elasticdl_type_name(type)));
    return labels;
}

/* ---- a pod --------------------------------------------------------------------------------------------------------------- */

static void s_add(json_t *args, const char *flag, const char *value)
{
    if (!value)
        return;
    json_array_append_new(args, json_string(flag));
    json_array_append_new(args, tt_json_text(value));
}

/*  By its own dynamic linker and libraries: the task's image may have others, or none. */
static json_t *s_command(const edl_objects_t *self)
{
    char grace[16];
    snprintf(grace, sizeof grace, "%d", self->grace_s);
    json_t *args = self->agent_image
                       ? json_pack("[s, s, s, s]", AGENT_DIR "/ld.so", "--library-path", AGENT_DIR, AGENT_DIR "/tutti")
                       : json_pack("[s]", "tutti");
    json_array_append_new(args, json_string("pod-agent"));
    char listen[16];
    snprintf(listen, sizeof listen, ":%d", EDL_AGENT_PORT);
    s_add(args, "--listen", listen);
    s_add(args, "--member", "$(POD_NAME)");
    s_add(args, "--token", TOKEN_DIR "/token");
    s_add(args, "--output", AGENT_DIR "/outputs.log");
    s_add(args, "--grace", grace);
    s_add(args, "--dir", self->dir);
    s_add(args, "--program", self->program);
    s_add(args, "--python", self->python);
    return args;
}

static json_t *s_mount(const char *name, const char *path)
{
    return json_pack("{s:s, s:s}", "name", name, "mountPath", path);
}

static json_t *s_container(const edl_objects_t *self, const edl_task_t *task)
{
    json_t *out = json_pack("{s:s, s:o, s:s, s:o, s:s}", "name", EDL_CONTAINER, "image",
        tt_json_text(task->request.image), "imagePullPolicy", "IfNotPresent", "command", s_command(self),
        "terminationMessagePolicy", "FallbackToLogsOnError");
    json_object_set_new(out, "env",
        json_pack("[{s:s, s:{s:{s:s}}}]", "name", "POD_NAME", "valueFrom", "fieldRef", "fieldPath", "metadata.name"));
    json_object_set_new(out, "ports",
        json_pack("[{s:s, s:i}, {s:s, s:i}]", "name", "agent", "containerPort", EDL_AGENT_PORT, "name", "program",
            "containerPort", EDL_PROGRAM_PORT));
    json_object_set_new(out, "readinessProbe",
        json_pack("{s:{s:s, s:s}, s:i, s:i}", "httpGet", "path", "/healthz", "port", "agent", "periodSeconds", 1,
            "failureThreshold", PROBE_FAILURES));
    json_object_set_new(
        out, "volumeMounts", json_pack("[o, o]", s_mount(EDL_AGENT, AGENT_DIR), s_mount(EDL_TOKEN, TOKEN_DIR)));
    return out;
}

/*  Brings the agent: any image that has a program can be a task's. */
static json_t *s_init(const edl_objects_t *self)
{
    json_t *out = json_pack("{s:s, s:o, s:s, s:[s, s, s], s:[o], s:s}", "name", EDL_AGENT, "image",
        tt_json_text(self->agent_image), "imagePullPolicy", "IfNotPresent", "args", "pod-agent", "--install", AGENT_DIR,
        "volumeMounts", s_mount(EDL_AGENT, AGENT_DIR), "terminationMessagePolicy", "FallbackToLogsOnError");
    json_object_set_new(out, "securityContext",
        json_pack("{s:b, s:b, s:{s:[s]}}", "allowPrivilegeEscalation", 0, "readOnlyRootFilesystem", 1, "capabilities",
            "drop", "ALL"));
    return out;
}

/*  A program gets no right to the API server, and a group by which an agent that is not root reads the token. */
static json_t *s_pod(const edl_objects_t *self, const edl_task_t *task)
{
    json_t *spec = json_pack("{s:b, s:b, s:i, s:{s:i, s:{s:s}}, s:[o]}", "automountServiceAccountToken", 0,
        "enableServiceLinks", 0, "terminationGracePeriodSeconds", self->grace_s + KILL_AFTER_S, "securityContext",
        "fsGroup", AGENT_GROUP, "seccompProfile", "type", "RuntimeDefault", "containers", s_container(self, task));
    if (self->agent_image)
        json_object_set_new(spec, "initContainers", json_pack("[o]", s_init(self)));
    json_object_set_new(spec, "volumes",
        json_pack("[{s:s, s:{}}, {s:s, s:{s:s, s:i}}]", "name", EDL_AGENT, "emptyDir", "name", EDL_TOKEN, "secret",
            "secretName", EDL_SECRET, "defaultMode", TOKEN_MODE));
    return spec;
}

/* ---- a set --------------------------------------------------------------------------------------------------------------- */

static void s_name(char out[EDL_SET_NAME], const edl_task_t *task, elasticdl_type_t type)
{
    const tt_status_t status = edl_set_name(out, task->request.name, type, task->id);
    TT_CHECK(status == TT_OK); /* asked before a set is made */
}

static int s_count(const edl_task_t *task, elasticdl_type_t type)
{
    return type == ELASTICDL_PS ? task->request.ps : task->request.workers;
}

/*  Of a task whose members are placed together its pods say so. */
static json_t *s_template(const edl_objects_t *self, const edl_task_t *task, elasticdl_type_t type)
{
    char group[EDL_TASK_FOLDER];
    json_t *out = json_pack("{s:{s:o}, s:o}", "metadata", "labels", s_labels(task, type), "spec", s_pod(self, task));
    edl_template_merge(out, self->templates.of[type]);
    edl_task_folder(task, group);
    if (task->gang)
        gang_dress(task->gang, out, group);
    return out;
}

json_t *edl_set(const edl_objects_t *self, const edl_task_t *task, elasticdl_type_t type)
{
    char name[EDL_SET_NAME], query[ELASTICDL_QUERY];
    s_name(name, task, type);
    elasticdl_request_write(query, &task->request);
    json_t *metadata = json_pack("{s:s, s:s, s:o, s:{s:s}}", "name", name, "namespace", self->namespace_, "labels",
        s_labels(task, type), "annotations", EDL_NOTE_REQUEST, query);
    const int count = task->request.queue[0] ? 0 : s_count(task, type); /* in a queue: not before it is admitted */
    json_t *spec =
        json_pack("{s:i, s:s, s:s, s:{s:o}, s:o}", "replicas", count, "serviceName", name, "podManagementPolicy",
            "Parallel", "selector", "matchLabels", s_selector(task, type), "template", s_template(self, task, type));
    json_t *out = json_pack(
        "{s:s, s:s, s:o, s:o}", "apiVersion", "apps/v1", "kind", "StatefulSet", "metadata", metadata, "spec", spec);
    TT_CHECK(out != NULL);
    if (task->gang)
        parts_annotate(out, EDL_NOTE_GANG, task->gang->name);
    return out;
}

/*  Of a task: how many members it has of which template. s_free_parts when done. */
static void s_parts(front_part_t parts[EDL_TYPES], const edl_objects_t *self, const edl_task_t *task)
{
    for (int type = 0; type < EDL_TYPES; type++)
        parts[type] = (front_part_t){elasticdl_type_name((elasticdl_type_t)type),
            s_template(self, task, (elasticdl_type_t)type), s_count(task, (elasticdl_type_t)type)};
}

static void s_free_parts(const front_part_t parts[EDL_TYPES])
{
    for (int type = 0; type < EDL_TYPES; type++)
        json_decref(parts[type].template_);
}

static json_t *s_task_metadata(const edl_objects_t *self, const edl_task_t *task)
{
    char name[EDL_TASK_FOLDER];
    edl_task_folder(task, name);
    return json_pack("{s:s, s:s, s:o}", "name", name, "namespace", self->namespace_, "labels", s_task_labels(task));
}

json_t *edl_group(const edl_objects_t *self, const edl_task_t *task)
{
    front_part_t parts[EDL_TYPES];
    s_parts(parts, self, task);
    json_t *out = gang_of_parts(task->gang, s_task_metadata(self, task), parts, EDL_TYPES);
    s_free_parts(parts);
    return out;
}

json_t *edl_workload(const edl_objects_t *self, const edl_task_t *task)
{
    front_part_t parts[EDL_TYPES];
    s_parts(parts, self, task);
    json_t *out = kueue_of_parts(s_task_metadata(self, task), task->request.queue, parts, EDL_TYPES);
    s_free_parts(parts);
    return out;
}

void edl_workload_own(json_t *workload, const edl_task_t *task, const char *uid)
{
    char set[EDL_SET_NAME], folder[EDL_TASK_FOLDER];
    json_t *metadata = json_object_get(workload, "metadata");
    s_name(set, task, ELASTICDL_WORKER);
    edl_task_folder(task, folder);
    json_object_set_new(
        metadata, "name", json_sprintf("elasticdl-%s-%.5s", folder, uid)); /* another task's has another */
    json_object_set_new(
        metadata, "ownerReferences", json_pack("[o]", parts_owner_of("apps/v1", "StatefulSet", set, uid, false)));
}

/*  Names are there before members are ready, since programs that start look for each other. */
json_t *edl_service(const edl_objects_t *self, const edl_task_t *task, elasticdl_type_t type)
{
    char name[EDL_SET_NAME];
    s_name(name, task, type);
    json_t *out = json_pack("{s:s, s:s, s:{s:s, s:s, s:o}, s:{s:s, s:b, s:o, s:[{s:s, s:i}]}}", "apiVersion", "v1",
        "kind", "Service", "metadata", "name", name, "namespace", self->namespace_, "labels", s_labels(task, type),
        "spec", "clusterIP", "None", "publishNotReadyAddresses", 1, "selector", s_selector(task, type), "ports", "name",
        "program", "port", EDL_PROGRAM_PORT);
    TT_CHECK(out != NULL);
    return out;
}

json_t *edl_set_raise(const edl_objects_t *self, const edl_task_t *task, elasticdl_type_t type, const json_t *updates)
{
    json_t *template_ = s_template(self, task, type);
    kueue_dress(template_, updates, elasticdl_type_name(type));
    return json_pack("[{s:s, s:s, s:i}, {s:s, s:s, s:o}]", "op", "replace", "path", "/spec/replicas", "value",
        s_count(task, type), "op", "replace", "path", "/spec/template", "value", template_);
}

json_t *edl_set_lower(void)
{
    return json_pack("{s:{s:i}}", "spec", "replicas", 0);
}

json_t *edl_set_end(json_t *record)
{
    char *text = json_dumps(record, JSON_COMPACT);
    TT_CHECK(text != NULL);
    json_t *out =
        json_pack("{s:{s:{s:s}}, s:{s:i}}", "metadata", "annotations", EDL_NOTE_END, text, "spec", "replicas", 0);
    free(text);
    json_decref(record);
    return out;
}

/* ---- read ------------------------------------------------------------------------------------------------------------------ */

/*  A whole number of text, 0 to INT32_MAX; -1 = it is none. */
static int s_number(const char *text)
{
    char *end = NULL;
    const long value = strtol(text, &end, 10);
    return text[0] < '0' || text[0] > '9' || *end || value > INT32_MAX ? -1 : (int)value;
}

tt_status_t edl_set_read(edl_found_t *out, const json_t *object)
{
    const json_t *metadata = parts_object(object, "metadata");
    const json_t *labels = parts_object(metadata, "labels"), *notes = parts_object(metadata, "annotations");
    const char *name = parts_text(metadata, "name", "?"), *type = parts_text(labels, "type", "");
    char expected[EDL_SET_NAME];
    *out = (edl_found_t){.id = s_number(parts_text(labels, EDL_LABEL, "")),
        .end = parts_text(notes, EDL_NOTE_END, NULL),
        .uid = parts_text(metadata, "uid", ""),
        .raised = json_integer_value(json_object_get(parts_object(object, "spec"), "replicas")) > 0};
    out->type = strcmp(type, elasticdl_type_name(ELASTICDL_PS)) == 0 ? ELASTICDL_PS : ELASTICDL_WORKER;
    if (out->id < 0 || strcmp(type, elasticdl_type_name(out->type)) != 0)
        return tt_err(TT_DATA, "StatefulSet %.80s: its labels are none of a task's", name);
    if (elasticdl_request_read(&out->request, parts_text(notes, EDL_NOTE_REQUEST, "")) != TT_OK)
        return tt_err_wrap(TT_DATA, "StatefulSet %.80s: annotation " EDL_NOTE_REQUEST, name);
    if (edl_set_name(expected, out->request.name, out->type, out->id) != TT_OK || strcmp(expected, name) != 0)
        return tt_err(TT_DATA, "StatefulSet %.80s: its name is not that of its task", name);
    if (gang_pick(&out->gang, parts_text(notes, EDL_NOTE_GANG, NULL)) != TT_OK)
        return tt_err_wrap(TT_DATA, "StatefulSet %.80s: annotation " EDL_NOTE_GANG, name);
    if (!tt_when_read(&out->made_s, parts_text(metadata, "creationTimestamp", "")))
        return tt_err(TT_DATA, "StatefulSet %.80s: it has no time at which it was made", name);
    return TT_OK;
}

static void s_trouble(edl_pod_t *out, const json_t *status, const json_t *agent)
{
    parts_trouble_t trouble;
    parts_trouble(&trouble, status, agent);
    char *text = tt_sprintf("%s%s%s", trouble.why, trouble.words[0] ? ": " : "", trouble.words);
    tt_words(out->trouble, sizeof out->trouble, text);
    free(text);
}

tt_status_t edl_pod_read(edl_pod_t *out, const json_t *object)
{
    const json_t *metadata = parts_object(object, "metadata"), *status = parts_object(object, "status");
    const char *name = parts_text(metadata, "name", ""), *dash = strrchr(name, '-');
    const json_t *agent = parts_named(parts_array(status, "containerStatuses"), "name", EDL_CONTAINER);
    *out = (edl_pod_t){.ordinal = dash ? s_number(dash + 1) : -1};
    if (out->ordinal < 0 || dash - name >= EDL_SET_NAME)
        return tt_err(TT_DATA, "pod %.80s is no member's", name);
    snprintf(out->set, sizeof out->set, "%.*s", (int)(dash - name), name);
    snprintf(out->uid, sizeof out->uid, "%s", parts_text(metadata, "uid", ""));
    snprintf(out->ip, sizeof out->ip, "%s", parts_text(status, "podIP", ""));
    out->ready = parts_is(parts_condition(json_object_get(status, "conditions"), "Ready"), "status", "True");
    out->leaving = json_object_get(metadata, "deletionTimestamp") != NULL;
    out->restarted = json_integer_value(json_object_get(agent, "restartCount")) > 0;
    s_trouble(out, status, agent);
    return TT_OK;
}

tt_status_t edl_event_read(char set[EDL_SET_NAME], char why[EDL_TASK_WAITS], const json_t *object)
{
    const char *words, *name = parts_without_pod(object, "StatefulSet", &words);
    if (!name || strlen(name) >= EDL_SET_NAME)
        return tt_err(TT_DATA, "an event that is not about a set's pods");
    char line[EDL_TASK_WAITS];
    tt_text_copy(line, sizeof line, words);
    snprintf(set, EDL_SET_NAME, "%s", name);
    snprintf(why, EDL_TASK_WAITS, "FailedCreate: %.380s", line);
    return TT_OK;
}
