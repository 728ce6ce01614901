#include "k8s/replicas/replicas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/http/query.h"

enum { NAME_MAX_ = 253, FAILED_MAX = 1000 };

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void s_ask_clear(replicas_ask_t *ask)
{
    free(ask->cpus);
    free(ask->memory);
    free(ask->gpus);
}

static void s_names_free(char **names)
{
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}

void replicas_request_destroy(replicas_request_t **self_p)
{
    replicas_request_t *self = *self_p;
    if (!self)
        return;
    free(self->namespace_);
    free(self->coordinator);
    free(self->aggregator);
    free(self->name);
    s_ask_clear(&self->collectors);
    s_ask_clear(&self->learners);
    s_names_free(self->failed_collectors);
    s_names_free(self->failed_learners);
    free(self);
    *self_p = NULL;
}

/* ---- query --------------------------------------------------------------------------------------------------------- */

/*  A piece of a query, decoded; NULL: not text, or none of a name. */
static char *s_decode(const char *from, size_t size)
{
    char *text = tt_query_decode(from, size);
    for (const char *c = text; c && *c; c++)
        if ((unsigned char)*c > 0x7e) {
            free(text);
            return NULL;
        }
    return text;
}

static tt_status_t s_put(char **slot, char *value)
{
    if (*slot || !*value) /* the first of several counts; an empty one is none */
        free(value);
    else
        *slot = value;
    return TT_OK;
}

static tt_status_t s_query_pair(replicas_request_t *self, const char *pair, size_t size)
{
    const char *equals = memchr(pair, '=', size);
    const size_t key_size = equals ? (size_t)(equals - pair) : size;
    char *key = s_decode(pair, key_size);
    char *value = equals ? s_decode(equals + 1, size - key_size - 1) : tt_strdup("");
    char **slot = NULL;
    if (key && strcasecmp(key, "namespace") == 0)
        slot = &self->namespace_;
    else if (key && strcasecmp(key, "coordinator") == 0)
        slot = &self->coordinator;
    else if (key && strcasecmp(key, "aggregator") == 0)
        slot = &self->aggregator;
    else if (key && strcasecmp(key, "name") == 0)
        slot = &self->name;
    tt_status_t status = TT_OK;
    if (!slot)
        status = tt_err(TT_INVALID, "request param %.80s is not supported", key ? key : "(not text)");
    else if (!value || strlen(value) > NAME_MAX_)
        status = tt_err(TT_INVALID, "request param %s is not a name", key);
    free(key);
    if (status == TT_OK)
        return s_put(slot, value);
    free(value);
    return status;
}

static tt_status_t s_query(replicas_request_t *self, const char *query)
{
    for (const char *at = query; *at;) {
        const size_t size = strcspn(at, "&");
        if (size > 0)
            TT_TRY(s_query_pair(self, at, size));
        at += size + (at[size] == '&');
    }
    return TT_OK;
}

/* ---- body ---------------------------------------------------------------------------------------------------------- */

/*  A member whatever the case of its name, as Go's decoder finds it; JSON null counts as absent. */
static json_t *s_member(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    const char *key;
    json_t *other;
    if (!value)
        json_object_foreach(object, key, other) if (strcasecmp(key, name) == 0) value = other;
    return json_is_null(value) ? NULL : value;
}

static tt_status_t s_text(char **slot, json_t *body, const char *name)
{
    const json_t *value = s_member(body, name);
    if (!value)
        return TT_OK;
    const char *text = json_string_value(value);
    if (!text || strlen(text) > NAME_MAX_ || strlen(text) != json_string_length(value))
        return tt_err(TT_INVALID, "%s: expected a string of at most %d characters", name, NAME_MAX_);
    if (*text)
        *slot = tt_strdup(text);
    return TT_OK;
}

/*  "500m", 2, 0.5: kept as text, dropped when zero. */
static tt_status_t s_quantity(char **slot, json_t *ask, const char *role, const char *name)
{
    const json_t *value = s_member(ask, name);
    char number[32] = "";
    const char *text = number;
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(number, sizeof number, "%.15g", json_real_value(value));
    else if (json_is_string(value))
        text = json_string_value(value);
    else if (value)
        return tt_err(TT_INVALID, "%s.%s: expected a quantity", role, name);
    if (!*text)
        return TT_OK;
    double amount = 0;
    const tt_status_t status = tt_quantity(&amount, text);
    if (status != TT_OK)
        return tt_err_wrap(status, "%s.%s", role, name);
    if (amount < 0)
        return tt_err(TT_INVALID, "%s.%s: %s is below zero", role, name, text);
    if (amount > 0)
        *slot = tt_strdup(text);
    return TT_OK;
}

static tt_status_t s_count(int *out, json_t *ask, const char *role, const char *name)
{
    const json_t *value = s_member(ask, name);
    if (value && (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > REPLICAS_MAX))
        return tt_err(
            TT_INVALID, "%s%sreplicas: expected an integer from 0 to %d", role, *role ? "." : "", REPLICAS_MAX);
    *out = (int)json_integer_value(value);
    return TT_OK;
}

