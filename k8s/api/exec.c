#include "k8s/api/exec.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/mem.h"

enum { DEADLINE_MS = 60000, OUTPUT_MAX = 1 << 20, WORDS_MAX = 400 };

struct kube_exec_run {
    tt_reactor_t *loop;
    const kube_exec_t *exec;
    kube_exec_fn done;
    void *ctx;
    pid_t pid;           /* 0 = not started, or reaped */
    int pidfd, out, err; /* -1 = closed                */
    uint64_t deadline;
    tt_buf_t output;
    bool too_much;
    char words[WORDS_MAX]; /* the last of stderr */
    size_t word_count;
};

extern char **environ;

/* ---- the program ------------------------------------------------------------------------------------------------- */

static bool s_sets(const kube_exec_t *exec, const char *entry)
{
    const size_t name = strcspn(entry, "=");
    if (name == strlen("KUBERNETES_EXEC_INFO") && strncmp(entry, "KUBERNETES_EXEC_INFO", name) == 0)
        return true;
    for (size_t i = 0; i < exec->env_count; i++)
        if (strlen(exec->env[i].name) == name && strncmp(entry, exec->env[i].name, name) == 0)
            return true;
    return false;
}

/* Ours, less what is set anew, and that. Everything in it is to be freed. */
static char **s_environment(const kube_config_t *config)
{
    const kube_exec_t *exec = config->exec;
    size_t count = 0, n = 0;
    while (environ[count])
        count++;
    char **all = tt_array0(count + exec->env_count + 2, sizeof(char *));
    for (size_t i = 0; i < count; i++)
        if (!s_sets(exec, environ[i]))
            all[n++] = tt_strdup(environ[i]);
    for (size_t i = 0; i < exec->env_count; i++)
        all[n++] = tt_sprintf("%s=%s", exec->env[i].name, exec->env[i].value);
    all[n] = kube_exec_info(config);
    return all;
}

static char **s_arguments(const kube_exec_t *exec)
{
    size_t count = 0;
    while (exec->args && exec->args[count])
        count++;
    char **all = tt_array0(count + 2, sizeof(char *));
    all[0] = exec->command;
    for (size_t i = 0; i < count; i++)
        all[1 + i] = exec->args[i];
    return all;
}

static int s_spawn(pid_t *pid, const kube_config_t *config, int out, int err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, err, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char **args = s_arguments(config->exec), **env = s_environment(config);
    const int error = posix_spawnp(pid, args[0], &actions, &attributes, args, env);
    for (char **entry = env; *entry; entry++)
        free(*entry);
    free(env);
    free(args);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* ---- what it says ------------------------------------------------------------------------------------------------ */

static void s_close(kube_exec_run_t *self, int *fd)
{
    if (*fd >= 0) {
        tt_reactor_forget_fd(self->loop, *fd);
        close(*fd);
        *fd = -1;
    }
}

static void s_keep_output(kube_exec_run_t *self, const char *data, size_t size)
{
    self->too_much = self->too_much || tt_buf_add(&self->output, data, size) != TT_OK;
}

static void s_keep_words(kube_exec_run_t *self, const char *data, size_t size)
{
    if (size > WORDS_MAX) {
        data += size - WORDS_MAX;
        size = WORDS_MAX;
    }
    const size_t over = self->word_count + size > WORDS_MAX ? self->word_count + size - WORDS_MAX : 0;
    memmove(self->words, self->words + over, self->word_count - over);
    memcpy(self->words + self->word_count - over, data, size);
    self->word_count += size - over;
}

/* What is there now, at most so many pieces of it: others want their turn. False: the pipe has come to its end. */
static bool s_read(kube_exec_run_t *self, int fd, size_t pieces)
{
    char data[4096];
    for (; pieces > 0; pieces--) {
        const ssize_t got = read(fd, data, sizeof data);
        if (got <= 0)
            return got < 0 && (errno == EAGAIN || errno == EINTR);
        if (fd == self->out)
            s_keep_output(self, data, (size_t)got);
        else
            s_keep_words(self, data, (size_t)got);
    }
    return true;
}

static void s_on_pipe(void *ctx, int fd)
{
    kube_exec_run_t *self = ctx;
    if (!s_read(self, fd, 4))
        s_close(self, fd == self->out ? &self->out : &self->err);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Its last words, in one line. */
static const char *s_words(kube_exec_run_t *self, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < self->word_count; i++)
        out[n++] = (unsigned char)self->words[i] < ' ' ? ' ' : self->words[i];
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = 0;
    return out;
}

static tt_status_t s_result(kube_exec_run_t *self, int how, kube_exec_credential_t *credential)
{
    char words[WORDS_MAX + 1];
    const char *name = self->exec->command;
    if (WIFSIGNALED(how))
        return tt_err(TT_DENIED, "credential plug-in %s was killed by signal %d", name, WTERMSIG(how));
    if (WEXITSTATUS(how) != 0)
        return tt_err(
            TT_DENIED, "credential plug-in %s: exit code %d: %s", name, WEXITSTATUS(how), s_words(self, words));
    if (self->too_much)
        return tt_err(TT_DATA, "credential plug-in %s: more than %d bytes of output", name, OUTPUT_MAX);
    const tt_status_t status =
        kube_exec_read(credential, self->exec->api_version, tt_buf_text(&self->output), self->output.size);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "credential plug-in %s", name);
}

