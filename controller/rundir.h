/*  rundir - a run's directory, its lock, and the registry that finds it by name.
 *
 *  <run>/.tutti-run (controller/mark.h), config.yaml (resolved), metrics.jsonl, events.*, checkpoints/, logs/, journal.db, key and token (0600),
 *  run.json (who runs it), summary.json (how it ended), lock (held while it runs), sock/ (only while it runs).
 *  Registry: $XDG_STATE_HOME/tutti/runs/<name>, a symbolic link to the directory (~/.local/state by default).
 *
 *  Threads: pure but for the file system. */
#pragma once
#include <sys/types.h>
#include "common/base/buf.h"
#include "common/base/status.h"

#define TT_RUNDIR_ROOM ".room"

typedef struct {
    char path[3072]; /* absolute */
    char name[256];
    bool linked; /* what it was found by is a link to the directory */
} tt_rundir_t;

/*  Make `path`, or runs/<name>-<n> with the first free n when path is NULL, with its subfolders; register it.
 *  TT_EXISTS: the path is there already and not empty (use resume, or another name). TT_USAGE: control characters in it. TT_IO, TT_DENIED (a umask that shuts out its owner, too). */
tt_status_t tt_rundir_create(tt_rundir_t *out, const char *path, const char *name);

/*  Take a directory for a run that somebody else keeps, made with mode when it is not there (a pod's volume). One with other
 *  things in it is used, and not marked as a run's alone. A mark is on the disk then. */
tt_status_t tt_rundir_adopt(tt_rundir_t *out, const char *path, int mode);

/*  Find a run: a directory, or a registered name. What is no run (controller/mark.h) is left alone, and what is not this
 *  user's gets no name. TT_NOT_FOUND names the nearest. */
tt_status_t tt_rundir_find(tt_rundir_t *out, const char *path_or_name);

/*  Hold the run until the process (and those it forked) ends; *fd stays open. TT_EXISTS: somebody holds it. */
tt_status_t tt_rundir_lock(const tt_rundir_t *self, int *fd);
/*  Does somebody hold it? Of another user's run, whose lock nobody else may look at: does it have sockets? */
bool tt_rundir_live(const tt_rundir_t *self);

/*  Is the directory still where it was, with the lock that *fd of tt_rundir_lock holds? TT_IO: it is gone, was moved, or another
 *  one has its place: who holds the lock must write nothing by the run's path any more. Where nobody can tell (a file system that
 *  does not answer) it is taken to be there. */
tt_status_t tt_rundir_check(const tt_rundir_t *self, int fd);

/*  Is it this process that holds it? What a file says of process ids is not believed before it is signalled. */
bool tt_rundir_held_by(const tt_rundir_t *self, pid_t pid);

/*  Make / remove sock/ (common/net/sockdir.h). */
tt_status_t tt_rundir_open_sockets(const tt_rundir_t *self);
void tt_rundir_close_sockets(const tt_rundir_t *self);

/*  May this user talk to it while it runs? TT_DENIED. */
tt_status_t tt_rundir_may_ask(const tt_rundir_t *self);

/*  "ipc://<run>/sock/control" */
void tt_rundir_control(const tt_rundir_t *self, char *out, size_t size);

/*  Read or write a small file of the run ("run.json"); writing goes through a rename. */
tt_status_t tt_rundir_read(const tt_rundir_t *self, const char *file, tt_buf_t *out);
tt_status_t tt_rundir_write(const tt_rundir_t *self, const char *file, const char *text, int mode);

/*  Begin a life of the run, with its lock held. A run of 0.1 gets its mark. A little room on the disk is kept while the run goes
 *  on (.room, 16 KiB): tt_rundir_write takes it when there is no other, so that what a full disk ended can say so. TT_IO: there
 *  is none to begin with. */
tt_status_t tt_rundir_begin(const tt_rundir_t *self);
/*  Write the run's mark to the disk, where a power failure leaves it. Takes as long as the disk does: not to be waited for by a run
 *  that starts. TT_IO. */
tt_status_t tt_rundir_sync(const tt_rundir_t *self);
/*  Is the disk of the run full? */
bool tt_rundir_full(const tt_rundir_t *self);
/*  Is its file system one that nobody may write to? */
bool tt_rundir_read_only(const tt_rundir_t *self);

/*  Remove a small file of the run, if it is there. */
void tt_rundir_forget(const tt_rundir_t *self, const char *file);

/*  Forget the names whose directory is gone, or is no run any more; fn is told of each, and where it was. */
tt_status_t tt_registry_sweep(void (*fn)(void *ctx, const char *name, const char *was), void *ctx);
/*  Call fn for every registered run whose directory still is there; forget the others. */
tt_status_t tt_registry_each(void (*fn)(void *ctx, const tt_rundir_t *run), void *ctx);

/*  Remove the directory of an ended run with all it holds, and its name. Links are not followed, file systems that are mounted
 *  below stay. TT_EXISTS: it is running; TT_DENIED: it is not a run's alone, or holds at its top what no run has; TT_USAGE: it was found
 *  by a link. */
tt_status_t tt_rundir_remove(const tt_rundir_t *self);
/*  The same with what somebody else put there, if the directory is marked. */
tt_status_t tt_rundir_remove_all(const tt_rundir_t *self);
