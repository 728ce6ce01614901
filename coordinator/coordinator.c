#define TT_LOG_COMPONENT "coordinator"
#include "coordinator/coordinator.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/process.h"
#include "common/base/signals.h"
#include "common/job/train_job.h"
#include "coordinator/inbox.h"
#include "coordinator/requests.h"
#include "coordinator/state.h"
#include "coordinator/status.h"
#include "coordinator/weights.h"

enum { RUN_JSON_MAX = 4096 };
static const int64_t s_second_ns = 1000000000, s_coalesce_ns = 3000000, s_check_every_ns = 250000000,
                     s_write_every_ns = 500000000, s_http_after_ns = 300000000, s_expect_ns = 30000000000;

static int64_t s_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- replicas asked for -------------------------------------------------------------------------------------------- */

uint32_t coordinator_most(const coordinator_t *self, tt_peer_role_t role)
{
    if (role == TT_PEER_LEARNER)
        return self->cfg.learner.shards;
    return self->cfg.num_envs < TT_COLLECTORS_MAX ? self->cfg.num_envs : TT_COLLECTORS_MAX;
}

void coordinator_counts(const coordinator_t *self, tt_rec_COUNT_t records[3])
{
    static const tt_peer_role_t roles[] = {TT_PEER_COLLECTOR, TT_PEER_LEARNER, TT_PEER_AGGREGATOR};
    for (size_t i = 0; i < TT_COUNT(roles); i++)
        records[i] = (tt_rec_COUNT_t){.role = (char *)(uintptr_t)tt_peer_role_name(roles[i]),
            .desired = roster_desired(self->roster, roles[i]),
            .ready = roster_ready(self->roster, roles[i])};
}

void coordinator_tell_counts(coordinator_t *self)
{
    tt_rec_COUNT_t counts[3];
    coordinator_counts(self, counts);
    const tt_msg_SCALE_t scale = TT_MSG(SCALE, .counts = counts, .counts_count = TT_COUNT(counts));
    observers_tell(self->observers, &scale);
}

/*  Learners that are asked for or, on their way out, still sum gradients. */
static uint32_t s_learners(const coordinator_t *self)
{
    uint32_t here = 0;
    for (size_t i = 0; i < roster_peer_count(self->roster); i++) {
        const peer_t *peer = roster_peer(self->roster, i);
        here += peer->role == TT_PEER_LEARNER && peer->state != PEER_DRAINING;
    }
    const uint32_t desired = roster_desired(self->roster, TT_PEER_LEARNER);
    return here > desired ? here : desired;
}

tt_status_t coordinator_fit_aggregators(coordinator_t *self)
{
    roster_desire(self->roster, TT_PEER_AGGREGATOR, tt_train_aggregators(&self->cfg, s_learners(self)));
    return TT_OK;
}

/* ---- HTTP ---------------------------------------------------------------------------------------------------------- */

static tt_status_t s_answer_http(void *ctx, const char *verb, const char *body, tt_buf_t *out)
{
    coordinator_t *self = ctx;
    if (strcmp(verb, "metrics") == 0)
        return status_prometheus(self, out);
    return requests_answer(self, NULL, verb, body, out);
}

static tt_status_t s_open_weights(void *ctx, const char *query, http_file_t *out)
{
    return weights_open(ctx, query, out);
}

static tt_status_t s_on_http(void *ctx, int fd)
{
    (void)fd;
    coordinator_t *self = ctx;
    http_serve(self->http);
    return TT_OK;
}

/*  Loading the server takes milliseconds of a core that the first updates want: it waits until they are through. Not so
 *  when the port is given: it may be in use, and the run must not begin then. */
static int64_t s_http_due(const coordinator_t *self)
{
    const char *address = self->cfg.coordinator.http;
    const size_t length = strlen(address);
    return length >= 2 && strcmp(address + length - 2, ":0") == 0 ? INT64_MAX : 0;
}

static tt_status_t s_start_http(coordinator_t *self, int64_t now)
{
    if (self->http || self->http_missing || !self->cfg.coordinator.http[0] || now < self->http_due_ns)
        return TT_OK;
    const http_opts_t opts = {.address = self->cfg.coordinator.http,
        .run_dir = self->root,
        .token = self->token,
        .answer = s_answer_http,
        .weights = s_open_weights,
        .ctx = self,
        .clock = self->clock};
    const tt_status_t status = http_start(&self->http, &opts);
    if (status == TT_UNSUPPORTED && self->http_due_ns) { /* nobody gave a port, and the run is under way */
        log_warn("no HTTP: %s", tt_err_text());
        self->http_missing = true;
        return TT_OK;
    }
    TT_TRY(status);
    tt_loop_fd(self->loop, http_fd(self->http), s_on_http, self);
    return TT_OK;
}

