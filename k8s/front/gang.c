#include "k8s/front/gang.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/job.h"
#include "k8s/front/entry.h"
#include "k8s/front/kueue.h"

#define QUEUE_NOTE "scheduling.volcano.sh/queue-name" /* on a job whose spec has no place for a queue */

static const gang_t s_gangs[] = {
    {.name = "volcano",
        .group = "scheduling.volcano.sh",
        .version = "v1beta1",
        .scheduler = "volcano",
        .note = ENTRY_GROUP_NOTE,
        .queues = true},
    {.name = "scheduler-plugins",
        .group = "scheduling.x-k8s.io",
        .version = "v1alpha1",
        .scheduler = "scheduler-plugins-scheduler",
        .label = ENTRY_GROUP_LABEL,
        .times = true},
};

tt_status_t gang_pick(const gang_t **out, const char *name)
{
    *out = NULL;
    if (!name || strcmp(name, "none") == 0)
        return TT_OK;
    for (size_t i = 0; i < TT_COUNT(s_gangs); i++)
        if (strcmp(s_gangs[i].name, name) == 0)
            *out = &s_gangs[i];
    return *out ? TT_OK
                : tt_err(TT_INVALID, "'%.60s' is no gang scheduler; there are: volcano, scheduler-plugins", name);
}

char *gang_path(const gang_t *self, const char *namespace_, const char *name)
{
    return tt_sprintf(
        "/apis/%s/%s/namespaces/%s/podgroups%s%s", self->group, self->version, namespace_, *name ? "/" : "", name);
}

/* ---- what pods ask for ---------------------------------------------------------------------------------------------- */

/*  Resources by name as numbers. */
static void s_add(json_t *sum, const char *name, double amount)
{
    json_object_set_new(sum, name, json_real(json_number_value(json_object_get(sum, name)) + amount));
}

static void s_most(json_t *sum, const char *name, double amount)
{
    const double there = json_number_value(json_object_get(sum, name));
    json_object_set_new(sum, name, json_real(there > amount ? there : amount));
}

static double s_amount(const json_t *value)
{
    double amount = json_number_value(value);
    if (json_is_string(value) && tt_quantity(&amount, json_string_value(value)) != TT_OK)
        amount = 0; /* the API server will say what is wrong with it */
    return amount > 0 ? amount : 0;
}

/*  Requests; a limit stands for one that is not there, as the API server has it. */
static void s_container(json_t *sum, const json_t *container, void (*add)(json_t *sum, const char *name, double amount))
{
    const json_t *resources = json_object_get(container, "resources");
    const json_t *requests = parts_object(resources, "requests"), *limits = parts_object(resources, "limits");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)requests, name, value)
    {
        add(sum, name, s_amount(value));
    }
    json_object_foreach((json_t *)(uintptr_t)limits, name, value)
    {
        if (!json_object_get(requests, name))
            add(sum, name, s_amount(value));
    }
}

/*  All containers at once, or the greediest of those before them. A new reference. */
static json_t *s_of_pod(const json_t *template_)
{
    const json_t *spec = json_object_get(template_, "spec");
    json_t *sum = json_object();
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(spec, "containers"), i, container)
    {
        s_container(sum, container, s_add);
    }
    json_array_foreach(json_object_get(spec, "initContainers"), i, container)
    {
        s_container(sum, container, s_most);
    }
    return sum;
}

static void s_add_pods(json_t *sum, const json_t *template_, int64_t count)
{
    json_t *pod = s_of_pod(template_);
    const char *name;
    json_t *value;
    json_object_foreach(pod, name, value)
    {
        s_add(sum, name, (double)count * json_number_value(value));
    }
    json_decref(pod);
}

/*  A quantity: whole where it is, else thousandths, rounded up. */
static json_t *s_quantity(double amount)
{
    const double milli = ceil(amount * 1000 - 1e-6);
    if (milli > 9e18)
        return NULL;
    const long long whole = (long long)milli;
    return whole % 1000 ? json_sprintf("%lldm", whole) : json_sprintf("%lld", whole / 1000);
}

/*  Numbers as quantities. Takes sum. */
static json_t *s_quantities(json_t *sum)
{
    json_t *all = json_object();
    const char *name;
    json_t *value;
    json_object_foreach(sum, name, value)
    {
        json_t *quantity = json_number_value(value) > 0 ? s_quantity(json_number_value(value)) : NULL;
        if (quantity)
            json_object_set_new(all, name, quantity);
    }
    json_decref(sum);
    return all;
}

/* ---- the group ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const front_t *front;
    const void *job;
    const front_admission_t *admission;
    int64_t left; /* members that are not counted yet */
    json_t *sum;
} sum_t;

/*  Who is not admitted is not made: nobody is to wait for one. */
static int64_t s_min(const front_group_t *group, const front_admission_t *admission)
{
    const int64_t share = kueue_share(admission, group->name);
    return group->min < share ? group->min : share;
}

static int64_t s_min_of(const sum_t *self, const char *who)
{
    front_group_t group;
    for (size_t i = 0; self->front->group_at(self->job, i, &group); i++)
        if (strcmp(group.name, who) == 0)
            return s_min(&group, self->admission);
    return 0;
}

