#include "task/job_object.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/job/job.h"
#include "k8s/front/kueue.h"
#include "k8s/front/object.h"

#define LABEL_JOB "tutti-job"
#define CARD      "nvidia.com/gpu"
#define SLOT_CPU  "1" /* what a slot reserves where nobody says how much */
#define LETTERS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

enum { GRACE_S = 5, LABEL_MAX = 63, RESOURCE_MAX = 128 };

/* ---- resources ------------------------------------------------------------------------------------------------------------ */

/*  Of a node's own, or, as a limit, of whoever has a domain: "example.com/card". */
static bool s_is_resource(const char *name, bool limits)
{
    static const char *const own[] = {"cpu", "memory", "ephemeral-storage"};
    const char *slash = strchr(name, '/');
    for (size_t i = 0; i < TT_COUNT(own); i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return limits && slash && slash > name && slash[1] && !strchr(slash + 1, '/') &&
           strspn(name, LETTERS "-._/") == strlen(name);
}

/*  Of kubernetes.io or one of its own? There no card is, and no node would ever have it. */
static bool s_is_kubernetes(const char *name)
{
    static const char own[] = "kubernetes.io/";
    const char *at = strstr(name, own);
    return at && (at == name || at[-1] == '.');
}

/*  What has a domain is counted in wholes. */
static tt_status_t s_amount(const char *option, const char *word, const char *name, const char *text)
{
    double value;
    if (tt_quantity(&value, text) != TT_OK || value <= 0)
        return tt_err(TT_USAGE, "--%s: '%.100s': expected an amount such as 1, 500m or 4Gi", option, word);
    if (strchr(name, '/') && value != floor(value))
        return tt_err(TT_USAGE, "--%s: '%.100s': expected a whole number, from 1 on", option, word);
    return TT_OK;
}

static tt_status_t s_resource(json_t *out, const char *option, const char *word)
{
    const bool limits = strcmp(option, "limits") == 0;
    const char *equals = strchr(word, '=');
    char name[RESOURCE_MAX];
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - word) : 0, word);
    if (!equals || !s_is_resource(name, limits))
        return tt_err(TT_USAGE, "--%s: '%.100s': expected cpu=N, memory=N or ephemeral-storage=N%s", option, word,
            limits ? ", or a card's name in its domain, " CARD "=N" : "; cards are --limits");
    if (s_is_kubernetes(name))
        return tt_err(TT_USAGE, "--%s: '%.100s': the domain is Kubernetes' own, which has no cards", option, word);
    TT_TRY(s_amount(option, word, name, equals + 1));
    if (json_object_get(out, name))
        return tt_err(TT_USAGE, "--%s: %s is there twice", option, name);
    json_object_set_new(out, name, json_string(equals + 1));
    return TT_OK;
}

/*  A new reference. */
static tt_status_t s_resources(json_t **out, const char *option, const char *list)
{
    json_t *made = json_object();
    char *copy = tt_strdup(list ? list : ""), *rest = copy, *word;
    tt_status_t status = TT_OK;
    while (status == TT_OK && *copy && (word = strsep(&rest, ",")) != NULL)
        status = s_resource(made, option, word);
    free(copy);
    if (status == TT_OK)
        *out = made;
    else
        json_decref(made);
    return status;
}

/*  The API server would refuse each Job for it. */
static tt_status_t s_fits(const json_t *requests, const json_t *limits)
{
    const char *name;
    json_t *most;
    json_object_foreach((json_t *)(uintptr_t)limits, name, most)
    {
        double asked = 0, allowed = 0;
        const char *text = json_string_value(json_object_get(requests, name));
        if (text && tt_quantity(&asked, text) == TT_OK && tt_quantity(&allowed, json_string_value(most)) == TT_OK &&
            asked > allowed)
            return tt_err(
                TT_USAGE, "--requests: %s=%s is more than --limits allows, %s", name, text, json_string_value(most));
    }
    return TT_OK;
}

tt_status_t job_object_resources(json_t **requests, json_t **limits, const cluster_rules_t *rules)
{
    json_t *asked = NULL, *most = NULL;
    tt_status_t status = s_resources(&most, "limits", rules->limits);
    if (status == TT_OK)
        status = s_resources(&asked, "requests", rules->requests);
    if (status == TT_OK && !rules->requests && !json_object_get(most, "cpu")) /* a limit is a request, too */
        json_object_set_new(asked, "cpu", json_string(SLOT_CPU));
    if (status == TT_OK)
        status = s_fits(asked, most);
    if (status == TT_OK) {
        *requests = asked;
        *limits = most;
        return TT_OK;
    }
    json_decref(asked);
    json_decref(most);
    return status;
}

/* ---- the pod ----------------------------------------------------------------------------------------------------------------- */

static json_t *s_strings(char *const *texts)
{
    json_t *array = json_array();
    for (; texts && *texts; texts++)
        json_array_append_new(array, tt_json_text(*texts));
    return array;
}

