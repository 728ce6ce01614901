/*  same_env - is the environment that is here the one that the job was resolved for?
 *
 *  Threads: pure. */
#pragma once
#include "collector/env.h"
#include "common/config/train.h"

/*  Whose spaces the env must have ("job"), and what to do when it has not. */
typedef struct {
    const char *whose, *advice;
} same_env_words_t;

/*  Observation and action in the same words, and a mask or none. id: what the env is called here. TT_INVALID: no; the text says in what
 *  they differ. */
tt_status_t same_spaces_check(
    const tt_env_ops_t *env, const char *id, const tt_train_cfg_t *cfg, const same_env_words_t *words);
/*  Its spaces in the same words, a mask or none, as many bytes of state. TT_INVALID: no; the text says in what they differ. */
tt_status_t same_env_check(const tt_env_ops_t *env, const tt_train_cfg_t *cfg);
