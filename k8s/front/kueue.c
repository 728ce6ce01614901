#include "k8s/front/kueue.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/http/query.h"
#include "k8s/front/entry.h"
#include "k8s/front/spec.h"

enum { MESSAGE_MAX = 32768, FLAVORS_MAX = 64 };
#define SET_LABEL   "kueue.x-k8s.io/podset" /* Kueue's own, on pods of its Workloads */
#define CLASS_LABEL "kueue.x-k8s.io/priority-class"
#define CLASS_KIND  "WorkloadPriorityClass"

tt_status_t kueue_pick(bool *out, const char *name)
{
    *out = name && strcmp(name, "kueue") == 0;
    return *out || !name || strcmp(name, "none") == 0
               ? TT_OK
               : tt_err(TT_INVALID, "'%.60s' keeps no queues that are known here; there is: kueue", name);
}

/* ---- making ------------------------------------------------------------------------------------------------------------- */

char *kueue_name(const front_t *front, const void *job)
{
    const kube_meta_t *meta = job;
    return tt_sprintf("%s-%s-%.5s", front->name, meta->name, meta->uid);
}

int kueue_needs(const front_t *front, const void *job)
{
    int needs = FRONT_NEEDS_JOB;
    front_group_t group;
    for (size_t i = 0; front->group_at(job, i, &group); i++)
        needs |= group.wanted > 0 ? group.needs : 0;
    return needs;
}

/*  Takes the template. Of one set Kueue may admit fewer, and lets no more have that (partly: one has it). */
static json_t *s_set_of(const front_group_t *group, json_t *template_, bool *partly)
{
    json_t *set =
        json_pack("{s:s, s:I, s:o}", "name", group->name, "count", (json_int_t)group->wanted, "template", template_);
    if (!*partly && group->min < group->wanted) {
        *partly = true;
        json_object_set_new(set, "minCount", json_integer(group->min > 0 ? group->min : 1)); /* it refuses 0 */
    }
    return set;
}

/*  A new array: a set for each group of which there is to be somebody. */
static tt_status_t s_sets(
    json_t **out, const front_t *front, const void *job, const json_t *whole, const json_t *config)
{
    json_t *sets = json_array(), *template_ = NULL;
    tt_status_t status = TT_OK;
    front_group_t group;
    bool partly = false;
    for (size_t i = 0; status == TT_OK && front->group_at(job, i, &group); i++) {
        if (group.wanted <= 0)
            continue;
        status = front->pod_template(&template_, whole, config, i);
        if (status == TT_OK)
            json_array_append_new(sets, s_set_of(&group, template_, &partly));
    }
    if (status == TT_OK && json_array_size(sets) == 0)
        status = tt_err(TT_INVALID, "no group of it has replicas");
    if (status == TT_OK)
        *out = sets;
    else
        json_decref(sets);
    return status;
}

/*  Takes both. */
static json_t *s_workload(json_t *metadata, const char *queue, json_t *sets)
{
    return json_pack("{s:s, s:s, s:o, s:{s:s, s:o}}", "apiVersion", KUEUE_API, "kind", "Workload", "metadata", metadata,
        "spec", "queueName", queue, "podSets", sets);
}

tt_status_t kueue_make(
    json_t **out, const front_t *front, const void *job, const char *queue, const json_t *whole, const json_t *config)
{
    const kube_meta_t *meta = job;
    json_t *sets = NULL;
    TT_TRY(s_sets(&sets, front, job, whole, config));
    json_t *labels = json_object();
    char *of = tt_sprintf("%s/%s", front->group, front->version), *name = kueue_name(front, job);
    parts_recommend(labels, front->name, meta->name, "");
    json_object_set_new(labels, "kueue.x-k8s.io/job-uid", json_string(meta->uid));
    *out = s_workload(
        json_pack("{s:s, s:s, s:o, s:[o]}", "name", name, "namespace", *meta->namespace_ ? meta->namespace_ : "default",
            "labels", labels, "ownerReferences", parts_owner_of(of, front->kind, meta->name, meta->uid, true)),
        queue, sets);
    free(of);
    free(name);
    return TT_OK;
}

