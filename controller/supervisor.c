#include "controller/supervisor.h"
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "common/base/text.h"
#include "common/net/link.h"
#include "controller/controller.h"
#include "controller/guard.h"
#include "controller/process.h"
#define TT_LOG_COMPONENT "supervisor"
#include "common/base/log.h"

static const char s_result_file[] = "result.json"; /* written by the coordinator when the run has ended */

enum { TICK_MS = 100, FINISH_MS = 60000, LINGER_MS = 1000, END_MS = 5000, DRAIN_MS = 20000, LOOK_MS = 1000 };
enum { START_MS = 20000, LEASES = 3 }; /* how long the coordinator may be silent: at least so long before its WELCOME */

typedef struct {
    const tt_supervise_opts_t *opts;
    tt_outcome_t *out;
    const tt_clock_t *clock;
    tt_substrate_t *substrate;
    tt_controller_t *controller;
    tt_loop_t *loop;
    tt_link_t *link;
    int signal_fd;
    bool killed;
    bool synced;         /* the run's mark is on the disk */
    tt_asked_t asked;    /* to stop */
    bool ending;         /* the coordinator knows: it need not hear of every end, and its own will come any moment */
    int64_t looked_ms;   /* the last look at the run directory                        */
    char gone[1024];     /* what became of it, for a person; "": it is there          */
    char failed_log[64]; /* of the replica that failed last before the end: "logs/collector-1.log" */
    bool speechless;     /* it was killed: its last line is not about its end             */
    double silence_s;    /* how long before the end that line is from                     */
    int64_t kill_at_ms;  /* 0 = no stop asked for */
    int64_t lease_ms;    /* as a coordinator said; 0 = none has yet */
    tt_replica_id_t coordinator; /* the one that was started last */
    bool welcome;                /* and whether it has said it */
    int ended_with;              /* the one before, if it failed by itself; 0 once another has been heard */
    int64_t ended_ns;            /* CLOCK_MONOTONIC when its end was seen: what is older is its word      */
    int64_t turned_ms;           /* the last turn */
    int64_t silent_ms;           /* how much of the coordinator's silence we have lived through */
} supervisor_t;

static void s_note(supervisor_t *self, const char *text)
{
    log_debug("%s", text);
    if (self->opts->watcher.note)
        self->opts->watcher.note(self->opts->watcher.ctx, text);
}

/*  Not before it trains: a start does not wait for the disk. */
static void s_sync(supervisor_t *self)
{
    if (!self->synced && tt_rundir_sync(self->opts->run) != TT_OK)
        log_warn("%s", tt_err_text());
    self->synced = true;
}

/*  That the run ends says a coordinator. If the last one has failed and none was heard since, the word was its last, and came when its end
 *  had been seen and another one was started in its place: nobody would ever join that one. */
static void s_wind_down(supervisor_t *self)
{
    self->ending = true;
    tt_controller_wind_down(self->controller);
    if (!self->ended_with)
        return;
    if (!self->out->exit_code)
        self->out->exit_code = self->ended_with;
    self->kill_at_ms = 1;
}

/* ---- what replicas do, told to the coordinator --------------------------------------------------------------------- */

static void s_tell(supervisor_t *self, const char *role, uint32_t index, int pid, const tt_replica_event_t *event)
{
    const tt_peer_role_t peer = tt_peer_role_find(role);
    if (peer == TT_PEER_NONE || peer == TT_PEER_COORDINATOR || !self->link || self->ending)
        return;
    const tt_msg_REPLICA_t msg =
        TT_MSG(REPLICA, .role = peer, .index = index, .pid = (uint32_t)pid, .alive = event == NULL,
            .code = event ? (uint32_t)event->exit_code & 255 : 0, .reason = event ? (char *)event->reason : NULL);
    if (tt_link_send(self->link, &msg) != TT_OK)
        log_warn("%s", tt_err_text());
}

