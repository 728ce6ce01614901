#include "controller/process.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "controller/cgroups.h"
#include "controller/logfile.h"
#include "controller/orphans.h"
#define TT_LOG_COMPONENT "process"
#include "common/base/log.h"

extern char **environ;

enum { TRIM_MS = 1000 };

typedef struct {
    tt_replica_id_t id;
    pid_t pid;          /* 0 = ended, event not yet fetched */
    int64_t kill_at_ms; /* when stop's grace ends; 0 = none */
    bool killed;        /* by us                            */
    bool bounded;       /* its log is ours, and does not grow without end */
    char *log_path, *mark;
    tt_replica_event_t event;
} child_t;

typedef struct {
    tt_substrate_t base;
    const tt_clock_t *clock;
    char *run_dir; /* NULL: this process is a replica itself */
    char *own_log; /* of this process, where it has no terminal (cli/launch.c); NULL likewise */
    tt_replica_id_t next_id;
    uint64_t log_limit;  /* bytes                                      */
    int64_t trimmed_ms;  /* when logs were looked at                   */
    long long oom_kills; /* of our control group, as far as an end was told to be one; -1 = not known */
    child_t *children;
    size_t count, room;
} process_t;

/* ---- what a replica is started with ------------------------------------------------------------------------------ */

/*  ctx: NAME=value strings, NULL at the end. */
static const char *s_lookup(const void *ctx, const char *name, size_t length)
{
    for (char *const *env = ctx; *env; env++)
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return *env + length + 1;
    return NULL;
}

static void s_free_strings(char **list)
{
    for (char **item = list; item && *item; item++)
        free(*item);
    free(list);
}

static size_t s_length(char *const *list)
{
    size_t length = 0;
    while (list && list[length])
        length++;
    return length;
}

/*  Later entries win over inherited ones of the same name. */
static void s_env_set(char **env, size_t *count, const char *name, const char *value)
{
    const size_t length = strlen(name);
    char *entry = tt_sprintf("%s=%s", name, value ? value : "");
    for (size_t i = 0; i < *count; i++)
        if (strncmp(env[i], name, length) == 0 && env[i][length] == '=') {
            free(env[i]);
            env[i] = entry;
            return;
        }
    env[(*count)++] = entry;
}

/*  The variable by which whatever a replica has forked is found. */
static const char *s_mark_name(const process_t *self)
{
    return self->run_dir ? "TT_REPLICA" : "TT_WORKLOAD";
}

static char **s_make_env(const process_t *self, const tt_replica_spec_t *spec, const char *mark)
{
    const size_t inherited = s_length(environ);
    char **env = tt_array0(inherited + spec->template_->env_count + 5, sizeof *env);
    size_t count = 0;
    for (size_t i = 0; i < inherited; i++)
        env[count++] = tt_strdup(environ[i]);
    char index[16];
    snprintf(index, sizeof index, "%u", spec->index);
    for (size_t i = 0; i < spec->template_->env_count; i++)
        s_env_set(env, &count, spec->template_->env[i].name, spec->template_->env[i].value);
    s_env_set(env, &count, s_mark_name(self), mark);
    if (!self->run_dir)
        return env;
    s_env_set(env, &count, "TT_RUN_DIR", self->run_dir);
    s_env_set(env, &count, "TT_ROLE", spec->role);
    s_env_set(env, &count, "TT_INDEX", index);
    return env;
}

static char **s_make_argv(const tt_template_t *template_, char *const *env)
{
    const bool own = !template_->command || !template_->command[0];
    const size_t command = own ? 1 : s_length(template_->command), args = s_length(template_->args);
    char **argv = tt_array0(command + args + 1, sizeof *argv);
    for (size_t i = 0; i < command; i++)
        argv[i] = own ? tt_strdup("tutti") : tt_expand(template_->command[i], s_lookup, env);
    for (size_t i = 0; i < args; i++)
        argv[command + i] = tt_expand(template_->args[i], s_lookup, env);
    return argv;
}

/* ---- fork and exec ----------------------------------------------------------------------------------------------- */

enum { AT_EXEC = -1, AT_FOLDER = -2 };

/*  Why a child cannot become the program; at: a step's number, or one of the above. */
typedef struct {
    int code, at;
} trouble_t;

typedef struct {
    const char *file; /* NULL = search argv[0] in PATH */
    char **argv, **env;
    const char *working_dir;
    int log_fd, null_fd, report_fd;
    pid_t parent;
    const tt_steps_t *steps; /* NULL = none */
} launch_t;

