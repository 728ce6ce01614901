/*  setup - what run and check do with a config: load, override, resolve, check.
 *
 *  Threads: main thread; a plug-in env that the config names is loaded into the process. */
#pragma once
#include "cli/options.h"
#include "collector/registry.h"
#include "learner/algorithm.h"

typedef struct tt_setup tt_setup_t; /* opaque; owns everything the calls below hand out */

/*  Load the file, lay the assignments ("key=value", later ones win) over it, fill in what the env decides (name,
 *  space.*, a plug-in's absolute path), and check every rule between keys. Caller owns *self_p.
 *  TT_NOT_FOUND, TT_IO: the file. TT_USAGE: an assignment is not of that form. TT_CONFIG: "file:line:column: key: ...";
 *  an unknown env or algorithm and a plug-in that cannot be loaded are TT_CONFIG too. */
tt_status_t tt_setup_new(tt_setup_t **self_p, const char *path, const char *const *sets, size_t count);
void tt_setup_destroy(tt_setup_t **self_p);

/*  The same from a command line that has the options --set, --seed, --name and --env (as far as its table has them).
 *  path: a file, the name of a bundled config ("cartpole-ppo") or an environment (cli/recipes.h). first: one more assignment, before
 *  the others; NULL = none. */
tt_status_t tt_setup_from_args(tt_setup_t **self_p, const tt_args_t *args, const char *path, const char *first);

/*  The same for the config.yaml of a run. old: an older version wrote it, and its keys are read as they were meant. args may be
 *  NULL. */
tt_status_t tt_setup_from_run(tt_setup_t **self_p, const tt_args_t *args, const char *path, bool old);
/*  Which of an older version's keys were read as what; "" = none. */
const char *tt_setup_upgraded(const tt_setup_t *self);

/*  As tt_algorithm_find, for a word of a user's: that of another trainer is answered with what it is here. */
tt_status_t tt_setup_find_algorithm(const tt_algorithm_t **out, const char *name);

/*  Which config was chosen where that is not plain; "" = nothing to say. */
const char *tt_setup_note(const tt_setup_t *self);

const tt_train_cfg_t *tt_setup_train(const tt_setup_t *self);
const tt_env_ops_t *tt_setup_env(const tt_setup_t *self);
const tt_algorithm_t *tt_setup_algorithm(const tt_setup_t *self);
/*  The struct that algorithm->fields fill. */
const void *tt_setup_algorithm_cfg(const tt_setup_t *self);
const tt_config_t *tt_setup_config(const tt_setup_t *self);
/*  The resolved config: YAML that reads back to the same values; what a run directory keeps and WELCOME carries. */
const char *tt_setup_yaml(const tt_setup_t *self);