static void s_started(void *ctx, const char *role, uint32_t index, tt_replica_id_t id)
{
    supervisor_t *self = ctx;
    if (strcmp(role, "coordinator") == 0 && id != self->coordinator) { /* told again, it is the same one */
        self->coordinator = id;
        self->silent_ms = 0;
        self->welcome = false;
    }
    s_tell(self, role, index, tt_process_pid(self->substrate, id), NULL);
}

/*  What the coordinator wrote when the run ended, NULL: it has not. free() it. */
static char *s_result(const supervisor_t *self)
{
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    char *out = tt_rundir_read(self->opts->run, s_result_file, &text) == TT_OK ? tt_strdup(tt_buf_text(&text)) : NULL;
    tt_buf_free(&text);
    return out;
}

/*  Has it written that the run failed, and why? */
static bool s_read_why(const supervisor_t *self)
{
    char *text = s_result(self);
    json_t *result = text ? json_loads(text, 0, NULL) : NULL;
    const char *status = json_string_value(json_object_get(result, "status"));
    const char *reason = json_string_value(json_object_get(result, "reason"));
    const bool failed = status && strcmp(status, "failed") == 0;
    if (failed)
        snprintf(self->out->reason, sizeof self->out->reason, "%.1000s", reason ? reason : "");
    json_decref(result);
    free(text);
    return failed;
}

/*  A coordinator that failed has not crashed if it has written why the run has: its word to us may have come too late. */
static void s_ask_why(supervisor_t *self, const tt_replica_event_t *event)
{
    if (event->exit_code && !event->signal && !self->ending && s_read_why(self)) {
        self->out->exit_code = event->exit_code;
        s_wind_down(self);
    }
}