/*  In the child: async-signal-safe calls only, since the parent has threads. */
static void s_become(const launch_t *launch)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launch->parent) /* it died before the line above */
        _exit(70);
    for (int signal = 1; signal < 32; signal++)
        if (signal != SIGKILL && signal != SIGSTOP)
            sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    tt_descriptors_restore();
    signal(SIGXFSZ, SIG_DFL); /* main ignores it; what becomes of another program is its own business */
    dup2(launch->null_fd, STDIN_FILENO);
    dup2(launch->log_fd, STDOUT_FILENO);
    dup2(launch->log_fd, STDERR_FILENO);
    size_t step = 0;
    trouble_t trouble = {.code = launch->steps ? tt_steps_run(launch->steps, &step) : 0, .at = (int)step};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of credentials has forgotten it */
    if (!trouble.code && launch->working_dir && chdir(launch->working_dir) != 0)
        trouble = (trouble_t){errno, AT_FOLDER};
    if (!trouble.code) {
        if (launch->file)
            execve(launch->file, launch->argv, launch->env);
        else
            execvpe(launch->argv[0], launch->argv, launch->env);
        trouble = (trouble_t){errno, AT_EXEC};
    }
    const ssize_t told = write(launch->report_fd, &trouble, sizeof trouble);
    (void)told;
    _exit(127);
}

static tt_status_t s_refuse(const launch_t *launch, const trouble_t *trouble)
{
    const char *program = launch->argv[0];
    errno = trouble->code;
    if (trouble->at == AT_EXEC)
        return tt_err_errno(trouble->code == ENOENT ? TT_NOT_FOUND : TT_OS, "cannot start '%s'", program);
    if (trouble->at == AT_FOLDER)
        return tt_err_errno(
            trouble->code == ENOENT ? TT_NOT_FOUND : TT_OS, "cannot start '%s' in %s", program, launch->working_dir);
    const char *place = launch->steps->steps[trouble->at].a;
    return tt_err_errno(TT_OS, "cannot make the place of '%s': %s", program, place ? place : "a namespace");
}

static tt_status_t s_fork(const launch_t *plan, pid_t *out)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0)
        return tt_err_errno(TT_OS, "pipe");
    launch_t launch = *plan;
    launch.report_fd = report[1];
    launch.parent = getpid();
    const pid_t pid = fork();
    if (pid == 0)
        s_become(&launch);
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        return tt_err_errno(TT_OS, "fork");
    }
    trouble_t trouble;
    ssize_t got;
    while ((got = read(report[0], &trouble, sizeof trouble)) < 0 && errno == EINTR)
        continue;
    close(report[0]);
    if (got == (ssize_t)sizeof trouble) { /* exec failed; the pipe closes by itself when it succeeds */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        return s_refuse(&launch, &trouble);
    }
    *out = pid;
    return TT_OK;
}

static tt_status_t s_launch(const tt_replica_spec_t *spec, const char *log_path, char **env, pid_t *out)
{
    const bool own = !spec->template_->command || !spec->template_->command[0];
    int log_fd = -1;
    TT_TRY(tt_file_append(&log_fd, log_path, 0644));
    const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char **argv = s_make_argv(spec->template_, env);
    char *working_dir = spec->template_->working_dir ? tt_expand(spec->template_->working_dir, s_lookup, env) : NULL;
    const launch_t launch = {.file = own ? "/proc/self/exe" : NULL,
        .argv = argv,
        .env = env,
        .working_dir = working_dir,
        .log_fd = log_fd,
        .null_fd = null_fd,
        .steps = spec->steps};
    const tt_status_t status = s_fork(&launch, out);
    s_free_strings(argv);
    free(working_dir);
    close(log_fd);
    close(null_fd);
    return status;
}

/* ---- the table's entries ------------------------------------------------------------------------------------------ */

static child_t *s_find(const process_t *self, tt_replica_id_t id)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->children[i].id == id)
            return &self->children[i];
    return NULL;
}

static char *s_log_path(const process_t *self, const tt_replica_spec_t *spec)
{
    TT_CHECK(spec->output || self->run_dir);
    if (spec->output)
        return tt_strdup(spec->output);
    return spec->log ? tt_sprintf("%s/logs/%s.log", self->run_dir, spec->log)
                     : tt_sprintf("%s/logs/%s-%u.log", self->run_dir, spec->role, spec->index);
}