static tt_status_t s_ask(replicas_ask_t *out, json_t *body, const char *role)
{
    json_t *ask = s_member(body, role);
    if (!ask)
        return TT_OK;
    if (!json_is_object(ask))
        return tt_err(TT_INVALID, "%s: expected an object", role);
    TT_TRY(s_count(&out->replicas, ask, role, "replicas"));
    TT_TRY(s_quantity(&out->cpus, ask, role, "cpus"));
    TT_TRY(s_quantity(&out->memory, ask, role, "memory"));
    return s_quantity(&out->gpus, ask, role, "gpus");
}

static bool s_has(char **names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/*  Pod names, each once. */
static tt_status_t s_names(char ***out, json_t *body, const char *role)
{
    json_t *list = s_member(body, role);
    if (list && !json_is_array(list))
        return tt_err(TT_INVALID, "%s: expected a list of pod names", role);
    if (json_array_size(list) > FAILED_MAX)
        return tt_err(TT_INVALID, "%s: more than %d names", role, FAILED_MAX);
    char **names = *out = tt_array0(json_array_size(list) + 1, sizeof *names);
    size_t i, count = 0;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        const char *name = json_string_value(value);
        if (!name || !*name || strlen(name) > NAME_MAX_)
            return tt_err(TT_INVALID, "%s[%zu]: expected a pod's name", role, i);
        if (!s_has(names, name))
            names[count++] = tt_strdup(name);
    }
    return TT_OK;
}

static tt_status_t s_members(replicas_request_t *self, json_t *body)
{
    if (self->v2)
        return s_count(&self->collectors.replicas, body, "", "replicas");
    TT_TRY(s_text(&self->namespace_, body, "namespace"));
    TT_TRY(s_text(&self->coordinator, body, "coordinator"));
    if (self->verb == REPLICAS_FAILED) {
        TT_TRY(s_names(&self->failed_collectors, body, "collectors"));
        return s_names(&self->failed_learners, body, "learners");
    }
    TT_TRY(s_ask(&self->collectors, body, "collectors"));
    return s_ask(&self->learners, body, "learners");
}

static tt_status_t s_body(replicas_request_t *self, const char *text, size_t size)
{
    if (size > REPLICAS_BODY_MAX)
        return tt_err(TT_INVALID, "the body is larger than %d bytes", REPLICAS_BODY_MAX);
    if (!text || size == 0)
        return tt_err(TT_INVALID, "the body is empty");
    json_error_t error;
    json_t *body = json_loadb(text, size, 0, &error);
    if (!body)
        return tt_err(TT_INVALID, "the body is not JSON: line %d: %s", error.line, error.text);
    const tt_status_t status =
        json_is_object(body) ? s_members(self, body) : tt_err(TT_INVALID, "the body is not a JSON object");
    json_decref(body);
    return status;
}

/* ---- routes -------------------------------------------------------------------------------------------------------- */

/*  "default.qbert": a namespace has no dot. */
static tt_status_t s_job_id(replicas_request_t *self, const char *id, size_t size)
{
    const char *dot = memchr(id, '.', size);
    if (!dot || dot == id || dot == id + size - 1 || size > 2 * NAME_MAX_)
        return tt_err(TT_INVALID, "'%.*s' is not NAMESPACE.NAME", (int)(size < 80 ? size : 80), id);
    self->namespace_ = s_decode(id, (size_t)(dot - id));
    self->name = s_decode(dot + 1, size - (size_t)(dot - id) - 1);
    return self->namespace_ && self->name ? TT_OK : tt_err(TT_INVALID, "the job's id is not text");
}

static tt_status_t s_path(replicas_request_t *self, const char *path, bool *failed)
{
    static const char v2[] = "/v2alpha1/job/", tail[] = "/replicas";
    *failed = strcmp(path, "/v1alpha1/replicas/failed") == 0;
    if (*failed || strcmp(path, "/v1alpha1/replicas") == 0)
        return TT_OK;
    const size_t size = strlen(path), ends = sizeof v2 - 1 + sizeof tail - 1;
    if (strncmp(path, v2, sizeof v2 - 1) != 0 || size < ends || strcmp(path + size - (sizeof tail - 1), tail) != 0)
        return tt_err(TT_NOT_FOUND, "there is no %.200s", path);
    self->v2 = true;
    return s_job_id(self, path + sizeof v2 - 1, size - ends);
}

static tt_status_t s_verb(replicas_verb_t *out, const char *method, bool failed)
{
    const bool post = strcmp(method, "POST") == 0;
    if (failed && post)
        *out = REPLICAS_FAILED;
    else if (!failed && post)
        *out = REPLICAS_CREATE;
    else if (!failed && strcmp(method, "GET") == 0)
        *out = REPLICAS_GET;
    else if (!failed && strcmp(method, "DELETE") == 0)
        *out = REPLICAS_DELETE;
    else
        return tt_err(TT_UNSUPPORTED, "%.20s not implemented", method);
    return TT_OK;
}

