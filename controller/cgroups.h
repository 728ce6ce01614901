/*  cgroups - where this process may make control groups that hold cpu and memory, v1 or v2.
 *
 *  v1: below our own group of each controller. v2: a group with processes in it hands no controllers down (the kernel's
 *  cgroup-v2.rst, "No Internal Process Constraint"), so ours hardly ever does. Under systemd a unit with Delegate=yes is ours to
 *  divide (its CGROUP_DELEGATION.md): what is in it moves to a leaf. Else the nearest group above that hands both down and in
 *  which we may make one. Threads: pure but for the file system. */
#pragma once
#include "common/base/status.h"

typedef struct {
    bool v2;
    char *cpu, *memory; /* owned; the same folder in v2; NULL = none */
} cgroups_t;

/*  Make folders of this name. TT_UNSUPPORTED: not permitted here; the text says why and what helps. */
tt_status_t cgroups_make(cgroups_t *out, const char *name);
/*  Forget them; the folders stay. */
void cgroups_clear(cgroups_t *self);
/*  How many processes of a group, memory's, the kernel has ended for want of memory; -1 = it does not say. */
long long cgroups_oom_kills(const char *group);
/*  The same of our own group. Where it is v2 those below count, too. */
long long cgroups_own_oom_kills(void);
/*  Write a control file of a group. */
bool cgroups_write(const char *group, const char *file, const char *text);