/*  Clients that are late are nothing to read: they are looked for. Returns when to look again. */
static int64_t s_turn_http(coordinator_t *self, int64_t now)
{
    if (!self->http)
        return INT64_MAX;
    if (http_due_ms(self->http) == 0)
        http_serve(self->http);
    const int64_t due_ms = http_due_ms(self->http);
    return due_ms < 0 ? INT64_MAX : now + due_ms * 1000000;
}

/* ---- beginning ----------------------------------------------------------------------------------------------------- */

static tt_status_t s_load_config(coordinator_t *self)
{
    char path[sizeof self->root + 16];
    if (!realpath(self->run_dir, self->root))
        return tt_err_errno(TT_NOT_FOUND, "%s", self->run_dir);
    snprintf(path, sizeof path, "%s/config.yaml", self->root);
    tt_buf_t text;
    tt_buf_init(&text, TT_CONFIG_TEXT_MAX);
    tt_status_t status = tt_buf_read_file(&text, path);
    if (status == TT_OK)
        status = tt_train_parse(&self->cfg, tt_buf_text(&text), text.size);
    if (status == TT_OK)
        self->config_text = tt_strdup(tt_buf_text(&text));
    tt_buf_free(&text);
    return status;
}

static tt_status_t s_make_roster(coordinator_t *self)
{
    const roster_cfg_t cfg = {.num_envs = self->cfg.num_envs,
        .shards = self->cfg.learner.shards,
        .warms = self->cfg.replays,
        .collectors_warm = tt_train_collectors_warm(&self->cfg),
        .desired = {[TT_PEER_COLLECTOR] = self->cfg.collector.replicas, [TT_PEER_LEARNER] = self->cfg.learner.replicas},
        .lease_ns = (int64_t)self->cfg.net.lease_ms * 1000000,
        .first_wait_ns = s_second_ns,
        .coalesce_ns = s_coalesce_ns,
        .expect_until_ns = self->again ? tt_now_ns(self->clock) + s_expect_ns : 0};
    return roster_new(&self->roster, &cfg, self->clock);
}

static bool s_count_snapshot(void *ctx, const journal_snapshot_t *snapshot)
{
    (void)snapshot;
    ++*(uint32_t *)ctx;
    return true;
}

static bool s_take_first(void *ctx, const journal_snapshot_t *snapshot)
{
    *(journal_snapshot_t *)ctx = *snapshot;
    return false;
}

/*  For whoever asks; which one the run goes back to is looked for when it must. */
static tt_status_t s_find_newest(coordinator_t *self)
{
    return journal_snapshots(self->journal, s_take_first, &self->snapshot);
}

static uint32_t s_configured(const coordinator_t *self, tt_peer_role_t role)
{
    return role == TT_PEER_LEARNER ? self->cfg.learner.replicas : self->cfg.collector.replicas;
}

/*  The count asked for last counts: by scaling, or by a config that was changed for this life of the run. */
static tt_status_t s_desire(coordinator_t *self, const journal_past_t *past, bool went_on)
{
    for (tt_peer_role_t role = TT_PEER_COLLECTOR; role <= TT_PEER_LEARNER; role++) {
        const int64_t then = past->configured[role], scaled = past->desired[role];
        const uint32_t now = s_configured(self, role);
        if (!went_on && then > 0 && then != now)
            TT_TRY(journal_desired(self->journal, role, now));
        else if (scaled > 0)
            roster_desire(self->roster, role, (uint32_t)s_least(scaled, coordinator_most(self, role)));
        if (!went_on)
            TT_TRY(journal_configured(self->journal, role, now));
    }
    return coordinator_fit_aggregators(self);
}

/*  Does run.json say that `tutti resume` has begun this life? */
static bool s_is_resumed(const coordinator_t *self)
{
    char path[sizeof self->root + 16];
    tt_buf_t text;
    snprintf(path, sizeof path, "%s/run.json", self->root);
    tt_buf_init(&text, RUN_JSON_MAX);
    json_t *who = tt_buf_read_file(&text, path) == TT_OK ? json_loads(tt_buf_text(&text), 0, NULL) : NULL;
    const bool resumed = json_is_true(json_object_get(who, "resumed"));
    json_decref(who);
    tt_buf_free(&text);
    return resumed;
}

