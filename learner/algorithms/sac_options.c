#include "learner/algorithms/sac_options.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include "learner/algorithms/twin.h"

#define AT(member)    offsetof(sac_cfg_t, member)
#define BAD(key, ...) COMMON_BAD(config, key, __VA_ARGS__)

const tt_cfg_field_t sac_fields[] = {
    COMMON_LEARNING_RATE("3e-4"),
    TWIN_CRITIC_LEARNING_RATE(AT(critic_learning_rate)),
    COMMON_GAMMA(TT_CFG_FIXED), /* the replay holds returns that were discounted by it */
    OFF_POLICY_BATCH_SIZE("256"),
    OFF_POLICY_N_STEP,
    OFF_POLICY_TAU("0.005"),
    OFF_POLICY_RANDOM_SHIFT,
    COMMON_ENTROPY_COEF(AT(entropy_coef), "1", TT_CFG_FIXED),
    {"algorithm.tune_entropy", TT_CFG_BOOL, AT(tune_entropy), "true",
        .help =
            "tune algorithm.entropy_coef, which is its first value, so that the entropy is algorithm.target_entropy"},
    {"algorithm.target_entropy", TT_CFG_F64, AT(target_entropy), "null", -1e6, 1e6,
        .help = "in nats; null = minus the numbers of an action", .resume = TT_CFG_GIVEN},
    OFF_POLICY_STEPS("100", "1"),
    COMMON_MAX_GRAD_NORM("0"),
    COMMON_OPTIMIZER("adam", "1e-8"),
    COMMON_HEAD_GAIN("1"),
    OFF_POLICY_CAPACITY,
    OFF_POLICY_STORAGE,
    {0},
};

static const off_policy_form_t s_form = {.rounds = 1, .steps = SAC_STEPS};

tt_status_t sac_check(const tt_config_t *config, const tt_train_cfg_t *train, const sac_cfg_t *cfg)
{
    TT_TRY(off_policy_check(config, train, &cfg->off, s_form));
    if (cfg->entropy_coef <= 0)
        return BAD("algorithm.entropy_coef", "0, of which there is no logarithm: say a small number, as 1e-6");
    if (!cfg->tune_entropy && !isnan(cfg->target_entropy))
        return BAD("algorithm.target_entropy", "%g, but algorithm.tune_entropy (%s) is false: leave it away",
            cfg->target_entropy, tt_config_origin(config, "algorithm.tune_entropy"));
    return TT_OK;
}

void sac_shape(const tt_train_cfg_t *train, const sac_cfg_t *cfg, tt_algorithm_shape_t *out)
{
    out->actor = (tt_actor_t){
        .kind = TT_ACT_SQUASHED, .squash = true, .state_std = true, .random_rows = cfg->off.learning_starts};
    snprintf(out->actor.groups, sizeof out->actor.groups, TWIN_GROUPS_TEXT);
    out->feed = off_policy_feed(train, &cfg->off, s_form);
    out->sets = 2;
    out->forwards = 4; /* of both objectives, a step */
}

float sac_target_entropy(const sac_cfg_t *cfg, uint32_t numbers)
{
    return isnan(cfg->target_entropy) ? -(float)numbers : (float)cfg->target_entropy;
}
