/*  registry - the environments there are, by id.
 *
 *  Threads: read-only after the first call; a loaded shared object stays loaded until the process ends. */
#pragma once
#include "collector/env.h"
#include "common/base/status.h"

/*  The native envs, in the order of collector/envs/envs.def (one line an env). */
const tt_env_ops_t *const *tt_envs(size_t *count);

/*  Find by id, or load when id names a shared object (it contains '/' or ends in ".so").
 *  TT_NOT_FOUND: no such id (the text names the nearest); TT_INVALID: the object is not an env of ours, of another
 *  ABI, or its table is out of limits (the text names the object and the field). */
tt_status_t tt_env_find(const tt_env_ops_t **out, const char *id);
