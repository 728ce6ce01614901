/*  same_env - is the environment that is here the one that the job was resolved for?
 *
 *  Threads: pure. */
#pragma once
#include "collector/env.h"
#include "common/config/train.h"

/*  Its spaces in the same words, a mask or none, as many bytes of state. TT_INVALID: no; the text says in what they differ. */
tt_status_t same_env_check(const tt_env_ops_t *env, const tt_train_cfg_t *cfg);
