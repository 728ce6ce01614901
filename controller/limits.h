/*  limits - cpu and memory of a container held by a control group, where this process may make some (v1 and v2).
 *
 *  A group of the run below our own, one below it for each container. Threads: an instance belongs to one thread. */
#pragma once
#include "common/base/status.h"
#include "controller/steps.h"

typedef struct limits limits_t; /* opaque */

/*  TT_UNSUPPORTED: not permitted here; the text says why. name: of the run, ending with "-" and the id of this process:
 *  groups that killed runs have left are removed by that. */
tt_status_t limits_new(limits_t **self_p, const char *name);
/*  The groups are removed; processes that are still in them keep them. */
void limits_destroy(limits_t **self_p);
/*  A group with these limits (0 = none) and the steps by which a process goes into it. cpu: cores; memory: bytes. */
tt_status_t limits_add(limits_t *self, tt_steps_t *steps, const char *container, double cpu, double memory);
/*  The container has ended: was it killed for memory? Its group is removed. */
bool limits_remove(limits_t *self, const char *container);
