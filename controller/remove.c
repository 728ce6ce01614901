/*  remove - a run's directory with all that it holds (common/base/tree.h), where that is the run's alone or all is to go; the mark
 *  goes last. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "common/base/tree.h"
#include "controller/mark.h"
#include "controller/registry.h"

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static tt_status_t s_remove_all(const tt_rundir_t *run, int dir)
{
    TT_TRY(tt_tree_empty(dir, run->path, MARK_FILE));
    unlinkat(dir, MARK_FILE, 0);
    if (rmdir(run->path) == 0)
        return TT_OK;
    const tt_status_t status = tt_err_errno(
        errno == EACCES || errno == EPERM ? TT_DENIED : TT_IO, "%s could not be removed altogether: .", run->path);
    (void)mark_write(dir);
    return status;
}

/*  Of what is open, not of what has its name. */
static tt_status_t s_check(const tt_rundir_t *run, int dir)
{
    const mark_t mark = mark_look_at(dir);
    if (mark == MARK_RUN)
        return TT_OK;
    return mark == MARK_HOLDS
               ? tt_err(TT_DENIED, "%s holds other things than its run; remove by hand what is not wanted", run->path)
               : tt_err(TT_DENIED, "%s is not the directory of a run: it is not removed", run->path);
}

typedef struct {
    const tt_rundir_t *outer;
    tt_status_t status;
} inside_t;

static void s_look_inside(void *ctx, const tt_rundir_t *run)
{
    inside_t *self = ctx;
    const size_t length = strlen(self->outer->path);
    const bool inside = strncmp(run->path, self->outer->path, length) == 0 && run->path[length] == '/';
    if (self->status == TT_OK && inside && tt_rundir_live(run))
        self->status = tt_err(TT_EXISTS, "run %s, in %s, is running; end it first with 'tutti stop %s'", run->name,
            self->outer->path, run->name);
}

/*  A run of ours that somebody put into this one's directory, and that goes on. */
static tt_status_t s_check_inside(const tt_rundir_t *run)
{
    inside_t self = {.outer = run, .status = TT_OK};
    (void)tt_registry_each(s_look_inside, &self); /* without a registry there is nothing to know */
    return self.status;
}

/*  A checkout, notes, pictures: they came after the mark, and their owner may think of them only when they are gone. */
static tt_status_t s_check_strangers(const tt_rundir_t *run, int dir)
{
    char names[512];
    size_t count;
    const tt_status_t status = mark_strangers(dir, &count, names, sizeof names);
    if (status != TT_OK)
        return tt_err_wrap(status, "%s is not removed", run->path);
    if (count == 0)
        return TT_OK;
    return tt_err(TT_DENIED,
        "%s holds what is not its run's: %s; move that away, or 'tutti rm --force %s' removes it, too", run->path,
        names, run->name);
}

static tt_status_t s_remove_open(const tt_rundir_t *run, int dir, bool all)
{
    int lock;
    TT_TRY(s_check(run, dir));
    TT_TRY(s_check_inside(run));
    if (!all)
        TT_TRY(s_check_strangers(run, dir));
    const tt_status_t status = tt_rundir_lock(run, &lock);
    if (status == TT_EXISTS)
        return tt_err(TT_EXISTS, "run %s is running; end it first with 'tutti stop %s'", run->name, run->name);
    TT_TRY(status);
    tt_rundir_close_sockets(run);
    const tt_status_t removed = s_remove_all(run, dir);
    close(lock);
    return removed;
}

static tt_status_t s_remove(const tt_rundir_t *self, bool all)
{
    if (self->linked)
        return tt_err(TT_USAGE, "that is a link; the run is %s: 'tutti rm %s'", self->path, self->name);
    const int dir = open(self->path, OPEN_DIR);
    if (dir < 0)
        return tt_err_errno(TT_IO, "%s", self->path);
    const tt_status_t status = s_remove_open(self, dir, all);
    close(dir);
    TT_TRY(status);
    registry_forget(self->name);
    return TT_OK;
}

tt_status_t tt_rundir_remove(const tt_rundir_t *self)
{
    return s_remove(self, false);
}

tt_status_t tt_rundir_remove_all(const tt_rundir_t *self)
{
    return s_remove(self, true);
}