/*  A life of the run begins; with a journal, nobody of an earlier one is there any more. Without one there may be (it was
 *  lost under a run), and they will say so: then a snapshot is only looked for if nobody holds weights.
 *  Eras only grow: a journal that was lost or is behind forgets them, metrics.jsonl does not. */
static tt_status_t s_begin_session(coordinator_t *self, const journal_past_t *past)
{
    char path[sizeof self->root + 16];
    uint32_t era = 0;
    roster_past_t roster = past->roster;
    snprintf(path, sizeof path, "%s/metrics.jsonl", self->root);
    TT_TRY(metrics_last_era(path, &era));
    roster_begin_after(self->roster, era);
    self->restore.lived = past->found || era > 0 || s_is_resumed(self);
    if (past->found) {
        TT_TRY(restore_choose(self));
        roster.ended = past->end && restore_is_final(self);
        roster_continue(self->roster, &roster);
    }
    self->progress.first_steps = self->snapshot.update * self->cfg.num_envs * self->cfg.num_steps;
    return journal_session(self->journal, self->start_ns, self->boot, self->progress.first_steps);
}

/*  Each boot of each host has a clock of its own; "" when this one's name cannot be read. */
static void s_read_boot(char *out, size_t size)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file || !fgets(out, (int)size, file))
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (file)
        fclose(file);
}

static bool s_is_our_clock(const coordinator_t *self, const journal_past_t *past)
{
    return !past->boot || !past->boot[0] || !self->boot[0] || strcmp(past->boot, self->boot) == 0;
}

/*  A session that goes on after a reboot, or on another host, has no time that our clock could be compared with. */
static tt_status_t s_recall_times(coordinator_t *self, const journal_past_t *past)
{
    self->progress.first_steps = past->first_steps;
    self->new_clock = !s_is_our_clock(self, past);
    if (self->new_clock) {
        log_info("the run was on another host, or before this one's reboot: its times begin anew");
        return journal_clock(self->journal, self->start_ns, self->boot);
    }
    self->progress.first_step_ns = past->first_step_ns;
    self->progress.solved_ns = past->solved_ns;
    return TT_OK;
}

/*  Go on where an earlier coordinator of this session stopped, or, in a new session, where the run stopped. */
static tt_status_t s_recall(coordinator_t *self, const journal_past_t *past)
{
    const bool went_on = past->found && (self->start_ns == 0 || self->start_ns == past->start_ns);
    if (self->start_ns == 0)
        self->start_ns = past->found && s_is_our_clock(self, past) ? past->start_ns : tt_process_start_ns();
    TT_TRY(s_desire(self, past, went_on));
    TT_TRY(journal_snapshots(self->journal, s_count_snapshot, &self->snapshots));
    self->progress.solved_steps = past->solved_steps;
    if (!went_on)
        return s_begin_session(self, past);
    roster_past_t roster = past->roster;
    roster.went_on = true;
    roster_continue(self->roster, &roster);
    restore_recall(self, past->restored, past->restore);
    TT_TRY(s_find_newest(self));
    TT_TRY(s_recall_times(self, past));
    log_info("going on after epoch %" PRIu64 ", waiting for %zu members of it", past->roster.epoch,
        past->roster.member_count);
    if (past->end)
        ends_repeat(self, past->end, past->end_code);
    return TT_OK;
}

static tt_status_t s_open_journal(coordinator_t *self)
{
    char path[sizeof self->root + 16];
    snprintf(path, sizeof path, "%s/journal.db", self->root);
    TT_TRY(journal_open(&self->journal, path));
    journal_past_t past;
    TT_TRY(journal_load(self->journal, &past));
    const tt_status_t status = s_recall(self, &past);
    journal_past_free(&past);
    return status;
}

static tt_status_t s_on_signal(void *ctx, int fd)
{
    coordinator_t *self = ctx;
    int sender = 0;
    const int number = tt_signals_next_from(fd, &sender);
    char reason[80];
    if (number == SIGTERM && self->alone)
        ends_leave(self, "SIGTERM", 128 + SIGTERM);
    else if (number != 0) {
        snprintf(reason, sizeof reason, "SIG%s%s", sigabbrev_np(number), self->alone ? "" : " to the coordinator");
        if (!self->alone && sender > 0) /* 0: nobody in this namespace of processes */
            snprintf(reason + strlen(reason), sizeof reason - strlen(reason), ", from process %d", sender);
        ends_stop(self, reason, 128 + (uint32_t)number, self->ends.phase == ENDS_STOPPING);
    }
    return TT_OK;
}