/*  Since the last line of the log of the replica that failed last. */
static double s_log_silence_s(const supervisor_t *self)
{
    char path[PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", self->opts->run->path, self->failed_log);
    if (stat(path, &info) != 0)
        return 0;
    const double silence = (double)(tt_wall_ns() - (info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec)) * 1e-9;
    return silence > 0 ? silence : 0;
}

/*  Of the replica that failed last; "": it has none. A command's own word is without its name: who it is of is said before it. */
static void s_last_line(const supervisor_t *self, char *out, size_t size)
{
    char path[PATH_MAX], text[4096];
    struct stat info;
    int fd = -1;
    snprintf(path, sizeof path, "%s/%s", self->opts->run->path, self->failed_log);
    out[0] = '\0';
    if (!self->failed_log[0] || tt_file_open(&fd, path) != TT_OK)
        return;
    const off_t from =
        fstat(fd, &info) == 0 && info.st_size >= (off_t)sizeof text ? info.st_size - (off_t)sizeof text + 1 : 0;
    ssize_t got = pread(fd, text, sizeof text - 1, from);
    close(fd);
    while (got > 0 && text[got - 1] == '\n')
        got--;
    text[got > 0 ? got : 0] = '\0';
    const char *newline = strrchr(text, '\n'), *line = newline ? newline + 1 : text;
    const char *colon = strncmp(line, "tutti ", 6) == 0 ? strstr(line, ": ") : NULL;
    tt_text_copy(out, size, colon ? colon + 2 : line);
}

static void s_ended(void *ctx, const char *role, uint32_t index, const tt_replica_event_t *event)
{
    supervisor_t *self = ctx;
    if (strcmp(role, "coordinator") == 0) {
        s_ask_why(self, event);
        self->ended_with = self->ending || event->signal ? 0 : event->exit_code;
        self->ended_ns = tt_now_ns(tt_clock_real());
    }
    s_tell(self, role, index, event->pid, event);
    if (event->exit_code && !self->ending) { /* what ends later ends because of it */
        snprintf(self->failed_log, sizeof self->failed_log, "logs/%.31s-%u.log", role, index);
        self->speechless = event->signal == SIGKILL;
        self->silence_s = s_log_silence_s(self);
    }
    if (event->exit_code && !self->ending && !self->killed) {
        char text[1100], last[400] = "";
        if (!event->signal)
            s_last_line(self, last, sizeof last);
        snprintf(
            text, sizeof text, "%s/%u: %s%s%s%s", role, index, event->reason, event->why, last[0] ? ": " : "", last);
        s_note(self, text);
    }
}

/* ---- what the coordinator says -------------------------------------------------------------------------------------- */

static void s_scale(supervisor_t *self, const tt_msg_SCALE_t *msg)
{
    for (size_t i = 0; i < msg->counts_count; i++)
        if (strcmp(msg->counts[i].role, "coordinator") != 0 &&
            tt_controller_scale(self->controller, msg->counts[i].role, msg->counts[i].desired, DRAIN_MS) != TT_OK)
            log_warn("%s", tt_err_text());
    if (self->opts->watcher.scale)
        self->opts->watcher.scale(self->opts->watcher.ctx, msg);
}

static void s_event(supervisor_t *self, const tt_msg_EVENT_t *msg)
{
    if (strcmp(msg->kind, "finished") == 0) {
        free(self->out->finished);
        self->out->finished = tt_strdup(msg->text);
    } else if (strcmp(msg->kind, "failed") == 0) {
        snprintf(self->out->reason, sizeof self->out->reason, "%.1000s", msg->text);
        self->out->exit_code = msg->code ? (int)msg->code : 70;
    }
    if (strcmp(msg->kind, "finished") == 0 || strcmp(msg->kind, "failed") == 0)
        s_wind_down(self);
    if (self->opts->watcher.event)
        self->opts->watcher.event(self->opts->watcher.ctx, msg);
}

/*  The first coordinator, or the next: it knows of no replica. Not the one before, whose end was seen before its word was heard. */
static void s_welcome(supervisor_t *self, const tt_msg_WELCOME_t *msg)
{
    if (msg->now_ns && msg->now_ns < self->ended_ns)
        return;
    self->lease_ms = msg->lease_ms;
    self->welcome = true;
    self->ended_with = 0;
    tt_controller_retell(self->controller);
}

/*  A replica that has said nothing for a lease is stopped, or hangs: it would not hear SIGTERM. One that ended with 0 was not told
 *  to. Only the process that is meant; another may have its number by now. */
static void s_replace(supervisor_t *self, const tt_msg_REPLICA_t *msg)
{
    const char *role = tt_peer_role_name((tt_peer_role_t)msg->role);
    const tt_replica_id_t id = tt_controller_replica(self->controller, role, msg->index);
    if (msg->alive)
        return;
    tt_controller_missed(self->controller, role, msg->index, (int)msg->pid);
    if (!id || (uint32_t)tt_process_pid(self->substrate, id) != msg->pid)
        return;
    log_warn("%s/%u (process %u): %s; killing it", role, msg->index, msg->pid, msg->reason ? msg->reason : "silent");
    tt_controller_kill(self->controller, role, msg->index);
}

static void s_take(supervisor_t *self, const tt_msg_t *msg)
{
    const tt_watcher_t *watcher = &self->opts->watcher;
    switch (msg->type) {
    case TT_MSG_WELCOME:
        s_welcome(self, &msg->WELCOME);
        break;
    case TT_MSG_REPLICA:
        s_replace(self, &msg->REPLICA);
        break;
    case TT_MSG_SCALE:
        s_scale(self, &msg->SCALE);
        break;
    case TT_MSG_EVENT:
        s_event(self, &msg->EVENT);
        break;
    case TT_MSG_STATS:
        tt_controller_progress(self->controller); /* a version was made */
        if (watcher->stats)
            watcher->stats(watcher->ctx, &msg->STATS);
        s_sync(self);
        break;
    case TT_MSG_ROSTER:
        if (watcher->roster)
            watcher->roster(watcher->ctx, &msg->ROSTER);
        break;
    case TT_MSG_REPLY:
        if (msg->REPLY.status != 0)
            s_note(self, msg->REPLY.body);
        break;
    case TT_MSG_STOP: /* the coordinator's exit says the rest */
        if (self->ended_with && !self->out->reason[0])
            snprintf(self->out->reason, sizeof self->out->reason, "%.1000s", msg->STOP.reason ? msg->STOP.reason : "");
        s_wind_down(self);
        break;
    default:
        break;
    }
}

static tt_status_t s_on_link(void *ctx, int fd)
{
    supervisor_t *self = ctx;
    (void)fd;
    for (;;) {
        tt_packet_t packet = {0};
        const tt_status_t status = tt_link_next(self->link, &packet);
        if (status == TT_OK) {
            s_take(self, &packet.msg);
            tt_packet_clear(&packet);
            continue;
        }
        if (status != TT_AGAIN && status != TT_TIMEOUT && status != TT_UNAVAILABLE) {
            snprintf(self->out->reason, sizeof self->out->reason, "%.1000s", tt_err_text());
            self->out->exit_code = tt_status_exit_code(status);
            self->kill_at_ms = 1;
        }
        return TT_OK; /* a silent coordinator is the controller's business: its process has ended or will be told */
    }
}

/* ---- signals, time -------------------------------------------------------------------------------------------------- */

static void s_ask_stop(supervisor_t *self, int signal, int sender)
{
    const int64_t now = tt_now_ms(self->clock);
    const tt_asking_t asking = tt_asked(&self->asked, sender, now);
    if (asking == TT_ASKED_ECHO)
        return;
    if (asking == TT_ASKED_TWICE) {
        s_note(self, "asked twice: ending everything at once");
        self->kill_at_ms = now;
        return;
    }
    if (tt_controller_phase(self->controller, NULL, NULL) != TT_JOB_RUNNING)
        return; /* it is over: nothing is left to be asked */
    self->out->signal = signal;
    self->kill_at_ms = now + (self->opts->finish_ms ? self->opts->finish_ms : FINISH_MS);
    char body[64];
    snprintf(body, sizeof body, "{\"reason\": \"SIG%s\"}", sigabbrev_np(signal));
    const tt_msg_REQUEST_t msg = TT_MSG(REQUEST, .id = 1, .verb = "stop", .body = body);
    if (tt_link_send(self->link, &msg) != TT_OK)
        self->kill_at_ms = now;
    s_note(self, "ending the run with a snapshot; once more to kill it");
}

static tt_status_t s_on_signal(void *ctx, int fd)
{
    supervisor_t *self = ctx;
    int sender;
    for (int number; (number = tt_signals_next_from(fd, &sender)) != 0;)
        if (number != SIGCHLD)
            s_ask_stop(self, number, sender);
    return TT_OK; /* a child's end is seen by the tick that follows every turn of the loop */
}

static tt_status_t s_on_tick(void *ctx)
{
    supervisor_t *self = ctx;
    if (self->opts->watcher.tick)
        self->opts->watcher.tick(self->opts->watcher.ctx);
    return TT_OK;
}

/* ---- beginning and end ---------------------------------------------------------------------------------------------- */

/*  Replicas are forked before the link's thread and ZeroMQ's exist: it is quicker, and they start while we connect. */
static tt_status_t s_begin(supervisor_t *self)
{
    tt_rundir_forget(self->opts->run, s_result_file); /* of the run that is resumed */
    TT_TRY(tt_signals_open_parent(&self->signal_fd));
    TT_TRY(tt_process_substrate_new(&self->substrate, self->opts->run->path, self->clock));
    const tt_observer_t observer = {.started = s_started, .ended = s_ended, .ctx = self};
    TT_TRY(tt_controller_new(&self->controller, self->opts->job, self->substrate, self->clock, &observer));
    if (self->opts->resume)
        for (size_t i = 0; i < self->opts->job->role_count; i++)
            if (!self->opts->job->roles[i].decides_job)
                TT_TRY(tt_controller_scale(self->controller, self->opts->job->roles[i].name, 0, 0));
    TT_TRY(tt_controller_tick(self->controller));
    char endpoint[4096];
    tt_rundir_control(self->opts->run, endpoint, sizeof endpoint);
    const tt_link_opts_t link = {.endpoint = endpoint,
        .role = TT_PEER_CONTROLLER,
        .index = 0,
        .patience_ms = INT_MAX, /* who is silent for too long is replaced, and the next one is to be heard */
        .clock = self->clock};
    TT_TRY(tt_link_start(&self->link, &link));
    TT_TRY(tt_loop_new(&self->loop, self->clock));
    tt_loop_fd(self->loop, tt_link_fd(self->link), s_on_link, self);
    tt_loop_fd(self->loop, self->signal_fd, s_on_signal, self);
    tt_loop_timer(self->loop, TICK_MS, TICK_MS, s_on_tick, self);
    self->turned_ms = self->looked_ms = tt_now_ms(self->clock);
    return TT_OK;
}

/*  Nobody else can see that the coordinator stands still. What counts is the silence that we were there to hear: we may
 *  have been stopped ourselves, or the whole machine asleep. */
static void s_watch_coordinator(supervisor_t *self)
{
    const int64_t now = tt_now_ms(self->clock), passed = now - self->turned_ms;
    const int64_t lived = self->silent_ms + (passed < 2 * TICK_MS ? passed : 2 * TICK_MS);
    const int64_t silent = tt_link_silence_ms(self->link), leases = LEASES * self->lease_ms;
    const int64_t most = self->welcome || leases > START_MS ? leases : START_MS;
    self->turned_ms = now;
    self->silent_ms = silent < lived ? silent : lived;
    const tt_replica_id_t id = tt_controller_replica(self->controller, "coordinator", 0);
    if (self->ending || self->killed || !id || most == 0 || self->silent_ms < most)
        return;
    char text[128];
    snprintf(text, sizeof text,
        "warning: coordinator/0 (process %d): not a word for %.1f s; it is killed and started again",
        tt_process_pid(self->substrate, id), (double)self->silent_ms / 1000);
    s_note(self, text);
    self->silent_ms = 0;
    tt_controller_kill(self->controller, "coordinator", 0);
}

/*  Without its directory nobody can find the run to stop it, and its processes would write into whatever is made there next. */
static void s_look_at_directory(supervisor_t *self)
{
    if (self->gone[0] || tt_rundir_check(self->opts->run, self->opts->lock) == TT_OK)
        return;
    snprintf(self->gone, sizeof self->gone, "%.1000s", tt_err_text());
    self->kill_at_ms = 1;
}

static void s_watch_directory(supervisor_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    if (now - self->looked_ms < LOOK_MS)
        return;
    self->looked_ms = now;
    s_look_at_directory(self);
}

/*  One turn: what happened, then what is due. */
static tt_status_t s_turn(supervisor_t *self)
{
    int64_t wait = tt_controller_due_ms(self->controller);
    if (wait < 0 || wait > TICK_MS)
        wait = TICK_MS;
    const tt_status_t status = tt_loop_poll(self->loop, wait);
    if (status != TT_OK && status != TT_AGAIN)
        return status;
    TT_TRY(tt_controller_tick(self->controller));
    s_watch_coordinator(self);
    s_watch_directory(self);
    if (self->kill_at_ms && tt_now_ms(self->clock) >= self->kill_at_ms && !self->killed) {
        self->killed = true;
        tt_controller_stop(self->controller, 0);
    }
    return TT_OK;
}

/*  Of a run that has ended well all have been told: let them go by themselves. One that hears of a signal first would take it for its own end, and
 *  write what nobody asked for. */
static void s_linger(supervisor_t *self)
{
    const int64_t until_ms = tt_now_ms(self->clock) + LINGER_MS;
    while (tt_controller_phase(self->controller, NULL, NULL) == TT_JOB_SUCCEEDED &&
           tt_controller_running(self->controller, NULL) && tt_now_ms(self->clock) < until_ms && !self->killed)
        if (s_turn(self) != TT_OK)
            return;
}

static void s_run(supervisor_t *self)
{
    while (tt_controller_phase(self->controller, NULL, NULL) == TT_JOB_RUNNING && !self->killed)
        if (s_turn(self) != TT_OK) {
            log_error("%s", tt_err_text());
            self->out->exit_code = 70;
            break;
        }
    self->ending = true;
    (void)s_on_link(self, 0); /* the coordinator's last words */
    if (!self->out->signal)
        self->kill_at_ms = 0; /* of a link that failed: its run is over */
    s_linger(self);
    tt_controller_stop(self->controller, END_MS);
    self->kill_at_ms = tt_now_ms(self->clock) + END_MS;
    while (tt_controller_running(self->controller, NULL) && s_turn(self) == TT_OK)
        continue;
}

/*  "what the controller says: the last line of the replica's log". Who was killed could not say why: its line is only what it is. */
static void s_explain(supervisor_t *self, const char *reason)
{
    char last[400];
    s_last_line(self, last, sizeof last);
    char joint[64] = "";
    if (last[0] && self->speechless)
        snprintf(joint, sizeof joint, "; the last line of its log, %.1f s before: ", self->silence_s);
    else if (last[0])
        snprintf(joint, sizeof joint, ": ");
    snprintf(self->out->reason, sizeof self->out->reason, "%.600s%s%.350s", reason, joint, last);
}

/*  Whoever met the full disk may have had no room to say so. */
static void s_blame_disk(tt_outcome_t *out)
{
    static const char words[] = "; the disk is full: make room, then `tutti resume` goes on";
    const size_t used = strlen(out->reason);
    if (!strstr(out->reason, "disk is full") && used + sizeof words <= sizeof out->reason)
        memcpy(out->reason + used, words, sizeof words);
}

static void s_say_why(supervisor_t *self, const char *reason)
{
    tt_outcome_t *out = self->out;
    if (self->gone[0]) { /* whatever else went wrong did so because of it */
        memcpy(out->reason, self->gone, sizeof out->reason);
        out->exit_code = tt_status_exit_code(TT_IO);
        return;
    }
    /* a run that ends at once does so before our link stands: what the coordinator heard from whoever failed says more than the
       end of its process */
    if (!out->reason[0] && !(s_read_why(self) && out->reason[0]))
        s_explain(self, reason);
    if (tt_rundir_full(self->opts->run))
        s_blame_disk(out);
}

static void s_settle(supervisor_t *self)
{
    tt_outcome_t *out = self->out;
    const char *reason = "";
    int code = 0;
    s_look_at_directory(self);
    if (!self->gone[0])
        s_sync(self);
    tt_job_phase_t phase = tt_controller_phase(self->controller, &code, &reason);
    if (!out->finished) /* it was over before our link to the coordinator stood, or its end was a failure */
        out->finished = s_result(self);
    if (phase == TT_JOB_SUCCEEDED && out->signal) {
        phase = TT_JOB_STOPPED;
        code = 128 + out->signal;
    } else if (phase == TT_JOB_RUNNING) {
        phase = TT_JOB_FAILED;
        code = out->exit_code ? out->exit_code : out->signal ? 128 + out->signal : 70;
        reason = out->signal ? "killed before it could end by itself" : "ended by the controller";
    }
    if (phase == TT_JOB_FAILED)
        s_say_why(self, reason);
    out->phase = phase;
    out->exit_code = phase == TT_JOB_FAILED && out->exit_code ? out->exit_code : code;
}

tt_status_t tt_supervise(tt_outcome_t *out, const tt_supervise_opts_t *opts)
{
    *out = (tt_outcome_t){0};
    supervisor_t self = {.opts = opts, .out = out, .clock = tt_clock_or_real(opts->clock), .signal_fd = -1};
    const tt_status_t status = s_begin(&self);
    if (status == TT_OK) {
        s_run(&self);
        s_settle(&self);
    }
    tt_loop_destroy(&self.loop);
    tt_link_abandon(&self.link); /* whatever there was of the run has ended, or ends now */
    tt_controller_destroy(&self.controller);
    if (self.substrate)
        self.substrate->ops->destroy(&self.substrate);
    if (self.signal_fd >= 0)
        close(self.signal_fd);
    return status;
}