static tt_status_t s_on_template(void *ctx, const front_template_t *template_)
{
    sum_t *self = ctx;
    const json_t *template_of = parts_object(template_->holder, "template");
    if (!template_of) /* a role that is not there may have a task's name */
        return TT_OK;
    const int64_t min = s_min_of(self, template_->who), count = min < self->left ? min : self->left;
    s_add_pods(self->sum, template_of, count);
    self->left -= count;
    return TT_OK;
}

/*  Of so many members, in the order of the templates. */
static json_t *s_resources(
    const front_t *front, const void *job, const front_admission_t *admission, const json_t *whole, int64_t members)
{
    sum_t sum = {.front = front, .job = job, .admission = admission, .left = members, .sum = json_object()};
    (void)front->templates(whole, s_on_template, &sum);
    return s_quantities(sum.sum);
}

static int64_t s_members(const front_t *front, const void *job, const front_admission_t *admission)
{
    int64_t sum = 0;
    front_group_t group;
    for (size_t i = 0; front->group_at(job, i, &group); i++)
        sum += s_min(&group, admission);
    return sum;
}

static void s_text(json_t *spec, const char *key, const char *text)
{
    if (*text)
        json_object_set_new(spec, key, json_string(text));
}

static void s_queue(json_t *spec, const json_t *policy, const json_t *whole)
{
    const json_t *notes = json_object_get(json_object_get(whole, "metadata"), "annotations");
    s_text(spec, "queue", parts_text(policy, "queue", parts_text(notes, QUEUE_NOTE, "")));
    s_text(spec, "priorityClassName", parts_text(policy, "priorityClass", ""));
}

static void s_time(json_t *spec, const json_t *policy)
{
    int64_t seconds = 0;
    bool bad = false;
    if (parts_int(policy, "scheduleTimeoutSeconds", 1, INT32_MAX, &seconds, &bad))
        json_object_set_new(spec, "scheduleTimeoutSeconds", json_integer(seconds));
}

/*  Takes resources. */
static json_t *s_spec_of(int64_t members, json_t *resources)
{
    json_t *spec = json_pack("{s:I}", "minMember", (json_int_t)members);
    if (json_object_size(resources) > 0)
        json_object_set(spec, "minResources", resources);
    json_decref(resources);
    return spec;
}

static json_t *s_spec(
    const gang_t *self, const front_t *front, const void *job, const front_admission_t *admission, const json_t *whole)
{
    const json_t *policy = front->scheduling ? front->scheduling(whole) : NULL;
    int64_t members = s_members(front, job, admission);
    bool bad = false;
    parts_int(policy, "minAvailable", 1, INT32_MAX, &members, &bad);
    if (members == 0)
        return NULL;
    json_t *resources = json_deep_copy(parts_object(policy, "minResources"));
    if (!resources)
        resources = s_resources(front, job, admission, whole, members);
    json_t *spec = s_spec_of(members, resources);
    if (self->queues)
        s_queue(spec, policy, whole);
    if (self->times)
        s_time(spec, policy);
    return spec;
}

/*  Takes both. */
static json_t *s_group(const gang_t *self, json_t *metadata, json_t *spec)
{
    char *api = tt_sprintf("%s/%s", self->group, self->version);
    json_t *group =
        json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", api, "kind", "PodGroup", "metadata", metadata, "spec", spec);
    free(api);
    return group;
}

json_t *gang_make(
    const gang_t *self, const front_t *front, const void *job, const front_admission_t *admission, const json_t *whole)
{
    const kube_meta_t *meta = job;
    json_t *spec = s_spec(self, front, job, admission, whole), *labels = json_object();
    if (!spec) {
        json_decref(labels);
        return NULL;
    }
    char *of = tt_sprintf("%s/%s", front->group, front->version);
    parts_recommend(labels, front->name, meta->name, "");
    json_t *metadata = json_pack("{s:s, s:s, s:o, s:[o]}", "name", meta->name, "namespace",
        *meta->namespace_ ? meta->namespace_ : "default", "labels", labels, "ownerReferences",
        parts_owner_of(of, front->kind, meta->name, meta->uid, true));
    free(of);
    return s_group(self, metadata, spec);
}

json_t *gang_of_parts(const gang_t *self, json_t *metadata, const front_part_t *parts, size_t count)
{
    int64_t members = 0;
    json_t *sum = json_object();
    for (size_t i = 0; i < count; i++) {
        members += parts[i].count;
        s_add_pods(sum, parts[i].template_, parts[i].count);
    }
    json_t *spec = s_spec_of(members, s_quantities(sum));
    for (size_t i = count; i-- > 0 && self->queues;) {
        s_queue(spec, NULL, parts[i].template_);
        s_text(spec, "priorityClassName",
            parts_text(json_object_get(parts[i].template_, "spec"), "priorityClassName", ""));
    }
    return s_group(self, metadata, spec);
}

/* ---- its pods ------------------------------------------------------------------------------------------------------- */

void gang_dress(const gang_t *self, json_t *pod, const char *job)
{
    json_t *spec = json_object_get(pod, "spec");
    const char *component = parts_text(parts_labels(pod), "app.kubernetes.io/component", "");
    if (!*parts_text(spec, "schedulerName", ""))
        json_object_set_new(spec, "schedulerName", json_string(self->scheduler));
    if (self->label)
        parts_label(pod, self->label, job);
    if (self->note)
        parts_annotate(pod, self->note, job);
    if (self->queues && *component)
        parts_annotate(pod, "volcano.sh/task-spec", component);
}