static tt_status_t s_open(coordinator_t *self)
{
    TT_TRY(tt_signals_open(&self->signals));
    TT_TRY(s_load_config(self));
    TT_TRY(tt_loop_new(&self->loop, self->clock));
    const control_opts_t control = {.run_dir = self->root,
        .listen = self->cfg.coordinator.listen,
        .key = self->key,
        .on_packet = inbox_packet,
        .ctx = self};
    TT_TRY(control_open(&self->control, self->loop, &control));
    snapshot_store_sweep(self);
    self->observers = observers_new(self->clock, (int64_t)self->cfg.net.lease_ms * 1000000);
    self->replicas = replicas_new(self->clock, (int64_t)self->cfg.net.lease_ms * 1000000);
    TT_TRY(s_make_roster(self));
    TT_TRY(evaluations_open(&self->evaluations, self->root));
    TT_TRY(s_open_journal(self)); /* after binding: peers may knock meanwhile */
    tt_loop_fd(self->loop, self->signals, s_on_signal, self);
    self->http_due_ns = s_http_due(self);
    return s_start_http(self, 0);
}

/*  In reverse. */
static void s_close(coordinator_t *self)
{
    http_stop(&self->http);
    snapshot_store_free(self);
    restore_free(self);
    metrics_close(&self->metrics);
    evaluations_close(&self->evaluations);
    tensorboard_close(&self->tensorboard);
    journal_close(&self->journal);
    observers_destroy(&self->observers);
    replicas_destroy(&self->replicas);
    control_close(&self->control);
    roster_destroy(&self->roster);
    if (self->signals >= 0)
        close(self->signals);
    tt_loop_destroy(&self->loop);
    free(self->config_text);
}

/* ---- what is written for people ------------------------------------------------------------------------------------ */

static tt_status_t s_open_writers(coordinator_t *self)
{
    char path[sizeof self->root + 16];
    if (self->metrics)
        return TT_OK;
    snprintf(path, sizeof path, "%s/metrics.jsonl", self->root);
    TT_TRY(metrics_open(&self->metrics, path));
    return tensorboard_open(&self->tensorboard, self->root);
}

tt_status_t coordinator_write_stats(coordinator_t *self, const tt_msg_STATS_t *stats)
{
    TT_TRY(s_open_writers(self));
    const double wall_s = (double)(stats->time_ns - self->start_ns) * 1e-9, sps = progress_sps(&self->progress);
    TT_TRY(metrics_add(self->metrics, stats, wall_s, sps));
    return tensorboard_add(self->tensorboard, stats, (double)tt_wall_ns() * 1e-9, sps);
}

tt_status_t coordinator_write_evaluation(coordinator_t *self, const tt_msg_EVALUATED_t *m)
{
    tt_rec_METRIC_t metric[EVALUATIONS_METRICS];
    bool fresh;
    TT_TRY(s_open_writers(self));
    TT_TRY(evaluations_add(self->evaluations, m, (double)(m->time_ns - self->start_ns) * 1e-9, &fresh));
    const size_t count = evaluations_newest(self->evaluations, metric);
    return fresh ? tensorboard_add_metrics(self->tensorboard, m->env_steps, (double)tt_wall_ns() * 1e-9, metric, count)
                 : TT_OK;
}

static tt_status_t s_flush_writers(coordinator_t *self, int64_t now)
{
    if (!self->metrics || now - self->written_ns < s_write_every_ns)
        return TT_OK;
    self->written_ns = now;
    TT_TRY(metrics_flush(self->metrics));
    return tensorboard_flush(self->tensorboard);
}

/* ---- rosters ------------------------------------------------------------------------------------------------------- */

static void s_log_roster(const coordinator_t *self)
{
    log_info("roster %" PRIu64 ": era %u, generation %" PRIu64 ", %u collectors, %u learners, %u aggregators%s",
        roster_epoch(self->roster), roster_era(self->roster), roster_generation(self->roster),
        roster_ready(self->roster, TT_PEER_COLLECTOR), roster_ready(self->roster, TT_PEER_LEARNER),
        roster_ready(self->roster, TT_PEER_AGGREGATOR), roster_fresh(self->roster) ? ", fresh" : "");
}

