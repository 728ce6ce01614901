#include "collector/same_env.h"
#include <string.h>
#include "collector/vec.h"
#include "common/base/buf.h"

/*  A space of the env here must be the job's, in the same words. */
static tt_status_t s_check_space(const char *env, const char *what, const tt_space_t *here, const char *job)
{
    tt_buf_t text;
    tt_buf_init(&text, TT_SPACE_TEXT_MAX);
    tt_status_t status = tt_space_text(here, &text);
    if (status == TT_OK && strcmp(tt_buf_text(&text), job) != 0)
        status =
            tt_err(TT_INVALID, "the %s of %s here is %s, the job's is %s: start every role with the same version of it",
                what, env, tt_buf_text(&text), job);
    tt_buf_free(&text);
    return status;
}

tt_status_t same_env_check(const tt_env_ops_t *env, const tt_train_cfg_t *cfg)
{
    const size_t bytes = tt_vec_save_size(env, cfg->stack.frames);
    TT_TRY(s_check_space(cfg->env, "observation", &env->obs, cfg->space.obs));
    TT_TRY(s_check_space(cfg->env, "action", &env->action, cfg->space.action));
    if (env->mask != cfg->space.mask || bytes != cfg->space.env_state)
        return tt_err(TT_INVALID,
            "%s here has %s mask and %zu bytes of state, the job's has %s and %u: "
            "start every role with the same version of it",
            cfg->env, env->mask ? "a" : "no", bytes, cfg->space.mask ? "one" : "none", cfg->space.env_state);
    return TT_OK;
}