json_t *kueue_of_parts(json_t *metadata, const char *queue, const front_part_t *parts, size_t count)
{
    json_t *sets = json_array();
    for (size_t i = 0; i < count; i++)
        if (parts[i].count > 0)
            json_array_append_new(sets, json_pack("{s:s, s:I, s:O}", "name", parts[i].name, "count",
                                            (json_int_t)parts[i].count, "template", parts[i].template_));
    return s_workload(metadata, queue, sets);
}

static const char *s_pod_class(const json_t *workload)
{
    const char *name = "";
    size_t i;
    json_t *set;
    json_array_foreach(json_object_get(json_object_get(workload, "spec"), "podSets"), i, set)
    {
        if (!*name)
            name = parts_text(json_object_get(json_object_get(set, "template"), "spec"), "priorityClassName", "");
    }
    return name;
}

char *kueue_class_path(const json_t *workload, const json_t *whole)
{
    const json_t *labels = parts_object(parts_object(whole, "metadata"), "labels");
    const char *own = parts_text(labels, CLASS_LABEL, ""), *name = *own ? own : s_pod_class(workload);
    char *escaped = tt_query_escape(name), *path = NULL;
    if (*name)
        path = tt_sprintf("%s/%s",
            *own ? KUEUE_PATH "/workloadpriorityclasses" : "/apis/scheduling.k8s.io/v1/priorityclasses", escaped);
    free(escaped);
    return path;
}

