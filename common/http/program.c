#include "common/http/program.h"
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

enum { PIECE = 4096, WORDS_MAX = 400 };

struct tt_program {
    tt_reactor_t *loop;
    void (*done)(void *ctx, const tt_program_end_t *end);
    void *ctx;
    pid_t pid;           /* 0 = not started, or reaped */
    int pidfd, out, err; /* -1 = closed                */
    uint64_t deadline;
    tt_buf_t output;
    bool too_much;
    char words[WORDS_MAX + 1]; /* the last of stderr */
    size_t word_count;
};

static int s_spawn(pid_t *pid, const tt_program_opts_t *opts, int out, int err)
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
    const int error = posix_spawnp(pid, opts->args[0], &actions, &attributes, opts->args, opts->env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* ---- what it says ------------------------------------------------------------------------------------------------ */

static void s_close(tt_program_t *self, int *fd)
{
    if (*fd >= 0) {
        tt_reactor_forget_fd(self->loop, *fd);
        close(*fd);
        *fd = -1;
    }
}

static void s_keep_words(tt_program_t *self, const char *data, size_t size)
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

/*  What is there now, at most so many pieces of it: others want their turn. False: the pipe has come to its end. */
static bool s_read(tt_program_t *self, int fd, size_t pieces)
{
    char data[PIECE];
    for (; pieces > 0; pieces--) {
        const ssize_t got = read(fd, data, sizeof data);
        if (got <= 0)
            return got < 0 && (errno == EAGAIN || errno == EINTR);
        if (fd == self->out)
            self->too_much = self->too_much || tt_buf_add(&self->output, data, (size_t)got) != TT_OK;
        else
            s_keep_words(self, data, (size_t)got);
    }
    return true;
}

static void s_on_pipe(void *ctx, int fd)
{
    tt_program_t *self = ctx;
    if (!s_read(self, fd, 4))
        s_close(self, fd == self->out ? &self->out : &self->err);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void s_kill(tt_program_t *self)
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
    tt_program_t *self = ctx;
    self->deadline = 0;
    s_kill(self);
    s_close(self, &self->pidfd);
    self->done(self->ctx, &(tt_program_end_t){.late = true, .output = "", .words = ""});
}

/*  Its last words, in one line. */
static const char *s_words(tt_program_t *self)
{
    for (size_t i = 0; i < self->word_count; i++)
        if ((unsigned char)self->words[i] < ' ')
            self->words[i] = ' ';
    while (self->word_count > 0 && self->words[self->word_count - 1] == ' ')
        self->word_count--;
    self->words[self->word_count] = '\0';
    return self->words;
}

static void s_on_exit(void *ctx, int fd)
{
    (void)fd;
    tt_program_t *self = ctx;
    int how = 0;
    if (waitpid(self->pid, &how, WNOHANG) != self->pid)
        return;
    self->pid = 0;
    if (self->out >= 0)
        (void)s_read(self, self->out, self->output.max / PIECE);
    if (self->err >= 0)
        (void)s_read(self, self->err, 16);
    s_close(self, &self->pidfd);
    tt_reactor_forget_timer(self->loop, self->deadline);
    self->done(self->ctx, &(tt_program_end_t){.signal = WIFSIGNALED(how) ? WTERMSIG(how) : 0,
                              .code = WEXITSTATUS(how),
                              .output = tt_buf_text(&self->output),
                              .size = self->output.size,
                              .too_much = self->too_much,
                              .words = s_words(self)});
}

void tt_program_destroy(tt_program_t **self_p)
{
    tt_program_t *self = *self_p;
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

static tt_status_t s_begin(tt_program_t *self, const tt_program_opts_t *opts)
{
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return tt_err_errno(TT_OS, "%s: pipe", opts->args[0]);
    self->out = out[0];
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[1]);
        return tt_err_errno(TT_OS, "%s: pipe", opts->args[0]);
    }
    self->err = err[0];
    const int error = s_spawn(&self->pid, opts, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    if (error) {
        self->pid = 0;
        errno = error;
        return tt_err_errno(error == ENOENT ? TT_NOT_FOUND : TT_OS, "%s", opts->args[0]);
    }
    self->pidfd = (int)syscall(SYS_pidfd_open, self->pid, 0);
    return self->pidfd < 0 ? tt_err_errno(TT_OS, "%s: pidfd_open", opts->args[0]) : TT_OK;
}

tt_status_t tt_program_start(tt_program_t **self_p, tt_reactor_t *loop, const tt_program_opts_t *opts)
{
    tt_program_t *self = tt_new0(sizeof *self);
    *self = (tt_program_t){.loop = loop, .done = opts->done, .ctx = opts->ctx, .pidfd = -1, .out = -1, .err = -1};
    tt_buf_init(&self->output, opts->output_max);
    const tt_status_t status = s_begin(self, opts);
    if (status != TT_OK) {
        tt_program_destroy(&self);
        return status;
    }
    (void)fcntl(self->out, F_SETFL, O_NONBLOCK);
    (void)fcntl(self->err, F_SETFL, O_NONBLOCK);
    tt_reactor_fd(loop, self->out, s_on_pipe, self);
    tt_reactor_fd(loop, self->err, s_on_pipe, self);
    tt_reactor_fd(loop, self->pidfd, s_on_exit, self);
    self->deadline = tt_reactor_timer(loop, opts->deadline_ms, s_on_deadline, self);
    *self_p = self;
    return TT_OK;
}