static tt_status_t s_start(tt_substrate_t *base, const tt_replica_spec_t *spec, tt_replica_id_t *out)
{
    process_t *self = (process_t *)base;
    const tt_replica_id_t id = ++self->next_id;
    char *mark = tt_sprintf("%s/%u/%d/%llu", spec->role, spec->index, (int)getpid(), (unsigned long long)id);
    char *log_path = s_log_path(self, spec);
    char **env = s_make_env(self, spec, mark);
    pid_t pid = 0;
    const tt_status_t status = s_launch(spec, log_path, env, &pid);
    s_free_strings(env);
    if (status != TT_OK) {
        free(mark);
        free(log_path);
        return status;
    }
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 16;
        self->children = tt_realloc(self->children, tt_mul(self->room, sizeof *self->children));
    }
    self->children[self->count++] =
        (child_t){.id = id, .pid = pid, .bounded = !spec->output, .log_path = log_path, .mark = mark};
    log_debug("started %s/%u as process %d", spec->role, spec->index, (int)pid);
    *out = id;
    return TT_OK;
}

static void s_kill(child_t *child)
{
    child->killed = true;
    kill(-child->pid, SIGKILL);
    kill(child->pid, SIGKILL);
}

static tt_status_t s_stop(tt_substrate_t *base, tt_replica_id_t id, int grace_ms)
{
    child_t *child = s_find((process_t *)base, id);
    if (!child)
        return tt_err(TT_NOT_FOUND, "no such replica");
    if (child->pid == 0)
        return TT_OK;
    const int64_t kill_at = tt_now_ms(((const process_t *)base)->clock) + grace_ms;
    if (grace_ms > 0) {
        if (child->kill_at_ms == 0)
            kill(child->pid, SIGTERM);
        if (child->kill_at_ms == 0 || kill_at < child->kill_at_ms)
            child->kill_at_ms = kill_at;
    } else {
        s_kill(child);
    }
    return TT_OK;
}

static bool s_is_replica(void *ctx, pid_t pid)
{
    const process_t *self = ctx;
    for (size_t i = 0; i < self->count; i++)
        if (self->children[i].pid == pid)
            return true;
    return false;
}

/*  The replica's own process has ended: so does what it started. */
static void s_sweep(process_t *self, const child_t *child, pid_t pid)
{
    kill(-pid, SIGKILL);
    char *mark = tt_sprintf("%s=%s", s_mark_name(self), child->mark);
    tt_orphans_signal(SIGKILL, mark, s_is_replica, self);
    free(mark);
}

/*  One of ours was killed and the kernel has counted one more: one count for each. */
static bool s_lacked_memory(process_t *self)
{
    const long long count = cgroups_own_oom_kills();
    if (self->oom_kills < 0 || count <= self->oom_kills)
        return false;
    self->oom_kills++;
    return true;
}

/*  SIGKILL leaves no last word: whatever stands last in the log is of something else. What we know is said instead. */
static void s_say_who_killed(process_t *self, const child_t *child, const struct rusage *usage, char *out, size_t size)
{
    char had[32];
    const double mib = (double)usage->ru_maxrss / 1024;
    if (child->killed)
        return;
    snprintf(had, sizeof had, mib < 1024 ? "%.0f MiB" : "%.1f GiB", mib < 1024 ? mib : mib / 1024);
    if (s_lacked_memory(self))
        snprintf(out, size, ": out of memory, says its control group (it had %s at most)", had);
    else
        snprintf(out, size, ", not by tutti: out of memory, mostly (it had %s at most)", had);
}

static void s_trim(const process_t *self, const child_t *child)
{
    if (child->bounded)
        tt_logfile_trim(child->log_path, self->log_limit);
}

static void s_trim_all(process_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    if (now - self->trimmed_ms < TRIM_MS)
        return;
    self->trimmed_ms = now;
    if (self->own_log)
        tt_logfile_trim(self->own_log, self->log_limit);
    for (size_t i = 0; i < self->count; i++)
        s_trim(self, &self->children[i]);
}

static void s_ended(process_t *self, child_t *child, int wait_status, const struct rusage *usage)
{
    const pid_t pid = child->pid;
    child->pid = 0;
    s_sweep(self, child, pid);
    s_trim(self, child);
    tt_replica_event_t *event = &child->event;
    *event = (tt_replica_event_t){.id = child->id, .pid = (int)pid};
    if (WIFSIGNALED(wait_status)) {
        event->signal = WTERMSIG(wait_status);
        event->exit_code = 128 + event->signal;
        snprintf(event->reason, sizeof event->reason, "killed by SIG%s", sigabbrev_np(event->signal));
        if (event->signal == SIGKILL)
            s_say_who_killed(self, child, usage, event->why, sizeof event->why);
    } else {
        event->exit_code = WEXITSTATUS(wait_status);
        /* it may have failed because a process of its own was killed: that one is told of by it */
        if (event->exit_code)
            self->oom_kills = cgroups_own_oom_kills();
        snprintf(event->reason, sizeof event->reason, "exit code %d", event->exit_code);
    }
    event->phase = event->exit_code == 0 ? TT_PHASE_SUCCEEDED : TT_PHASE_FAILED;
}

