#include "controller/steps.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/mem.h"

void tt_steps_add(tt_steps_t *self, tt_step_kind_t kind, const char *a, const char *b)
{
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 16;
        self->steps = tt_realloc(self->steps, tt_mul(self->room, sizeof *self->steps));
    }
    self->steps[self->count++] = (tt_step_t){kind, tt_strdup(a), tt_strdup(b)};
}

void tt_steps_clear(tt_steps_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free(self->steps[i].a);
        free(self->steps[i].b);
    }
    free(self->steps);
    *self = (tt_steps_t){0};
}

/* ---- in the child: system calls only --------------------------------------------------------------------------------------- */

static int s_write(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const ssize_t size = (ssize_t)strlen(text), put = write(fd, text, (size_t)size);
    const int code = errno;
    close(fd);
    errno = code;
    return put == size ? 0 : -1;
}

static int s_touch(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return fd < 0 ? -1 : close(fd);
}

static int s_namespace(const tt_step_t *step)
{
    if (unshare(CLONE_NEWNS | (step->a ? CLONE_NEWUSER : 0)) != 0)
        return -1;
    if (step->a && (s_write("/proc/self/setgroups", "deny") != 0 || s_write("/proc/self/uid_map", step->a) != 0 ||
                       s_write("/proc/self/gid_map", step->b) != 0))
        return -1;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/*  A remount must repeat the flags that are locked; asking for too many does no harm on a bind mount of ours. */
static int s_read_only(const char *path)
{
    static const unsigned long locked[] = {0, MS_NOSUID, MS_NOSUID | MS_NODEV, MS_NOSUID | MS_NODEV | MS_NOEXEC};
    for (size_t i = 0; i < sizeof locked / sizeof *locked; i++)
        if (mount("none", path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | locked[i], NULL) == 0)
            return 0;
    return -1;
}

static int s_step(const tt_step_t *step)
{
    switch (step->kind) {
    case TT_STEP_NAMESPACE:
        return s_namespace(step);
    case TT_STEP_MKDIR:
        return mkdir(step->a, 0755) == 0 || errno == EEXIST ? 0 : -1;
    case TT_STEP_TOUCH:
        return s_touch(step->a);
    case TT_STEP_LINK:
        return symlink(step->b, step->a);
    case TT_STEP_BIND:
        return mount(step->b, step->a, NULL, MS_BIND | MS_REC, NULL);
    case TT_STEP_READ_ONLY:
        return s_read_only(step->a);
    case TT_STEP_TMPFS:
        return mount("tmpfs", step->a, "tmpfs", MS_NOSUID | MS_NODEV, step->b);
    case TT_STEP_CHROOT:
        return chroot(step->a) == 0 ? chdir("/") : -1;
    case TT_STEP_WRITE:
        return s_write(step->a, step->b);
    }
    errno = EINVAL;
    return -1;
}

int tt_steps_run(const tt_steps_t *self, size_t *failed)
{
    for (*failed = 0; *failed < self->count; ++*failed)
        if (s_step(&self->steps[*failed]) != 0)
            return errno ? errno : EINVAL;
    return 0;
}

/* ---- what is allowed ------------------------------------------------------------------------------------------------------- */

void tt_steps_namespace(tt_steps_t *self, char kind)
{
    char uids[48], gids[48];
    snprintf(uids, sizeof uids, "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
    snprintf(gids, sizeof gids, "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
    tt_steps_add(self, TT_STEP_NAMESPACE, kind == 'u' ? uids : NULL, kind == 'u' ? gids : NULL);
}

static bool s_try(char kind)
{
    tt_steps_t steps = {0};
    tt_steps_namespace(&steps, kind);
    tt_steps_add(&steps, TT_STEP_TMPFS, "/tmp", "size=4096");
    size_t failed;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(tt_steps_run(&steps, &failed) != 0);
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    tt_steps_clear(&steps);
    return pid > 0 && status == 0;
}

char tt_steps_allowed(void)
{
    if (s_try('r'))
        return 'r';
    return s_try('u') ? 'u' : 0;
}
