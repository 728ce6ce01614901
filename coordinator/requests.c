#define TT_LOG_COMPONENT "requests"
#include "coordinator/requests.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/job/order.h"
#include "coordinator/state.h"
#include "coordinator/status.h"

static tt_status_t s_print(json_t *object, tt_buf_t *out)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(object);
    TT_CHECK(text != NULL);
    const tt_status_t status = tt_buf_str(out, text);
    free(text);
    return status;
}

/* ---- status, watch, snapshot --------------------------------------------------------------------------------------- */

static tt_status_t s_status(coordinator_t *self, const char *identity, json_t *body, tt_buf_t *out)
{
    (void)identity;
    (void)body;
    return s_print(status_json(self), out);
}

static tt_status_t s_watch(coordinator_t *self, const char *identity, json_t *body, tt_buf_t *out)
{
    (void)body;
    if (!identity)
        return tt_err(
            TT_UNSUPPORTED, "watch works on the control socket only; over HTTP ask for /status again and again");
    observers_watch(self->observers, identity);
    return s_print(json_object(), out);
}

static tt_status_t s_snapshot(coordinator_t *self, const char *identity, json_t *body, tt_buf_t *out)
{
    (void)identity;
    (void)body;
    if (!self->snapshot.path[0])
        return tt_err(TT_NOT_FOUND, "there is no snapshot yet");
    return s_print(status_snapshot_json(&self->snapshot), out);
}

/* ---- scale --------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check_count(const coordinator_t *self, const char *name, json_t *value, tt_peer_role_t *role)
{
    *role = tt_peer_role_find(name);
    if (*role == TT_PEER_AGGREGATOR)
        return tt_err(TT_INVALID, "aggregators follow the learners; scale collector and learner");
    if (*role != TT_PEER_COLLECTOR && *role != TT_PEER_LEARNER)
        return tt_err(TT_INVALID, "no role '%s'; there are collector and learner", name);
    const json_int_t count = json_integer_value(value);
    const uint32_t most = coordinator_most(self, *role);
    const bool learner = *role == TT_PEER_LEARNER;
    if (!json_is_integer(value) || count < 1)
        return tt_err(
            TT_INVALID, "%s must be a number from 1 to %u (%s)", name, most, learner ? "learner.shards" : "num_envs");
    if (count > (json_int_t)most)
        return tt_err(TT_INVALID, "%lld %ss; at most %u have work (%s: every one needs %s)", (long long)count, name,
            most, learner ? "learner.shards" : "num_envs", learner ? "a shard" : "an environment");
    return TT_OK;
}

static tt_status_t s_scale(coordinator_t *self, const char *identity, json_t *body, tt_buf_t *out)
{
    (void)identity;
    const char *name;
    json_t *value;
    tt_peer_role_t role;
    if (self->ends.phase != ENDS_RUNNING)
        return tt_err(TT_STOPPED, "the run is ending (%s)", self->ends.reason);
    if (self->alone)
        return tt_err(TT_UNSUPPORTED,
            "this run has no controller; whoever started its members can start more (kubectl scale dijob/NAME "
            "--replicas=N)");
    if (json_object_size(body) == 0)
        return tt_err(TT_INVALID, "say which role, for example {\"collector\": 2}");
    json_object_foreach(body, name, value) TT_TRY(s_check_count(self, name, value, &role)); /* all of it, or nothing */
    json_object_foreach(body, name, value)
    {
        TT_TRY(s_check_count(self, name, value, &role));
        const uint32_t count = (uint32_t)json_integer_value(value);
        log_info("scale: %s %u -> %u", name, roster_desired(self->roster, role), count);
        if (self->journal)
            TT_TRY(journal_desired(self->journal, role, count));
        roster_desire(self->roster, role, count);
    }
    TT_TRY(coordinator_fit_aggregators(self));
    coordinator_tell_counts(self);
    return s_print(status_counts_json(self), out);
}

/* ---- stop ---------------------------------------------------------------------------------------------------------- */

/*  The exit code is between the processes of a run: who asks over HTTP gives none. */
static tt_status_t s_stop(coordinator_t *self, const char *identity, json_t *body, tt_buf_t *out)
{
    TT_TRY(tt_order_check_stop(body, identity != NULL));
    const char *reason = json_string_value(json_object_get(body, "reason"));
    ends_stop(self, reason && reason[0] ? reason : "asked to stop",
        (uint32_t)json_integer_value(json_object_get(body, "code")), json_is_true(json_object_get(body, "now")));
    return s_print(json_object(), out);
}

/* ---- the table ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *verb;
    tt_status_t (*answer)(coordinator_t *self, const char *identity, json_t *body, tt_buf_t *out);
} s_verbs[] = {
    {"status", s_status},
    {"scale", s_scale},
    {"stop", s_stop},
    {"watch", s_watch},
    {"snapshot", s_snapshot},
};

tt_status_t requests_answer(
    coordinator_t *self, const char *identity, const char *verb, const char *body, tt_buf_t *out)
{
    for (size_t i = 0; i < TT_COUNT(s_verbs); i++) {
        if (strcmp(s_verbs[i].verb, verb) != 0)
            continue;
        json_t *object = NULL;
        TT_TRY(tt_order_parse(&object, verb, body));
        const tt_status_t status = s_verbs[i].answer(self, identity, object, out);
        json_decref(object);
        return status;
    }
    return tt_err(TT_USAGE, "no verb '%s'; there are status, scale, stop, watch and snapshot", verb);
}
