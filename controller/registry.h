/*  registry - the names of this user's runs: $XDG_STATE_HOME/tutti/runs/<name>, a symbolic link to the run directory
 *  (~/.local/state by default). A name whose directory is gone, or is no run any more, is forgotten.
 *
 *  Threads: pure but for the file system; several processes may change it at once. */
#pragma once
#include "controller/rundir.h"

/*  Give the run its name, or the same with ~2, ~3, ... when another directory has it; self->name is what it got. */
tt_status_t registry_add(tt_rundir_t *self);
/*  Forget a name whose directory is gone. */
void registry_forget(const char *name);
/*  The run directory of a name, in out[PATH_MAX]; false when there is none (any more). */
bool registry_look(const char *name, char *out);
/*  Where a run of that name was, which is gone now or is no run any more, in out[PATH_MAX]; false: it is there, or never was. */
bool registry_was(const char *name, char *out);
/*  Where the run of that name is, in out[PATH_MAX], which cannot be looked at now: nobody knows whether it is there. */
bool registry_away(const char *name, char *out);
/*  The nearest name of a run that is there, copied to out[256]: of "demo" the newest of demo-1, demo-2, ...; false: none is near. */
bool registry_nearest(const char *name, char *out);
