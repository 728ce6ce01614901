#include "cli/launch.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/display.h"
#include "cli/updates.h"
#include "cli/history.h"
#include "cli/options.h"
#include "cli/summary.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/job/train_job.h"
#include "controller/guard.h"
#include "controller/supervisor.h"
#define TT_LOG_COMPONENT "run"
#include "common/base/log.h"
#include "common/base/text.h"

/* ---- the summary ----------------------------------------------------------------------------------------------------- */

static void s_keep_summary(const tt_rundir_t *run, const json_t *summary)
{
    char *text = json_dumps(summary, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    if (tt_rundir_write(run, "summary.json", text, 0644) != TT_OK)
        log_error("%s", tt_err_text());
    free(text);
}

/*  What the process that holds the run knows of it. */
typedef struct {
    const tt_launch_t *launch;
    int lock;
    uint32_t life;
} held_t;

/*  A directory that is another's by now is left alone. */
static bool s_is_there(const held_t *self)
{
    return tt_rundir_check(self->launch->run, self->lock) == TT_OK;
}

static void s_close_sockets(const held_t *self)
{
    if (s_is_there(self))
        tt_rundir_close_sockets(self->launch->run);
}

static void s_keep(const held_t *self, json_t *summary)
{
    if (!s_is_there(self))
        return;
    s_keep_summary(self->launch->run, summary);
    if (tt_history_end(self->launch->run, self->life, summary) != TT_OK)
        log_error("%s", tt_err_text());
}

static int s_report(const held_t *self, const tt_outcome_t *outcome)
{
    const tt_launch_t *launch = self->launch;
    const double wall_s = (double)(tt_now_ns(tt_clock_real()) - launch->start_ns) * 1e-9;
    const tt_job_phase_t phase = tt_summary_phase(outcome);
    json_t *summary = tt_summary(launch->run, outcome, wall_s);
    json_object_set_new(summary, "life", json_integer(self->life));
    json_object_set_new(summary, "changed", launch->changed ? json_deep_copy(launch->changed) : json_array());
    s_keep(self, summary);
    if (launch->json) {
        json_dumpf(summary, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
        putchar('\n');
    }
    if (!launch->json || phase == TT_JOB_FAILED)
        tt_summary_print(launch->json ? stderr : stdout, summary, outcome->reason);
    fflush(NULL);
    json_decref(summary);
    if (phase == TT_JOB_STOPPED && outcome->exit_code == 0)
        return 143; /* stopped from another terminal: as if by SIGTERM */
    return outcome->exit_code;
}

/* ---- the beginning, told to who waits for it --------------------------------------------------------------------- */

static int s_started_fd = -1;

/*  The first statistics mean that it trains: a detached run's starter may go. */
static void s_tell_started(void)
{
    if (s_started_fd >= 0) {
        const ssize_t told = write(s_started_fd, "+", 1);
        (void)told;
        close(s_started_fd);
        s_started_fd = -1;
    }
}

/* ---- the run itself ---------------------------------------------------------------------------------------------------- */

/*  The guard's words when the controller was killed under it. */
static void s_lost(void *ctx, int signal)
{
    const held_t *self = ctx;
    const tt_launch_t *launch = self->launch;
    s_close_sockets(self);
    fprintf(stderr, "tutti: the run's controller was killed (SIG%s); everything it started has been ended\n",
        sigabbrev_np(signal));
    if (launch->cfg)
        fprintf(stderr, "tutti: 'tutti resume %s' continues from the newest snapshot\n", tt_shown(launch->run->name));
}

static void s_say_who(const tt_launch_t *launch)
{
    char text[512];
    snprintf(text, sizeof text, "{\"pid\": %d, \"guard\": %d, \"started_ns\": %lld, \"resumed\": %s}\n", (int)getpid(),
        (int)getppid(), (long long)tt_wall_ns(), launch->resume ? "true" : "false");
    if (tt_rundir_write(launch->run, "run.json", text, 0644) != TT_OK)
        log_error("%s", tt_err_text());
}

/*  The arguments of a role that depend on this place: `tutti collector --run DIR --index 1`. */
static void s_add_arguments(tt_role_t *role, const tt_launch_t *launch)
{
    size_t count = 0;
    while (role->template_.args && role->template_.args[count])
        count++;
    char **args = tt_array0(count + 5, sizeof *args);
    if (count)
        memcpy(args, role->template_.args, count * sizeof *args);
    free(role->template_.args);
    role->template_.args = args;
    args[count++] = tt_strdup("--run");
    args[count++] = tt_strdup("$(TT_RUN_DIR)");
    if (role->decides_job) {
        args[count++] = tt_strdup("--start-ns");
        args[count++] = tt_sprintf("%lld", (long long)launch->start_ns);
    } else {
        args[count++] = tt_strdup("--index");
        args[count++] = tt_strdup("$(TT_INDEX)");
    }
}

static tt_job_t *s_job(const tt_launch_t *launch)
{
    tt_job_t *job = tt_train_job(launch->cfg);
    for (size_t i = 0; i < job->role_count; i++)
        s_add_arguments(&job->roles[i], launch);
    return job;
}

/*  With the lock held: whoever else wanted the run has gone. */
static tt_status_t s_begin_life(const tt_launch_t *launch, uint32_t *life)
{
    if (json_array_size(launch->changed) > 0 || launch->upgraded)
        TT_TRY(tt_rundir_write(launch->run, "config.yaml", launch->config, 0644));
    return tt_history_begin(launch->run, launch->resume, launch->changed, launch->upgraded, launch->config, life);
}

static int s_supervise(const held_t *self)
{
    const tt_launch_t *launch = self->launch;
    tt_job_t *job = s_job(launch);
    tt_outcome_t outcome = {0};
    s_say_who(launch);
    tt_display_t *display = tt_display_new(
        launch->json ? stderr : stdout, launch->cfg, launch->run, launch->start_ns, launch->quiet, s_tell_started);
    const tt_supervise_opts_t opts = {.run = launch->run,
        .lock = self->lock,
        .job = job,
        .resume = launch->resume,
        .watcher = tt_display_watcher(display)};
    const tt_status_t status = tt_supervise(&outcome, &opts);
    tt_display_finished(display, outcome.finished);
    tt_display_destroy(&display);
    const int code = status == TT_OK ? s_report(self, &outcome) : tt_cli_fail("run", status);
    free(outcome.finished);
    tt_job_destroy(&job);
    s_close_sockets(self);
    return code;
}

static int s_work(const held_t *self)
{
    const tt_launch_t *launch = self->launch;
    s_say_who(launch);
    if (tt_rundir_sync(launch->run) != TT_OK)
        fprintf(stderr, "tutti run: %s\n", tt_shown(tt_err_text()));
    const int code = launch->work(launch->ctx, s_tell_started);
    s_close_sockets(self);
    return code;
}

static int s_guarded(const tt_launch_t *launch)
{
    held_t self = {.launch = launch, .lock = -1};
    tt_status_t status = tt_rundir_lock(launch->run, &self.lock);
    if (status == TT_OK)
        status = tt_rundir_begin(launch->run);
    if (status == TT_OK)
        status = tt_rundir_open_sockets(launch->run);
    if (status == TT_OK && !launch->work)
        status = s_begin_life(launch, &self.life);
    if (status == TT_OK)
        status = tt_guard_enter(s_lost, &self);
    if (status != TT_OK) {
        const int code = tt_cli_fail(launch->resume ? "resume" : "run", status);
        if (self.lock >= 0)
            close(self.lock);
        if (!launch->resume)
            (void)tt_rundir_remove(launch->run); /* nothing half-made stays */
        return code;
    }
    const int code = launch->work ? s_work(&self) : s_supervise(&self);
    if (s_is_there(&self))
        tt_rundir_forget(launch->run, TT_RUNDIR_ROOM);
    close(self.lock);
    return code;
}

/* ---- detached ---------------------------------------------------------------------------------------------------------- */

/*  A process that waits for the run's end stays with the run; the user's own returns as soon as it trains. */
static void s_become_daemon(const tt_launch_t *launch)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/logs/run.log", launch->run->path);
    setsid();
    int log_fd = -1;
    if (tt_file_append(&log_fd, path, 0644) != TT_OK)
        exit(tt_cli_fail("run", TT_IO)); /* who waits for the beginning sees the end */
    const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null_fd, STDIN_FILENO);
    dup2(log_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    close(null_fd);
    close(log_fd);
}

static void s_print_started(const tt_launch_t *launch, pid_t pid)
{
    json_t *started = json_pack("{s:o, s:i, s:o}", "run", tt_json_text(launch->run->name), "pid", (int)pid, "run_dir",
        tt_json_text(launch->run->path));
    json_dumpf(started, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(started);
}

/*  How a run ended that never said that it trains; a short one may be over before it could. */
static int s_end_of(pid_t pid)
{
    int how = 0;
    while (waitpid(pid, &how, 0) < 0)
        if (errno != EINTR)
            return 70;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/*  The pipe's writing end stays open in the daemon until it has said how the beginning went. */
static int s_await_start(const tt_launch_t *launch, int fd, pid_t pid)
{
    char word = 0;
    const ssize_t got = read(fd, &word, 1);
    close(fd);
    const int code = got == 1 ? 0 : s_end_of(pid);
    const char *name = tt_shown(launch->run->name);
    if (code)
        fprintf(stderr, "tutti %s: the run ended before it trained; see %s/logs/run.log\n",
            launch->resume ? "resume" : "run", tt_shown(launch->run->path));
    else if (launch->json)
        s_print_started(launch, pid);
    else if (got == 1)
        printf("%s is running (process %d)\n  tutti status %s\n  tutti logs %s -f\n  tutti stop %s\n", name, (int)pid,
            name, name, name);
    else
        printf("%s has ended already\n  tutti status %s\n  tutti logs %s\n", name, name, name);
    return code;
}

/*  Nobody should find out after a night that a run had no end. */
static void s_say_endless(const tt_launch_t *launch)
{
    if (launch->cfg && tt_train_endless(launch->cfg))
        fprintf(stderr,
            "tutti: no stop rule is set (stop.env_steps, stop.return_mean, stop.wall_s): the run goes on until it is "
            "stopped, with %s'tutti stop %s'\n",
            launch->detach ? "" : "Ctrl-C or ", tt_shown(launch->run->name));
}

int tt_launch(const tt_launch_t *launch)
{
    s_say_endless(launch);
    if (launch->cfg)
        updates_warn(stderr, "tutti", launch->cfg);
    if (!launch->detach)
        return s_guarded(launch);
    int started[2];
    if (pipe2(started, O_CLOEXEC) != 0)
        return tt_cli_fail("run", tt_err_errno(TT_OS, "pipe"));
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0)
        return tt_cli_fail("run", tt_err_errno(TT_OS, "fork"));
    if (pid > 0) {
        close(started[1]);
        return s_await_start(launch, started[0], pid);
    }
    close(started[0]);
    s_started_fd = started[1];
    s_become_daemon(launch);
    exit(s_guarded(launch));
}