static tt_status_t s_roll_back(coordinator_t *self)
{
    return progress_roll_back(&self->progress, self->snapshot.env_steps) ? journal_unsolved(self->journal) : TT_OK;
}

/*  Journaled first, then sent: nobody ever knows more than the journal. */
static tt_status_t s_new_roster(coordinator_t *self)
{
    const uint32_t era = roster_era(self->roster);
    if (!roster_publish(self->roster, restore_path, self)) {
        control_announce(self->roster); /* victims that were spares */
        return TT_OK;
    }
    TT_TRY(self->restore.status);
    tt_msg_ROSTER_t message;
    roster_message(self->roster, &message);
    TT_TRY(journal_roster(self->journal, &message, roster_rolled_back(self->roster)));
    control_announce(self->roster);
    if (roster_era(self->roster) != era)
        TT_TRY(s_roll_back(self));
    TT_TRY(restore_tell(self));
    s_log_roster(self);
    TT_TRY(s_open_writers(self)); /* now that everybody has something to do */
    if (self->http_due_ns == INT64_MAX)
        self->http_due_ns = tt_now_ns(self->clock) + s_http_after_ns;
    TT_TRY(coordinator_fit_aggregators(self));
    coordinator_tell_counts(self);
    ends_roster(self);
    return TT_OK;
}

/* ---- processes that do not get on ---------------------------------------------------------------------------------- */

static void s_fail_stalled(coordinator_t *self, const peer_t *peer)
{
    char text[8192];
    snprintf(text, sizeof text, "%s/%u (process %u on %s) has not got on for %u s; it is %s. See its log in %s/logs",
        tt_peer_role_name(peer->role), peer->index, peer->pid, peer->host, self->cfg.net.stall_s,
        peer->doing[0] ? peer->doing : "silent about what it does", self->root);
    for (size_t i = 0; i < roster_peer_count(self->roster); i++) {
        const peer_t *it = roster_peer(self->roster, i);
        log_error("%s/%u: %s", tt_peer_role_name(it->role), it->index, it->doing);
    }
    ends_fail(self, (uint32_t)tt_status_exit_code(TT_TIMEOUT), text);
}

static void s_fail_lonely(coordinator_t *self)
{
    char text[512];
    tt_rec_COUNT_t counts[3];
    coordinator_counts(self, counts);
    snprintf(text, sizeof text, "nobody to run with for %u s: ", self->cfg.net.stall_s);
    for (size_t i = 0; i < TT_COUNT(counts); i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s wanted %u, ready %u", i ? "; " : "", counts[i].role,
            counts[i].desired, counts[i].ready);
    }
    ends_fail(self, (uint32_t)tt_status_exit_code(TT_TIMEOUT), text);
}

static bool s_lonely(const coordinator_t *self)
{
    return roster_ready(self->roster, TT_PEER_COLLECTOR) == 0 && roster_ready(self->roster, TT_PEER_LEARNER) == 0;
}

/*  Where an operator keeps the replicas, a run without those it needs is one that waits. */
static bool s_waits_for_members(const coordinator_t *self)
{
    const uint32_t learners = roster_ready(self->roster, TT_PEER_LEARNER);
    return self->alone && (learners == 0 || roster_ready(self->roster, TT_PEER_COLLECTOR) == 0 ||
                              (learners > 1 && roster_ready(self->roster, TT_PEER_AGGREGATOR) == 0));
}

/*  As roster_tick: we were away ourselves, and how they get on lies unread. They have half the time again. */
static bool s_looked_late(coordinator_t *self, int64_t now, int64_t stall_ns)
{
    if (now - self->checked_ns >= stall_ns / 2)
        self->lenient_until_ns = now + stall_ns / 2;
    return now < self->lenient_until_ns;
}

static void s_check_stall(coordinator_t *self, int64_t now)
{
    if (now - self->checked_ns < s_check_every_ns)
        return;
    const int64_t stall_ns = (int64_t)self->cfg.net.stall_s * s_second_ns;
    const bool late = s_looked_late(self, now, stall_ns);
    self->checked_ns = now;
    const peer_t *stuck = s_waits_for_members(self) ? NULL : roster_stalled(self->roster, stall_ns);
    if (!s_lonely(self))
        self->lonely_ns = now;
    if (late)
        return;
    if (stuck)
        s_fail_stalled(self, stuck);
    else if (now - self->lonely_ns > stall_ns && !self->alone)
        s_fail_lonely(self);
}