tt_status_t kueue_rank(json_t *workload, const json_t *class_)
{
    const bool own = strcmp(parts_text(class_, "kind", ""), CLASS_KIND) == 0;
    const char *name = parts_job_name(class_);
    int64_t value = 0;
    bool bad = false;
    if (!parts_int(class_, "value", INT32_MIN, INT32_MAX, &value, &bad))
        return tt_err(TT_DATA, "priority class %.80s has no value", name);
    json_t *spec = json_object_get(workload, "spec");
    json_object_set_new(spec, "priority", json_integer(value));
    json_object_set_new(spec, "priorityClassRef",
        json_pack("{s:s, s:s, s:s}", "group", own ? KUEUE_GROUP : "scheduling.k8s.io", "kind",
            own ? CLASS_KIND : "PriorityClass", "name", name));
    return TT_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

static const json_t *s_status(const json_t *workload)
{
    return parts_object(workload, "status");
}

static json_t *s_condition(const json_t *workload, const char *type)
{
    return parts_condition(parts_array(s_status(workload), "conditions"), type);
}

static bool s_is(const json_t *workload, const char *type)
{
    return parts_is(s_condition(workload, type), "status", "True");
}

static const char *s_words(const kueue_t *self, const json_t *workload)
{
    const char *type = self->evicted ? "Evicted" : "QuotaReserved";
    if (self->inactive)
        return "its Workload has spec.active false";
    if (self->finished)
        return "its Workload has ended, and is to be deleted before it can wait again";
    if (self->reserved && !self->evicted)
        return "its quota is reserved, and admission checks are not through";
    return parts_text(s_condition(workload, type), "message", "");
}

/*  The count at admission; where it is not said, that of the spec. */
static int64_t s_count(const json_t *workload, const json_t *assignment)
{
    const json_t *sets = parts_array(parts_object(workload, "spec"), "podSets");
    const json_t *set = parts_named(sets, "name", parts_text(assignment, "name", ""));
    int64_t count = 0;
    bool bad = false;
    if (!parts_int(assignment, "count", 0, INT32_MAX, &count, &bad))
        parts_int(set, "count", 0, INT32_MAX, &count, &bad);
    return count;
}

static const json_t *s_assignments(const json_t *workload)
{
    return parts_array(parts_object(s_status(workload), "admission"), "podSetAssignments");
}

static void s_shares(kueue_t *self, const json_t *workload)
{
    const json_t *all = s_assignments(workload);
    size_t i;
    json_t *assignment;
    self->shares = tt_array0(json_array_size(all), sizeof *self->shares);
    json_array_foreach(all, i, assignment)
    {
        if (self->share_count < KUEUE_SETS_MAX)
            self->shares[self->share_count++] =
                (front_share_t){tt_strdup(parts_text(assignment, "name", "")), s_count(workload, assignment)};
    }
}

static void s_owner(kueue_t *self, const json_t *metadata)
{
    const json_t *owner = parts_controller(metadata);
    self->kind = tt_strdup(parts_text(owner, "kind", ""));
    self->job = tt_strdup(parts_text(owner, "name", ""));
    snprintf(self->job_uid, sizeof self->job_uid, "%s", parts_text(owner, "uid", ""));
}

static tt_status_t s_read(kueue_t **out, const json_t *workload)
{
    kube_meta_t meta;
    const json_t *metadata = json_object_get(workload, "metadata");
    TT_TRY(parts_meta(&meta, metadata));
    kueue_t *self = tt_new0(sizeof *self);
    self->meta = meta;
    s_owner(self, metadata);
    self->deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
    self->inactive = json_is_false(json_object_get(parts_object(workload, "spec"), "active"));
    self->reserved = s_is(workload, "QuotaReserved");
    self->admitted = s_is(workload, "Admitted");
    self->evicted = s_is(workload, "Evicted");
    self->finished = s_is(workload, "Finished");
    self->words = tt_strdup(s_words(self, workload));
    s_shares(self, workload);
    *out = self;
    return TT_OK;
}

tt_status_t kueue_decode(kueue_t **out, const char *json, size_t size)
{
    json_t *workload = NULL;
    TT_TRY(spec_load(&workload, "a Workload", json, size));
    const tt_status_t status = s_read(out, workload);
    json_decref(workload);
    return status;
}

void kueue_destroy(kueue_t **self_p)
{
    kueue_t *self = *self_p;
    if (!self)
        return;
    for (size_t i = 0; i < self->share_count; i++)
        free((char *)(uintptr_t)self->shares[i].name);
    free(self->shares);
    free(self->words);
    free(self->kind);
    free(self->job);
    kube_meta_clear(&self->meta);
    free(self);
    *self_p = NULL;
}

int64_t kueue_share(const front_admission_t *admission, const char *group)
{
    if (!admission->queue || !admission->admitted)
        return INT64_MAX;
    for (size_t i = 0; i < admission->share_count; i++)
        if (strcmp(admission->shares[i].name, group) == 0)
            return admission->shares[i].count;
    return 0;
}

bool kueue_goes(const kueue_t *self)
{
    return self->admitted && !self->evicted && !self->inactive && !self->finished && !self->deleting;
}

/* ---- what its owner has to tell Kueue ----------------------------------------------------------------------------------- */

static void s_set(json_t *workload, const char *type, bool on, const char *reason, const char *words, int64_t now_s)
{
    json_t *conditions = parts_member(parts_member(workload, "status", json_object()), "conditions", json_array());
    char *message = tt_sprintf("%.*s", MESSAGE_MAX, words);
    json_t *condition = parts_condition_set(conditions, type, on, reason, message, now_s);
    const json_t *generation = json_object_get(json_object_get(workload, "metadata"), "generation");
    if (json_is_integer(generation))
        json_object_set_new(condition, "observedGeneration", json_deep_copy(generation));
    free(message);
}

/*  Who had to make room for others is put into the queue again at once; who was evicted for anything else waits till Kueue lets it. */
static bool s_is_requeued(const char *reason)
{
    return strcmp(reason, "Preempted") == 0 || strcmp(reason, "NodeFailures") == 0;
}

void kueue_release(json_t *workload, int64_t now_s)
{
    const json_t *evicted = s_condition(workload, "Evicted");
    char *reason = tt_strdup(parts_text(evicted, "reason", "Pending")),
         *words = tt_strdup(parts_text(evicted, "message", ""));
    s_set(workload, "Requeued", s_is_requeued(reason), reason, words, now_s);
    s_set(workload, "QuotaReserved", false, "Pending", words, now_s);
    s_set(workload, "Admitted", false, "NoReservation", "It has no quota any more", now_s);
    json_object_del(json_object_get(workload, "status"), "admission");
    free(reason);
    free(words);
}

void kueue_finish(json_t *workload, bool well, const char *words, int64_t now_s)
{
    s_set(workload, "Finished", true, well ? "Succeeded" : "Failed", words, now_s);
}

/* ---- its pods ----------------------------------------------------------------------------------------------------------- */

json_t *kueue_flavors(const json_t *workload)
{
    json_t *seen = json_object(), *names = json_array();
    size_t i;
    json_t *assignment, *flavor;
    const char *key;
    json_array_foreach(s_assignments(workload), i, assignment)
    {
        json_object_foreach(parts_object(assignment, "flavors"), key, flavor)
        {
            const char *name = json_string_value(flavor);
            if (name && !json_object_get(seen, name) && json_array_size(names) < FLAVORS_MAX) {
                json_object_set_new(seen, name, json_true());
                json_array_append_new(names, json_string(name));
            }
        }
    }
    json_decref(seen);
    return names;
}

static void s_merge(json_t *into, const char *key, const json_t *from)
{
    json_object_update(parts_member(into, key, json_object()), (json_t *)(uintptr_t)from);
}

/*  Each once. */
static void s_tolerate(json_t *into, const json_t *from)
{
    json_t *all = parts_member(into, "tolerations", json_array());
    size_t i, k;
    json_t *one, *there;
    json_array_foreach(from, i, one)
    {
        bool known = false;
        json_array_foreach(all, k, there)
        {
            known |= json_equal(one, there) != 0;
        }
        if (!known)
            json_array_append_new(all, json_deep_copy(one));
    }
}

static void s_of_flavors(json_t *update, const json_t *assignment, const json_t *flavors)
{
    const char *key;
    json_t *name;
    json_object_foreach(parts_object(assignment, "flavors"), key, name)
    {
        const char *text = json_string_value(name);
        const json_t *spec = text ? parts_object(json_object_get(flavors, text), "spec") : NULL;
        s_merge(update, "nodeSelector", parts_object(spec, "nodeLabels"));
        s_tolerate(update, parts_array(spec, "tolerations"));
    }
}

/*  What admission checks found, those that provision nodes among them. */
static void s_of_checks(json_t *update, const json_t *workload, const char *set)
{
    static const char *const maps[] = {"labels", "annotations", "nodeSelector"};
    size_t i;
    json_t *check;
    json_array_foreach(parts_array(s_status(workload), "admissionChecks"), i, check)
    {
        const json_t *found = parts_named(parts_array(check, "podSetUpdates"), "name", set);
        for (size_t k = 0; k < TT_COUNT(maps); k++)
            s_merge(update, maps[k], parts_object(found, maps[k]));
        s_tolerate(update, parts_array(found, "tolerations"));
    }
}

json_t *kueue_updates(const json_t *workload, const json_t *flavors)
{
    json_t *updates = json_object();
    size_t i;
    json_t *assignment;
    json_array_foreach(s_assignments(workload), i, assignment)
    {
        const char *set = parts_text(assignment, "name", "");
        json_t *update = json_object();
        s_of_flavors(update, assignment, flavors);
        s_of_checks(update, workload, set);
        json_object_set_new(updates, set, update);
    }
    return updates;
}

/*  Of labels and annotations ours stay: by them a pod is known. */
static void s_add(json_t *into, const char *key, const json_t *from)
{
    json_object_update_missing(parts_member(into, key, json_object()), (json_t *)(uintptr_t)from);
}

void kueue_dress(json_t *pod, const json_t *updates, const char *set)
{
    const json_t *update = parts_object(updates, set);
    json_t *metadata = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");
    if (!update)
        return;
    s_add(metadata, "labels", parts_object(update, "labels"));
    s_add(metadata, "annotations", parts_object(update, "annotations"));
    s_merge(spec, "nodeSelector", parts_object(update, "nodeSelector"));
    s_tolerate(spec, parts_array(update, "tolerations"));
    parts_label(pod, SET_LABEL, set);
}
