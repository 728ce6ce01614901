#include "coordinator/status.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "common/base/json.h"
#include "common/http/exposition.h"
#include "coordinator/digest.h"
#include "coordinator/state.h"

static json_t *s_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *s_u64(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *s_text_or_null(const char *text)
{
    return text && text[0] ? tt_json_text(text) : json_null();
}

static const char *s_phase(const coordinator_t *self)
{
    if (self->ends.phase == ENDS_RUNNING && !roster_announced(self->roster))
        return "starting";
    return ends_phase_name(self->ends.phase);
}

/*  Where its time goes: {"env": 0.61, ...}; null = it has not said yet. */
static json_t *s_time(const usage_share_t *shares, size_t count)
{
    json_t *object = count ? json_object() : json_null();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, shares[i].name, s_real(shares[i].share));
    return object;
}

static void s_add_usage(const peer_t *peer, json_t *object)
{
    usage_share_t shares[USAGE_STAGES];
    const size_t count = usage_shares(&peer->usage, shares);
    json_object_set_new(object, "time_share", s_time(shares, count));
    json_object_set_new(object, "cpus", count ? s_real(usage_cpus(&peer->usage)) : json_null());
    json_object_set_new(object, "memory_bytes", peer->usage.memory ? s_u64(peer->usage.memory) : json_null());
}

static const char *s_member_phase(const coordinator_t *self, const peer_t *peer)
{
    return roster_is_warming(self->roster, peer) ? "warming" : peer_state_name(peer->state);
}

static json_t *s_member(const coordinator_t *self, const peer_t *peer)
{
    json_t *object = json_object();
    json_object_set_new(object, "role", json_string(tt_peer_role_name(peer->role)));
    json_object_set_new(object, "index", json_integer(peer->index));
    json_object_set_new(object, "pid", json_integer(peer->pid));
    json_object_set_new(object, "host", tt_json_text(peer->host));
    json_object_set_new(object, "phase", json_string(s_member_phase(self, peer)));
    json_object_set_new(object, "state", tt_json_text(peer->doing));
    json_object_set_new(object, "seen_ms", json_integer((tt_now_ns(self->clock) - peer->seen_ns) / 1000000));
    s_add_usage(peer, object);
    if (peer->role == TT_PEER_LEARNER)
        json_object_set_new(object, "holds", json_boolean(peer->holds));
    if (peer->role == TT_PEER_LEARNER && peer->state == PEER_ACTIVE)
        json_object_set_new(object, "rank", json_integer(peer->rank));
    if (peer->role == TT_PEER_COLLECTOR) {
        json_object_set_new(object, "env_lo", json_integer(peer->env_lo));
        json_object_set_new(object, "env_count", json_integer(peer->env_count));
    }
    return object;
}

static json_t *s_members(const coordinator_t *self)
{
    json_t *list = json_array();
    for (size_t i = 0; i < roster_peer_count(self->roster); i++)
        json_array_append_new(list, s_member(self, roster_peer(self->roster, i)));
    return list;
}

static json_t *s_stop_rules(const coordinator_t *self)
{
    json_t *object = json_object();
    const uint64_t env_steps = self->cfg.stop.env_steps;
    json_object_set_new(object, "env_steps", env_steps ? s_u64(env_steps) : json_null());
    json_object_set_new(object, "return_mean", s_real(self->cfg.stop.return_mean));
    json_object_set_new(object, "wall_s", s_real(self->cfg.stop.wall_s));
    return object;
}

json_t *status_counts_json(const coordinator_t *self)
{
    tt_rec_COUNT_t counts[3];
    coordinator_counts(self, counts);
    json_t *object = json_object();
    for (size_t i = 0; i < TT_COUNT(counts); i++) {
        json_t *count = json_object();
        json_object_set_new(count, "desired", json_integer(counts[i].desired));
        json_object_set_new(count, "ready", json_integer(counts[i].ready));
        json_object_set_new(
            count, "spare", json_integer(roster_spares(self->roster, tt_peer_role_find(counts[i].role))));
        json_object_set_new(
            count, "warming", json_integer(roster_warming(self->roster, tt_peer_role_find(counts[i].role))));
        json_object_set_new(object, counts[i].role, count);
    }
    return object;
}

json_t *status_snapshot_json(const journal_snapshot_t *snapshot)
{
    json_t *object = json_object();
    json_object_set_new(object, "path", tt_json_text(snapshot->path));
    json_object_set_new(object, "era", json_integer(snapshot->era));
    json_object_set_new(object, "updates", s_u64(snapshot->update));
    json_object_set_new(object, "env_steps", s_u64(snapshot->env_steps));
    json_object_set_new(object, "return_mean", s_real(snapshot->return_mean));
    return object;
}