/*  Its controller is asked to end it and to start another; everybody hears of it, once. */
static void s_tell_silent(void *ctx, const replica_t *replica, double silent_s, bool again)
{
    coordinator_t *self = ctx;
    char why[128];
    snprintf(why, sizeof why, "not a word for %.1f s", silent_s);
    const tt_msg_REPLICA_t silent =
        TT_MSG(REPLICA, .role = replica->role, .index = replica->index, .pid = replica->pid, .reason = why);
    observers_order(self->observers, &silent);
    if (again)
        return;
    self->replaced++;
    snprintf(self->replaced_last, sizeof self->replaced_last,
        "%s/%u (process %u): %s, last seen %s; it is killed and started again", tt_peer_role_name(replica->role),
        replica->index, replica->pid, why, replica->doing[0] ? replica->doing : "being started");
    log_warn("%s", self->replaced_last);
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = (char *)(uintptr_t) "warning", .text = self->replaced_last,
        .update = self->progress.at.update, .env_steps = self->progress.at.env_steps,
        .time_ns = tt_now_ns(self->clock));
    observers_tell(self->observers, &event);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

/*  Everything that is due. *due: when to look again. */
static tt_status_t s_turn(coordinator_t *self, int64_t *due)
{
    const int64_t now = tt_now_ns(self->clock);
    if (now >= roster_lease_due_ns(self->roster))
        roster_tick(self->roster);
    if (self->ends.phase == ENDS_RUNNING && observers_controllers(self->observers) > 0)
        replicas_turn(self->replicas, self->roster, s_tell_silent, self);
    if (now >= roster_due_ns(self->roster))
        TT_TRY(s_new_roster(self));
    s_check_stall(self, now);
    if (self->alone)
        progress_log_turn(self, now);
    TT_TRY(s_flush_writers(self, now));
    TT_TRY(s_start_http(self, now));
    *due = s_least(now + s_check_every_ns, roster_due_ns(self->roster));
    *due = s_least(*due, roster_lease_due_ns(self->roster));
    *due = s_least(*due, observers_flush(self->observers, false));
    *due = s_least(*due, s_turn_http(self, now));
    *due = s_least(*due, ends_tick(self));
    return TT_OK;
}

static int64_t s_wait_ms(const coordinator_t *self, int64_t due)
{
    const int64_t left = due - tt_now_ns(self->clock);
    return left <= 0 ? 0 : (left + 999999) / 1000000;
}

static tt_status_t s_loop(coordinator_t *self)
{
    while (self->ends.phase != ENDS_ENDED) {
        int64_t due = 0;
        TT_TRY(s_turn(self, &due));
        if (self->ends.phase == ENDS_ENDED)
            break;
        const tt_status_t status = tt_loop_poll(self->loop, s_wait_ms(self, due));
        if (status == TT_PROTOCOL)
            log_warn("%s", tt_err_text());
        else if (status != TT_OK && status != TT_AGAIN)
            return status;
    }
    return TT_OK;
}

tt_status_t coordinator_run(const coordinator_opts_t *opts, int *exit_code)
{
    coordinator_t *self = tt_new0(sizeof *self);
    self->run_dir = opts->run_dir;
    self->start_ns = opts->start_ns;
    s_read_boot(self->boot, sizeof self->boot);
    self->started_s = tt_process_started_s();
    self->key = opts->key;
    self->token = opts->token;
    self->alone = opts->alone;
    self->again = opts->again;
    self->clock = tt_clock_or_real(opts->clock);
    self->signals = -1;
    snapshot_store_init(&self->snapshot_store);
    self->lonely_ns = self->checked_ns = tt_now_ns(self->clock);
    if (gethostname(self->host, sizeof self->host - 1) != 0)
        self->host[0] = '\0';
    tt_status_t status = s_open(self);
    if (status == TT_OK && self->alone && tt_train_endless(&self->cfg))
        log_warn(
            "no stop rule is set (stop.env_steps, stop.return_mean, stop.wall_s): the run goes on until it is stopped");
    if (status == TT_OK && (status = s_loop(self)) != TT_OK) {
        char text[2048];
        snprintf(text, sizeof text, "%s", tt_err_text());
        ends_fail(self, (uint32_t)tt_status_exit_code(status), text);
        status = TT_OK; /* said, in the log and to everybody */
    }
    *exit_code = self->ends.exit_code;
    s_close(self);
    free(self);
    return status;
}