/* It has ended; a child of its own that holds the pipes open is not waited for. */
static void s_on_exit(void *ctx, int fd)
{
    (void)fd;
    kube_exec_run_t *self = ctx;
    int how = 0;
    if (waitpid(self->pid, &how, WNOHANG) != self->pid)
        return;
    self->pid = 0;
    if (self->out >= 0)
        (void)s_read(self, self->out, OUTPUT_MAX / 4096);
    if (self->err >= 0)
        (void)s_read(self, self->err, 16);
    s_close(self, &self->pidfd);
    tt_reactor_forget_timer(self->loop, self->deadline);
    kube_exec_credential_t credential = {0};
    const tt_status_t status = s_result(self, how, &credential);
    self->done(self->ctx, status, &credential);
}

static void s_kill(kube_exec_run_t *self)
{
    if (!self->pid)
        return;
    kill(-self->pid, SIGKILL);
    while (waitpid(self->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    self->pid = 0;
}

static void s_on_deadline(void *ctx)
{
    kube_exec_run_t *self = ctx;
    self->deadline = 0;
    s_kill(self);
    s_close(self, &self->pidfd);
    kube_exec_credential_t none = {0};
    self->done(self->ctx,
        tt_err(TT_TIMEOUT, "credential plug-in %s: no answer within %d s", self->exec->command, DEADLINE_MS / 1000),
        &none);
}

void kube_exec_destroy(kube_exec_run_t **self_p)
{
    kube_exec_run_t *self = *self_p;
    if (!self)
        return;
    s_kill(self);
    tt_reactor_forget_timer(self->loop, self->deadline);
    s_close(self, &self->pidfd);
    s_close(self, &self->out);
    s_close(self, &self->err);
    tt_buf_free(&self->output);
    free(self);
    *self_p = NULL;
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

static tt_status_t s_refused(const kube_exec_t *exec, int error)
{
    errno = error;
    (void)tt_err_errno(TT_OS, "credential plug-in %s", exec->command);
    const tt_status_t status = error == ENOENT ? TT_NOT_FOUND : TT_OS;
    return tt_err(
        status, "%s%s%s", tt_err_text(), exec->install_hint ? ". " : "", exec->install_hint ? exec->install_hint : "");
}

static tt_status_t s_begin(kube_exec_run_t *self, const kube_config_t *config)
{
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return tt_err_errno(TT_OS, "pipe");
    self->out = out[0];
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[1]);
        return tt_err_errno(TT_OS, "pipe");
    }
    self->err = err[0];
    const int error = s_spawn(&self->pid, config, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    if (error) {
        self->pid = 0;
        return s_refused(self->exec, error);
    }
    self->pidfd = (int)syscall(SYS_pidfd_open, self->pid, 0);
    return self->pidfd < 0 ? tt_err_errno(TT_OS, "pidfd_open") : TT_OK;
}

tt_status_t kube_exec_start(
    kube_exec_run_t **self_p, tt_reactor_t *loop, const kube_config_t *config, kube_exec_fn done, void *ctx)
{
    kube_exec_run_t *self = tt_new0(sizeof *self);
    *self = (kube_exec_run_t){
        .loop = loop, .exec = config->exec, .done = done, .ctx = ctx, .pidfd = -1, .out = -1, .err = -1};
    tt_buf_init(&self->output, OUTPUT_MAX);
    const tt_status_t status = s_begin(self, config);
    if (status != TT_OK) {
        kube_exec_destroy(&self);
        return status;
    }
    (void)fcntl(self->out, F_SETFL, O_NONBLOCK);
    (void)fcntl(self->err, F_SETFL, O_NONBLOCK);
    tt_reactor_fd(loop, self->out, s_on_pipe, self);
    tt_reactor_fd(loop, self->err, s_on_pipe, self);
    tt_reactor_fd(loop, self->pidfd, s_on_exit, self);
    self->deadline = tt_reactor_timer(loop, DEADLINE_MS, s_on_deadline, self);
    *self_p = self;
    return TT_OK;
}
