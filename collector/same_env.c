#include "collector/same_env.h"
#include <string.h>
#include "collector/vec.h"
#include "common/base/buf.h"

/*  A space of the env here must be the one that was trained on, in the same words. */
static tt_status_t s_check_space(
    const char *env, const char *what, const tt_space_t *here, const char *trained, const same_env_words_t *words)
{
    tt_buf_t text;
    tt_buf_init(&text, TT_SPACE_TEXT_MAX);
    tt_status_t status = tt_space_text(here, &text);
    if (status == TT_OK && strcmp(tt_buf_text(&text), trained) != 0)
        status = tt_err(TT_INVALID, "the %s of %s here is %s, the %s's is %s: %s", what, env, tt_buf_text(&text),
            words->whose, trained, words->advice);
    tt_buf_free(&text);
    return status;
}

tt_status_t same_spaces_check(
    const tt_env_ops_t *env, const char *id, const tt_train_cfg_t *cfg, const same_env_words_t *words)
{
    TT_TRY(s_check_space(id, "observation", &env->obs, cfg->space.obs, words));
    TT_TRY(s_check_space(id, "action", &env->action, cfg->space.action, words));
    if (env->mask != cfg->space.mask)
        return tt_err(TT_INVALID, "%s here has %s mask, the %s's has %s: %s", id, env->mask ? "a" : "no", words->whose,
            cfg->space.mask ? "one" : "none", words->advice);
    return TT_OK;
}

tt_status_t same_env_check(const tt_env_ops_t *env, const tt_train_cfg_t *cfg)
{
    static const same_env_words_t words = {"job", "start every role with the same version of it"};
    TT_TRY(same_spaces_check(env, cfg->env, cfg, &words));
    const size_t bytes = tt_vec_save_size(env, cfg->stack.frames);
    if (bytes != cfg->space.env_state)
        return tt_err(TT_INVALID, "%s here has %zu bytes of state, the job's has %u: %s", cfg->env, bytes,
            cfg->space.env_state, words.advice);
    return TT_OK;
}