static tt_status_t s_parse(
    replicas_request_t *self, const char *method, const char *path, const char *query, const char *body, size_t size)
{
    bool failed = false;
    TT_TRY(s_path(self, path, &failed));
    TT_TRY(s_verb(&self->verb, method, failed));
    if (self->verb != REPLICAS_GET)
        return s_body(self, body, size);
    return self->v2 ? TT_OK : s_query(self, query);
}

tt_status_t replicas_parse(
    replicas_request_t **out, const char *method, const char *path, const char *query, const char *body, size_t size)
{
    replicas_request_t *self = tt_new0(sizeof *self);
    const tt_status_t status = s_parse(self, method, path, query, body, size);
    if (status == TT_OK)
        *out = self;
    else
        replicas_request_destroy(&self);
    return status;
}

/* ---- who may what -------------------------------------------------------------------------------------------------- */

const char *replicas_about(const replicas_request_t *self)
{
    return self->coordinator ? self->coordinator : self->aggregator;
}

static bool s_is_about(const replicas_request_t *self, dijob_role_t role)
{
    if (!self->coordinator && self->aggregator)
        return role == DIJOB_AGGREGATOR;
    return role == DIJOB_COORDINATOR || (role == DIJOB_AGGREGATOR && self->verb == REPLICAS_FAILED);
}

tt_status_t replicas_check_about(const replicas_request_t *self, const dijob_pod_t *pod)
{
    const char *namespace_ = self->namespace_ ? self->namespace_ : "", *name = replicas_about(self);
    if (pod && s_is_about(self, (dijob_role_t)pod->role))
        return TT_OK;
    return tt_err(TT_NOT_FOUND, "pod: %s/%s not exists in cache", namespace_, name ? name : "");
}

tt_status_t replicas_may_report(
    const replicas_request_t *self, dijob_role_t by, const char *name, const dijob_pod_t *pod)
{
    const char *who = self->coordinator;
    const bool own = pod->role == DIJOB_DDP_LEARNER && pod->owner_pod && strcmp(pod->owner_pod, who) == 0;
    if (by == DIJOB_AGGREGATOR && !own)
        return tt_err(TT_INVALID, "pod %s is no learner of %s", name, who);
    if (pod->role == DIJOB_COORDINATOR || pod->role == DIJOB_TASK)
        return tt_err(
            TT_INVALID, "pod %s is a %s: not one of the replicas", name, dijob_role_label((dijob_role_t)pod->role));
    return TT_OK;
}

/* ---- answers ------------------------------------------------------------------------------------------------------- */

static const char *s_success(replicas_verb_t verb)
{
    switch (verb) {
    case REPLICAS_CREATE:
        return "successfully create replicas";
    case REPLICAS_DELETE:
        return "successfully delete replicas";
    case REPLICAS_FAILED:
        return "successfully recreate replicas";
    default:
        return "successfully get replicas";
    }
}

static int s_append(const char *data, size_t size, void *ctx)
{
    return tt_buf_add(ctx, data, size) == TT_OK ? 0 : -1;
}

tt_status_t replicas_print(tt_buf_t *out, replicas_verb_t verb, const replicas_reply_t *reply)
{
    const bool success = reply->code >= 200 && reply->code < 300;
    const char *text = reply->text ? reply->text : s_success(verb);
    json_t *all = json_object();
    json_object_set_new(all, "success", json_boolean(success));
    json_object_set_new(all, "code", json_integer(!success));
    json_object_set_new(all, "message", tt_json_text(text));
    json_object_set_new(all, "data", reply->data ? json_incref(reply->data) : json_null());
    const int failed = json_dump_callback(all, s_append, out, JSON_COMPACT);
    json_decref(all);
    return failed ? tt_err(TT_INTERNAL, "the answer is larger than %zu bytes", out->max) : TT_OK;
}

int replicas_code(tt_status_t status)
{
    switch (status) {
    case TT_OK:
        return 200;
    case TT_INVALID:
        return 400;
    case TT_DENIED:
        return 403;
    case TT_NOT_FOUND:
        return 404;
    case TT_EXISTS:
        return 409;
    case TT_UNSUPPORTED:
        return 501;
    case TT_UNAVAILABLE:
    case TT_TIMEOUT:
        return 503;
    default:
        return 500;
    }
}

int replicas_refuse(tt_buf_t *out, const char *method, tt_status_t status)
{
    const bool writes = strcmp(method, "POST") == 0 || strcmp(method, "DELETE") == 0;
    json_t *data = writes && status != TT_UNSUPPORTED ? replicas_object("", "", NULL, NULL) : NULL;
    const replicas_reply_t reply = {.code = replicas_code(status), .text = tt_err_text(), .data = data};
    const tt_status_t printed = replicas_print(out, REPLICAS_GET, &reply);
    json_decref(data);
    return printed == TT_OK ? reply.code : 500;
}

json_t *replicas_object(const char *namespace_, const char *coordinator, json_t *collectors, json_t *learners)
{
    json_t *object = json_object();
    json_object_set_new(object, "namespace", tt_json_text(namespace_));
    json_object_set_new(object, "coordinator", tt_json_text(coordinator));
    json_object_set_new(object, "collectors", collectors ? collectors : json_null());
    json_object_set_new(object, "learners", learners ? learners : json_null());
    return object;
}