static json_t *s_unsaved(const coordinator_t *self)
{
    const unsaved_t *unsaved = &self->unsaved;
    if (unsaved->row == 0)
        return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "reason", tt_json_text(unsaved->why));
    json_object_set_new(object, "since_s", s_real((double)(unsaved->since_ns - self->start_ns) * 1e-9));
    json_object_set_new(object, "failures", s_u64(unsaved->row));
    return object;
}

static void s_add_training(const coordinator_t *self, json_t *object)
{
    const progress_t *p = &self->progress;
    json_object_set_new(object, "updates", s_u64(p->at.update));
    json_object_set_new(object, "env_steps", s_u64(p->at.env_steps));
    json_object_set_new(object, "episodes", s_u64(p->episodes));
    json_object_set_new(object, "sps", s_real(progress_sps(p)));
    json_object_set_new(object, "return_mean", p->at.any ? s_real(p->return_mean) : json_null());
    json_object_set_new(object, "threshold", s_real(self->cfg.space.threshold));
    json_object_set_new(object, "lag_max", s_u64(p->lag_max));
    json_object_set_new(object, "eval", evaluations_json(self->evaluations));
    json_object_set_new(
        object, "solved_at_s", p->solved_ns ? s_real((double)(p->solved_ns - self->start_ns) * 1e-9) : json_null());
    json_object_set_new(object, "stop", s_stop_rules(self));
}

/*  Of each role, and what holds the run up. */
static void s_add_digest(const coordinator_t *self, json_t *object)
{
    digest_facts_t facts;
    digest_facts(self, &facts);
    json_t *roles = json_object();
    for (size_t i = 0; i < TT_COUNT(digest_roles); i++)
        json_object_set_new(roles, digest_roles[i], s_time(facts.role[i].share, facts.role[i].count));
    json_object_set_new(object, "time_share", roles);
    json_object_set_new(object, "memory_bytes", facts.memory ? s_u64(facts.memory) : json_null());
    json_object_set_new(object, "bottleneck", s_text_or_null(facts.bottleneck));
}

json_t *status_json(const coordinator_t *self)
{
    const char *slash = strrchr(self->root, '/');
    json_t *object = json_object();
    json_object_set_new(object, "run", tt_json_text(slash ? slash + 1 : self->root));
    json_object_set_new(object, "run_dir", tt_json_text(self->root));
    json_object_set_new(object, "phase", json_string(s_phase(self)));
    json_object_set_new(object, "name", tt_json_text(self->cfg.name));
    json_object_set_new(object, "env", tt_json_text(self->cfg.env));
    json_object_set_new(object, "seed", s_u64(self->cfg.seed));
    json_object_set_new(object, "start_ns", json_integer(self->start_ns));
    json_object_set_new(object, "wall_s", s_real((double)(tt_now_ns(self->clock) - self->start_ns) * 1e-9));
    json_object_set_new(object, "era", json_integer(roster_era(self->roster)));
    json_object_set_new(object, "epoch", s_u64(roster_epoch(self->roster)));
    json_object_set_new(object, "generation", s_u64(roster_generation(self->roster)));
    json_object_set_new(object, "rolled_back", json_integer(roster_rolled_back(self->roster)));
    json_object_set_new(object, "replaced", json_integer(self->replaced));
    json_object_set_new(object, "replaced_last", s_text_or_null(self->replaced_last[0] ? self->replaced_last : NULL));
    json_object_set_new(object, "restored_from", self->restore.story ? json_incref(self->restore.story) : json_null());
    s_add_training(self, object);
    s_add_digest(self, object);
    json_object_set_new(object, "replicas", status_counts_json(self));
    json_object_set_new(object, "members", s_members(self));
    json_object_set_new(object, "snapshots", json_integer(self->snapshots));
    json_object_set_new(
        object, "snapshot", self->snapshot.path[0] ? status_snapshot_json(&self->snapshot) : json_null());
    json_object_set_new(object, "snapshot_failures", s_u64(self->unsaved.total));
    json_object_set_new(object, "snapshot_failure", s_unsaved(self));
    json_object_set_new(object, "http", s_text_or_null(self->http ? http_url(self->http) : NULL));
    json_object_set_new(object, "listen", s_text_or_null(control_listen(self->control)));
    return object;
}

/* ---- Prometheus ---------------------------------------------------------------------------------------------------- */

static tt_status_t s_metric(tt_buf_t *out, const char *name, const char *type, const char *help, double value)
{
    return tt_exposition_one(out, "tutti_", name, type, help, value);
}