static json_t *s_env(const tt_template_t *template_)
{
    json_t *array = json_array();
    for (size_t i = 0; i < template_->env_count; i++)
        json_array_append_new(array, json_pack("{s:o, s:o}", "name", tt_json_text(template_->env[i].name), "value",
                                         tt_json_text(template_->env[i].value)));
    return array;
}

/*  A card is a limit, which is a request, too. */
static json_t *s_amounts(const job_object_rules_t *self, const cluster_job_t *job)
{
    json_t *limits = json_deep_copy(self->limits);
    if (job->gpu && !json_object_get(limits, CARD))
        json_object_set_new(limits, CARD, json_string("1"));
    return json_pack("{s:o, s:o}", "requests", json_deep_copy(self->requests), "limits", limits);
}

/*  What pod security `restricted` asks for, as far as who is root can have it: without its capabilities root could do less than the one
 *  whom it is to be like. */
static json_t *s_container_security(const job_object_rules_t *self)
{
    json_t *out = json_pack("{s:b}", "allowPrivilegeEscalation", 0);
    if (self->user != 0)
        json_object_set_new(out, "capabilities", json_pack("{s:[s]}", "drop", "ALL"));
    return out;
}

static json_t *s_container(const job_object_rules_t *self, const cluster_job_t *job)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:[{s:s, s:s}], s:o, s:o}", "name", JOB_OBJECT_CONTAINER, "image",
        tt_json_text(job->image), "command", s_strings(job->template_->command), "env", s_env(job->template_),
        "workingDir", tt_json_text(job->template_->working_dir), "volumeMounts", "name", "volume", "mountPath",
        CLUSTER_VOLUME, "resources", s_amounts(self, job), "securityContext", s_container_security(self));
}

static json_t *s_pod(const job_object_rules_t *self, const cluster_job_t *job)
{
    return json_pack("{s:s, s:b, s:i, s:{s:I, s:I, s:b, s:{s:s}}, s:[o], s:[{s:s, s:{s:s}}]}", "restartPolicy", "Never",
        "automountServiceAccountToken", 0, "terminationGracePeriodSeconds", GRACE_S, "securityContext", "runAsUser",
        (json_int_t)self->user, "runAsGroup", (json_int_t)self->group, "runAsNonRoot", self->user != 0,
        "seccompProfile", "type", "RuntimeDefault", "containers", s_container(self, job), "volumes", "name", "volume",
        "persistentVolumeClaim", "claimName", self->claim);
}

/* ---- the Job ----------------------------------------------------------------------------------------------------------------- */

/*  A task's name may be no label's value: too long, or with a dot at its end. */
static const char *s_label(const char *task)
{
    const size_t length = strlen(task);
    return length <= LABEL_MAX && length > 0 && isalnum((unsigned char)task[length - 1]) ? task : "";
}

static json_t *s_labels(const job_object_rules_t *self, const cluster_job_t *job)
{
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)job->job);
    json_t *labels = json_pack("{s:s, s:s, s:s}", JOB_OBJECT_REGISTRY, self->registry, LABEL_JOB, number,
        "app.kubernetes.io/managed-by", "tutti-task");
    parts_recommend(labels, "task", s_label(job->task), "job");
    return labels;
}

/*  A pod that makes room for another or leaves with its node has not failed: the Job makes one more, when that one has ended. Its shell
 *  (task/attempt.c) begins anew. */
static json_t *s_failures(void)
{
    return json_pack("{s:[{s:s, s:[{s:s, s:s}]}]}", "rules", "action", "Ignore", "onPodConditions", "type",
        "DisruptionTarget", "status", "True");
}

json_t *job_object(const job_object_rules_t *self, const cluster_job_t *job, const char *name)
{
    json_t *labels = s_labels(self, job),
           *spec = json_pack("{s:i, s:s, s:o, s:I, s:I, s:{s:{s:o}, s:o}}", "backoffLimit", 0, "podReplacementPolicy",
               "Failed", "podFailurePolicy", s_failures(), "activeDeadlineSeconds", (json_int_t)self->deadline_s,
               "ttlSecondsAfterFinished", (json_int_t)self->ttl_s, "template", "metadata", "labels",
               json_deep_copy(labels), "spec", s_pod(self, job));
    if (self->queue) { /* whoever has the queue lets it begin */
        json_object_set_new(labels, KUEUE_LABEL, json_string(self->queue));
        json_object_set_new(spec, "suspend", json_true());
    }
    json_t *out = json_pack("{s:s, s:s, s:{s:s, s:o, s:{s:o}}, s:o}", "apiVersion", "batch/v1", "kind", "Job",
        "metadata", "name", name, "labels", labels, "annotations", "tutti-task", tt_json_text(job->task), "spec", spec);
    TT_CHECK(out);
    return out;
}
