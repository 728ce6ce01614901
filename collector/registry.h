/*  registry - the environments there are, by id.
 *
 *  Threads: read-only after the first call; a loaded shared object stays loaded until the process ends. */
#pragma once
#include "collector/env.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/config/train.h"

/*  The native envs, in the order of collector/envs/envs.def (one line an env). */
const tt_env_ops_t *const *tt_envs(size_t *count);

/*  Find by id, have Python make it ("gym:ID"), or load when id names a shared object (it contains '/' or ends in ".so").
 *  TT_NOT_FOUND: no such id (the text names the nearest) or file; TT_USAGE: nothing behind "gym:"; TT_INVALID: the object is not an env of ours, of another
 *  ABI, or its table is out of limits (the text names the object and the field). */
tt_status_t tt_env_find(const tt_env_ops_t **out, const char *id);
/*  The env of a config, with what else stands there of it: the spaces of one of Gymnasium's depend on its arguments and wrappers
 *  (collector/gym/gym.h, with the ways in which it may fail). */
tt_status_t tt_env_of(const tt_env_ops_t **out, const tt_train_cfg_t *cfg);

/*  Is it a native env's id, or meant as one: it begins as the ids of a family do ("MinAtar/Brekout-v1"), and no file is called
 *  that? Then it is no path, whatever '/' it has. */
bool tt_env_is_native(const char *id);

/*  Is it the path of a shared object? */
bool tt_env_is_object(const char *id);

/*  The config's env arguments in the form that an env takes, borrowed from it. */
void tt_env_args_of(tt_env_arg_t out[TT_ENV_ARGS_MAX + 1], const tt_train_cfg_t *cfg);
/*  Does this env take these arguments (NULL: none)? TT_CONFIG: the text names the nearest, and what it takes. Whether their
 *  values will do is for its init to say. */
tt_status_t tt_env_check_args(const tt_env_ops_t *ops, const tt_env_arg_t *args);
