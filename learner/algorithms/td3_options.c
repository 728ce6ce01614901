#include "learner/algorithms/td3_options.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include "learner/algorithms/td3_loss.h"
#include "learner/algorithms/twin.h"

#define AT(member)    offsetof(td3_cfg_t, member)
#define BAD(key, ...) COMMON_BAD(config, key, __VA_ARGS__)

const tt_cfg_field_t td3_fields[] = {
    COMMON_LEARNING_RATE("1e-3"),
    TWIN_CRITIC_LEARNING_RATE(AT(critic_learning_rate)),
    COMMON_GAMMA(TT_CFG_FIXED), /* the replay holds returns that were discounted by it */
    OFF_POLICY_BATCH_SIZE("256"),
    OFF_POLICY_N_STEP,
    OFF_POLICY_TAU("0.005"),
    OFF_POLICY_RANDOM_SHIFT,
    {"algorithm.policy_delay", TT_CFG_U32, AT(policy_delay), "2", 1, TD3_DELAY_MAX,
        .help = "steps of the critics for one of the actor, behind which the target networks follow"},
    {"algorithm.target_noise", TT_CFG_F32, AT(target_noise), "0.2", 0, TT_SIGMA_MAX,
        .help = "deviation of the noise in a target's action, of numbers within -1 and 1; 0 = none",
        .resume = TT_CFG_GIVEN},
    {"algorithm.target_noise_clip", TT_CFG_F32, AT(target_noise_clip), "0.5", 0, TT_SIGMA_MAX,
        .help = "the most of that noise", .resume = TT_CFG_GIVEN},
    {"algorithm.exploration_noise", TT_CFG_F32, AT(exploration_noise), "0.1", 0, TT_SIGMA_MAX,
        .help = "deviation of the noise by which collectors explore, of numbers within -1 and 1",
        .resume = TT_CFG_GIVEN},
    OFF_POLICY_STEPS("100", "1"),
    COMMON_MAX_GRAD_NORM("0"),
    COMMON_OPTIMIZER("adam", "1e-8"),
    COMMON_HEAD_GAIN("1"),
    OFF_POLICY_CAPACITY,
    OFF_POLICY_STORAGE,
    {0},
};

/*  So many steps of the critics, and one of the actor. */
static off_policy_form_t s_form(const td3_cfg_t *cfg)
{
    return (off_policy_form_t){.rounds = cfg->policy_delay, .steps = cfg->policy_delay + 1};
}

tt_status_t td3_check(const tt_config_t *config, const tt_train_cfg_t *train, const td3_cfg_t *cfg)
{
    const uint64_t every = (uint64_t)cfg->off.train_every * cfg->policy_delay;
    if (every > UINT32_MAX)
        return BAD("algorithm.train_every",
            "%" PRIu32 " env steps times algorithm.policy_delay, %" PRIu32 " (%s), are %" PRIu64
            ", more than can be counted",
            cfg->off.train_every, cfg->policy_delay, tt_config_origin(config, "algorithm.policy_delay"), every);
    return off_policy_check(config, train, &cfg->off, s_form(cfg));
}

void td3_shape(const tt_train_cfg_t *train, const td3_cfg_t *cfg, tt_algorithm_shape_t *out)
{
    const off_policy_form_t form = s_form(cfg);
    out->actor = (tt_actor_t){
        .kind = TT_ACT_MEAN, .squash = true, .sigma = cfg->exploration_noise, .random_rows = cfg->off.learning_starts};
    snprintf(out->actor.groups, sizeof out->actor.groups, TWIN_GROUPS_TEXT);
    out->feed = off_policy_feed(train, &cfg->off, form);
    out->sets = 2;
    /* of both objectives, a step */
    out->forwards = (form.rounds * TWIN_CRITIC_STAGES + TD3_ACTOR_STAGES + form.steps - 1) / form.steps;
}