static uint32_t s_count(const coordinator_t *self, const tt_rec_COUNT_t *count, const char *which)
{
    if (strcmp(which, "warming") == 0)
        return roster_warming(self->roster, tt_peer_role_find(count->role));
    return strcmp(which, "desired") == 0 ? count->desired : count->ready;
}

static tt_status_t s_replicas(const coordinator_t *self, tt_buf_t *out, const char *which)
{
    tt_rec_COUNT_t counts[3];
    coordinator_counts(self, counts);
    char help[64];
    snprintf(help, sizeof help, "Replicas %s of each role.", which);
    TT_TRY(tt_exposition_head(out, "tutti_replicas_", which, "gauge", help));
    for (size_t i = 0; i < TT_COUNT(counts); i++)
        TT_TRY(tt_buf_printf(
            out, "tutti_replicas_%s{role=\"%s\"} %u\n", which, counts[i].role, s_count(self, &counts[i], which)));
    return TT_OK;
}

static tt_status_t s_usage(const coordinator_t *self, tt_buf_t *out)
{
    digest_facts_t facts;
    digest_facts(self, &facts);
    TT_TRY(tt_exposition_head(
        out, "tutti_", "time_share", "gauge", "Part of a role's time that a stage took in the last seconds."));
    for (size_t r = 0; r < TT_COUNT(digest_roles); r++)
        for (size_t i = 0; i < facts.role[r].count; i++)
            TT_TRY(tt_buf_printf(out, "tutti_time_share{role=\"%s\",stage=\"%s\"} %.6g\n", digest_roles[r],
                facts.role[r].share[i].name, facts.role[r].share[i].share));
    return s_metric(out, "memory_bytes", "gauge", "Resident memory of the members.", (double)facts.memory);
}

/*  "eval/mean_reward" -> tutti_eval_mean_reward. */
static tt_status_t s_evaluation(const coordinator_t *self, tt_buf_t *out)
{
    tt_rec_METRIC_t metric[EVALUATIONS_METRICS];
    const size_t count = evaluations_newest(self->evaluations, metric);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", metric[i].name);
        *strchr(name, '/') = '_';
        TT_TRY(s_metric(out, name, "gauge", evaluations_help(i), metric[i].value));
    }
    return TT_OK;
}

tt_status_t status_prometheus(const coordinator_t *self, tt_buf_t *out)
{
    const progress_t *p = &self->progress;
    const roster_t *roster = self->roster;
    TT_TRY(s_metric(out, "updates_total", "counter", "Policy versions made.", (double)p->at.update));
    TT_TRY(s_metric(out, "env_steps_total", "counter", "Transitions trained on.", (double)p->at.env_steps));
    TT_TRY(s_metric(out, "episodes_total", "counter", "Training episodes that ended.", (double)p->episodes));
    TT_TRY(s_metric(out, "dropped_total", "counter", "Transitions received again and dropped, as (batch, env) pairs.",
        (double)p->dropped));
    TT_TRY(s_metric(out, "broken_trajectories_total", "counter",
        "Times an environment did not go on from where the batch before left it.", (double)p->broken_trajectories));
    TT_TRY(s_metric(
        out, "rolled_back_total", "counter", "Times the run went back to a snapshot.", roster_rolled_back(roster)));
    TT_TRY(s_metric(
        out, "snapshot_failures_total", "counter", "Snapshots that could not be made.", (double)self->unsaved.total));
    TT_TRY(s_metric(out, "return_mean", "gauge", "Mean return of the last 100 training episodes.",
        p->at.any ? p->return_mean : NAN));
    TT_TRY(s_metric(out, "sps", "gauge", "Env steps a second over the last seconds.", progress_sps(p)));
    TT_TRY(s_metric(out, "lag_max", "gauge", "Largest policy lag trained on.", (double)p->lag_max));
    TT_TRY(s_metric(out, "era", "gauge", "Counts roll-backs.", roster_era(roster)));
    TT_TRY(s_metric(out, "epoch", "gauge", "Counts rosters.", (double)roster_epoch(roster)));
    TT_TRY(s_metric(out, "generation", "gauge", "Counts learner sets.", (double)roster_generation(roster)));
    TT_TRY(s_metric(out, "wall_s", "gauge", "Seconds since the run's process started.",
        (double)(tt_now_ns(self->clock) - self->start_ns) * 1e-9));
    TT_TRY(s_evaluation(self, out));
    TT_TRY(s_usage(self, out));
    TT_TRY(s_replicas(self, out, "desired"));
    TT_TRY(s_replicas(self, out, "ready"));
    TT_TRY(s_replicas(self, out, "warming"));
    return tt_exposition_process(out, self->started_s);
}