static void s_reap(process_t *self)
{
    int wait_status;
    pid_t pid;
    struct rusage usage;
    while ((pid = wait4(-1, &wait_status, WNOHANG, &usage)) > 0)
        for (size_t i = 0; i < self->count; i++)
            if (self->children[i].pid == pid)
                s_ended(self, &self->children[i], wait_status, &usage);
}

static void s_kill_late(process_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    for (size_t i = 0; i < self->count; i++) {
        child_t *child = &self->children[i];
        if (child->pid && child->kill_at_ms && now >= child->kill_at_ms) {
            log_warn("process %d did not end within its grace; killed", (int)child->pid);
            s_kill(child);
            child->kill_at_ms = now + 1000;
        }
    }
}

static void s_drop(process_t *self, size_t i)
{
    free(self->children[i].log_path);
    free(self->children[i].mark);
    self->children[i] = self->children[--self->count];
}

static tt_status_t s_poll(tt_substrate_t *base, tt_replica_event_t *events, size_t *count)
{
    process_t *self = (process_t *)base;
    const size_t room = *count;
    size_t used = 0;
    s_reap(self);
    s_kill_late(self);
    s_trim_all(self);
    for (size_t i = 0; i < self->count && used < room;) {
        if (self->children[i].pid == 0) {
            events[used++] = self->children[i].event;
            s_drop(self, i);
        } else {
            i++;
        }
    }
    *count = used;
    return TT_OK;
}

static tt_status_t s_logs(tt_substrate_t *base, tt_replica_id_t id, int fd)
{
    const child_t *child = s_find((process_t *)base, id);
    if (!child)
        return tt_err(TT_NOT_FOUND, "no such replica");
    const int in = open(child->log_path, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return tt_err_errno(TT_IO, "%s", child->log_path);
    char chunk[16384];
    ssize_t got;
    tt_status_t status = TT_OK;
    while (status == TT_OK && (got = read(in, chunk, sizeof chunk)) > 0)
        if (!tt_file_write(fd, chunk, (size_t)got, NULL))
            status = tt_err_errno(TT_IO, "writing the log of a replica");
    close(in);
    return status;
}

static void s_destroy(tt_substrate_t **self_p)
{
    process_t *self = (process_t *)*self_p;
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++)
        if (self->children[i].pid)
            kill(-self->children[i].pid, SIGKILL);
    if (!tt_orphans_end(5000))
        log_error("a process below us did not end");
    while (self->count)
        s_drop(self, self->count - 1);
    free(self->children);
    free(self->run_dir);
    free(self->own_log);
    free(self);
    *self_p = NULL;
}

static const tt_substrate_ops_t s_ops = {
    .start = s_start,
    .stop = s_stop,
    .poll = s_poll,
    .logs = s_logs,
    .destroy = s_destroy,
};

tt_status_t tt_process_substrate_new(tt_substrate_t **self_p, const char *run_dir, const tt_clock_t *clock)
{
    char *logs = tt_sprintf("%s/logs", run_dir ? run_dir : "");
    const int made = run_dir ? mkdir(logs, 0755) : 0;
    const int code = errno;
    tt_status_t status = TT_OK;
    if (made != 0 && code != EEXIST) {
        errno = code;
        status = tt_err_errno(TT_IO, "cannot make %s", logs);
    } else if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        status = tt_err_errno(TT_OS, "prctl(PR_SET_CHILD_SUBREAPER)");
    }
    free(logs);
    TT_TRY(status);
    process_t *self = tt_new0(sizeof *self);
    self->base.ops = &s_ops;
    self->run_dir = tt_strdup(run_dir);
    self->own_log = run_dir ? tt_sprintf("%s/logs/run.log", run_dir) : NULL;
    self->clock = clock;
    self->oom_kills = cgroups_own_oom_kills();
    self->log_limit = tt_logfile_limit();
    *self_p = &self->base;
    return TT_OK;
}

int tt_process_pid(const tt_substrate_t *base, tt_replica_id_t id)
{
    const child_t *child = s_find((const process_t *)base, id);
    return child ? (int)child->pid : 0;
}
