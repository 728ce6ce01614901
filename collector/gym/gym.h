/*  gym - Gymnasium's environments, `env: gym:ID`, played by Python worker processes behind the batch table (env_batch.h).
 *
 *  What an id is, its spaces above all, says a first worker that makes one env and ends (the probe). A range of envs is shared
 *  by workers (python/tutti_env), whose rows lie in memory that both sides map.
 *
 *  Threads: any may find; a handle belongs to one thread, and its workers die with that. */
#pragma once
#include "collector/env_batch.h"
#include "common/base/status.h"
#include "common/config/train.h"

/*  Does the id name one of these? */
bool gym_is(const char *id);

/*  Is it written as Gymnasium writes ids ("ALE/Pong-v5", "walk:Walk-v0"), and only lacks the "gym:"? */
bool gym_could_be(const char *id);

/*  `settles`: gym_settle is called next, for which processes are started here already.
 *  The table of cfg->env with its env.args, env.wrappers, env.python and env.path; the same again for the same. It lives as
 *  long as the process. TT_NOT_FOUND: the interpreter, a package, the id; TT_INVALID: arguments, or spaces that nobody
 *  supports; TT_INTERNAL: its code failed, or did not come back; TT_UNAVAILABLE: the worker was killed. The text says what to do. */
tt_status_t gym_find(const tt_env_ops_t **out, const tt_train_cfg_t *cfg, bool settles);

/*  Whether and how the state of a table of ours is saved: cfg->space.env_saves where that said it, else what a trial says now, which
 *  takes a moment; from then on the table has it. Before, and where it says "no", it cannot be saved. By the thread that found it. In words; they live as long as the table. */
const char *gym_settle(const tt_env_ops_t *env);
