#include "learner/algorithms/dqn_options.h"
#include <inttypes.h>
#include <stddef.h>
#include "common/base/limits.h"
#include "learner/replay/replay.h"

#define AT(member) offsetof(dqn_cfg_t, member)

_Static_assert((int)REPLAY_UNITS_MAX <= (int)TT_RIDE_MAX, "the priorities of a step ride on its sum");

const tt_cfg_field_t dqn_fields[] = {
    COMMON_LEARNING_RATE("1e-4"),
    COMMON_GAMMA(TT_CFG_FIXED), /* the replay holds returns that were discounted by it */
    OFF_POLICY_BATCH_SIZE("32"),
    {"algorithm.double", TT_CFG_BOOL, AT(double_q), "false",
        .help = "the trained network chooses, the target network says what that is worth", .resume = TT_CFG_GIVEN},
    {"algorithm.dueling", TT_CFG_BOOL, AT(dueling), "false",
        .help = "the network says what a state is worth, and how much better each choice is"},
    {"algorithm.quantiles", TT_CFG_U32, AT(quantiles), "0", 0, TT_QUANTILES_MAX,
        .help = "how many quantiles of its return a choice has (QR-DQN; 50 to 200 are usual); 0 = its mean alone"},
    {"algorithm.atoms", TT_CFG_U32, AT(atoms), "0", 0, TT_ATOMS_MAX,
        .help = "how many values its return may have, each with a probability (C51, Rainbow: 51); 0 = its mean alone"},
    {"algorithm.v_min", TT_CFG_F32, AT(v_min), "-10", -1e6, 1e6,
        .help = "with atoms: the least of these values; what is less counts as it"},
    {"algorithm.v_max", TT_CFG_F32, AT(v_max), "10", -1e6, 1e6, .help = "with atoms: the largest of them"},
    {"algorithm.noisy", TT_CFG_BOOL, AT(noisy), "false",
        .help = "layers of the heads are noisy, which explores in place of epsilon"},
    {"algorithm.noisy_sigma", TT_CFG_F32, AT(noisy_sigma), "0.5", 1e-3, TT_NOISE_MAX,
        .help = "of noisy layers: their deviations at first, times the root of the inputs"},
    OFF_POLICY_N_STEP,
    {"algorithm.sequence_length", TT_CFG_U32, AT(sequence_length), "80", 1, REPLAY_SEQUENCE_MAX / 2,
        .help = "with network.rnn: steps of an env that are trained on together"},
    {"algorithm.burn_in", TT_CFG_U32, AT(burn_in), "40", 0, REPLAY_SEQUENCE_MAX / 2,
        .help = "with network.rnn: steps before them, from which the network only gets what it remembers"},
    {"algorithm.rescale", TT_CFG_F32, AT(rescale), "0", 0, 1,
        .help = "values are learned as sign(x) (sqrt(|x| + 1) - 1) + rescale x (R2D2: 1e-3); 0 = as they are"},
    {"algorithm.loss", TT_CFG_ENUM, AT(loss), "huber", .choices = "huber|mse",
        .help = "of the error: linear beyond 1, or its square", .resume = TT_CFG_GIVEN},
    {"algorithm.target_every", TT_CFG_U64, AT(target_every), "10000", 1, 1e15,
        .help = "env steps after which the target network follows", .resume = TT_CFG_GIVEN},
    OFF_POLICY_TAU("1"),
    OFF_POLICY_RANDOM_SHIFT,
    OFF_POLICY_STEPS("100", "4"),
    {"algorithm.epsilon_start", TT_CFG_F64, AT(epsilon_start), "-1", -1, 1,
        .help = "probability of any choice at first; -1 = 1, or 0 where layers are noisy", .resume = TT_CFG_GIVEN},
    {"algorithm.epsilon_end", TT_CFG_F64, AT(epsilon_end), "-1", -1, 1,
        .help = "the same, later on; -1 = 0.05, or 0 where layers are noisy", .resume = TT_CFG_GIVEN},
    {"algorithm.epsilon_steps", TT_CFG_U64, AT(epsilon_steps), "0", 0, 1e15,
        .help = "env steps from the one to the other; 0 = a tenth of stop.env_steps", .resume = TT_CFG_GIVEN},
    {"algorithm.epsilon_power", TT_CFG_F32, AT(epsilon_power), "0", 0, TT_EPSILON_POWER_MAX,
        .help = "env i of N explores by epsilon ^ (1 + epsilon_power * i / (N - 1)); 0 = all alike",
        .resume = TT_CFG_GIVEN},
    COMMON_MAX_GRAD_NORM("10"),
    COMMON_OPTIMIZER("adam", "1e-8"),
    COMMON_HEAD_GAIN("1"),
    OFF_POLICY_CAPACITY,
    {"replay.prioritized", TT_CFG_BOOL, AT(replay.prioritized), "false",
        .help = "draw what was predicted badly more often"},
    {"replay.alpha", TT_CFG_F32, AT(replay.alpha), "0.6", 1e-3, 1,
        .help = "priority = (error + epsilon)^alpha; the error of atoms is their loss"},
    {"replay.beta", TT_CFG_F32, AT(replay.beta), "0.4", 0, 1, .help = "weight = (n P)^-beta, at first",
        .resume = TT_CFG_GIVEN},
    {"replay.beta_end", TT_CFG_F32, AT(replay.beta_end), "1", 0, 1, .help = "the same, later on",
        .resume = TT_CFG_GIVEN},
    {"replay.beta_steps", TT_CFG_U64, AT(replay.beta_steps), "0", 0, 1e15,
        .help = "env steps from the one to the other; 0 = stop.env_steps", .resume = TT_CFG_GIVEN},
    {"replay.epsilon", TT_CFG_F32, AT(replay.epsilon), "1e-6", 1e-30, 1,
        .help = "so that every transition can be drawn"},
    {"replay.eta", TT_CFG_F32, AT(replay.eta), "0.9", 0, 1,
        .help = "with network.rnn: |error| of a sequence is eta times its steps' largest plus 1 - eta times their mean",
        .resume = TT_CFG_GIVEN},
    {"replay.priority_delay", TT_CFG_U32, AT(replay.priority_delay), "1", 0, REPLAY_DELAY_MAX,
        .help = "optimizer steps after which new priorities count; 0 = with the next one"},
    OFF_POLICY_STORAGE,
    {0},
};

/* ---- rules ---------------------------------------------------------------------------------------------------------- */

#define BAD(key, ...) COMMON_BAD(config, key, __VA_ARGS__)

double dqn_epsilon_start(const dqn_cfg_t *cfg)
{
    const double usual = cfg->noisy ? 0 : 1;
    return cfg->epsilon_start == DQN_USUAL ? usual : cfg->epsilon_start;
}

double dqn_epsilon_end(const dqn_cfg_t *cfg)
{
    const double usual = cfg->noisy ? 0 : 0.05;
    return cfg->epsilon_end == DQN_USUAL ? usual : cfg->epsilon_end;
}

static tt_status_t s_check_usual(const tt_config_t *config, const char *key, double value)
{
    if (value >= 0 || value == DQN_USUAL)
        return TT_OK;
    return BAD(key, "%g is no probability: 0 to 1, or -1 for the usual", value);
}

static tt_status_t s_check_epsilon(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const double start = dqn_epsilon_start(cfg), end = dqn_epsilon_end(cfg);
    TT_TRY(s_check_usual(config, "algorithm.epsilon_start", cfg->epsilon_start));
    TT_TRY(s_check_usual(config, "algorithm.epsilon_end", cfg->epsilon_end));
    if (end > start)
        return BAD("algorithm.epsilon_end", "%g is more than algorithm.epsilon_start, which is %g (%s%s)", end, start,
            tt_config_origin(config, "algorithm.epsilon_start"),
            cfg->noisy && cfg->epsilon_start == DQN_USUAL ? ", with algorithm.noisy: leave epsilon_end away, too" : "");
    if (end < start && !cfg->epsilon_steps && !train->stop.env_steps)
        return BAD("algorithm.epsilon_steps", "0 is a tenth of stop.env_steps, which is not set: set one of both");
    return TT_OK;
}

static tt_status_t s_check_priorities(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    if (!cfg->replay.prioritized)
        return TT_OK;
    if (cfg->replay.beta_end < cfg->replay.beta)
        return BAD("replay.beta_end", "%g is less than replay.beta, which is %g (%s)", (double)cfg->replay.beta_end,
            (double)cfg->replay.beta, tt_config_origin(config, "replay.beta"));
    if (cfg->replay.beta_end > cfg->replay.beta && !cfg->replay.beta_steps && !train->stop.env_steps)
        return BAD("replay.beta_steps", "0 is stop.env_steps, which is not set: set one of both");
    return TT_OK;
}

static tt_status_t s_check_quantiles(const tt_config_t *config, const dqn_cfg_t *cfg)
{
    if (cfg->quantiles && cfg->loss != DQN_HUBER)
        return BAD("algorithm.quantiles", "%" PRIu32 ", but algorithm.loss is mse, which finds means: say huber",
            cfg->quantiles);
    return TT_OK;
}

static tt_status_t s_check_atoms(const tt_config_t *config, const dqn_cfg_t *cfg)
{
    if (!cfg->atoms)
        return TT_OK;
    if (cfg->atoms < 2)
        return BAD("algorithm.atoms", "%" PRIu32 " is no distribution: 2 to %d, or 0", cfg->atoms, TT_ATOMS_MAX);
    if (cfg->quantiles)
        return BAD("algorithm.atoms",
            "%" PRIu32 ", but a choice has quantiles (algorithm.quantiles, %s): set one of both", cfg->atoms,
            tt_config_origin(config, "algorithm.quantiles"));
    if (cfg->v_min >= cfg->v_max)
        return BAD("algorithm.v_max", "%g is not above algorithm.v_min, which is %g (%s)", (double)cfg->v_max,
            (double)cfg->v_min, tt_config_origin(config, "algorithm.v_min"));
    if (cfg->loss != DQN_HUBER)
        return BAD("algorithm.loss", "mse, but atoms are learned by their probabilities' cross-entropy: leave it away");
    return TT_OK;
}

off_policy_form_t dqn_form(const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const bool remembers = train->network.rnn != TT_RNN_NONE;
    return (off_policy_form_t){
        .rounds = 1, .steps = 1, .length = remembers ? cfg->sequence_length : 0, .burn = remembers ? cfg->burn_in : 0};
}

uint32_t dqn_rows(const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const off_policy_form_t form = dqn_form(train, cfg);
    return form.length ? cfg->off.batch_size * form.length : cfg->off.batch_size;
}

/*  The errors of all rows ride on a step's sum, and what their gradients go back through is kept. */
static tt_status_t s_check_sequences(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const off_policy_form_t form = dqn_form(train, cfg);
    if (!form.length)
        return TT_OK;
    if (cfg->off.batch_size > TT_RIDE_MAX / form.length)
        return BAD("algorithm.batch_size",
            "%" PRIu32 " sequences of algorithm.sequence_length %" PRIu32 " (%s) are more than %d steps",
            cfg->off.batch_size, form.length, tt_config_origin(config, "algorithm.sequence_length"), TT_RIDE_MAX);
    return common_check_sequences(config, train,
        (common_sequences_t){.sequences = cfg->off.batch_size,
            .steps = form.length,
            .steps_key = "algorithm.sequence_length",
            .towers = 1});
}

tt_status_t dqn_check(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    TT_TRY(s_check_sequences(config, train, cfg));
    TT_TRY(off_policy_check(config, train, &cfg->off, dqn_form(train, cfg)));
    TT_TRY(s_check_quantiles(config, cfg));
    TT_TRY(s_check_atoms(config, cfg));
    TT_TRY(s_check_epsilon(config, train, cfg));
    return s_check_priorities(config, train, cfg);
}

/*  Of a row that is trained on: the objective's stages; of sequences its own, and the walks' through all their frames, shared out. */
static uint32_t s_forwards(const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const off_policy_form_t form = dqn_form(train, cfg);
    const uint32_t frames = form.burn + form.length + cfg->off.n_step, of_set_0 = cfg->double_q ? frames : form.burn;
    if (!form.length)
        return cfg->double_q ? 3 : 2; /* dqn_objective */
    return (form.length + frames + of_set_0 + form.length / 2) / form.length;
}

/* ---- what the rest of the system is told ---------------------------------------------------------------------------- */

void dqn_shape(const tt_train_cfg_t *train, const dqn_cfg_t *cfg, tt_algorithm_shape_t *out)
{
    const uint64_t end = train->stop.env_steps;
    out->actor = (tt_actor_t){.kind = TT_ACT_ARGMAX,
        .epsilon = dqn_epsilon_start(cfg),
        .epsilon_end = dqn_epsilon_end(cfg),
        .epsilon_rows = cfg->epsilon_steps ? cfg->epsilon_steps : end / 10,
        .epsilon_power = cfg->epsilon_power,
        .random_rows = cfg->off.learning_starts,
        .noisy = cfg->noisy ? cfg->noisy_sigma : 0,
        .quantiles = cfg->quantiles,
        .atoms = cfg->atoms,
        .v_min = cfg->atoms ? cfg->v_min : 0,
        .v_max = cfg->atoms ? cfg->v_max : 0,
        .dueling = cfg->dueling};
    out->forwards = s_forwards(train, cfg);
    out->feed = off_policy_feed(train, &cfg->off, dqn_form(train, cfg));
    out->feed.alpha = cfg->replay.prioritized ? cfg->replay.alpha : 0;
    out->feed.epsilon = cfg->replay.epsilon;
    out->feed.eta = cfg->replay.eta;
    out->feed.beta = cfg->replay.beta;
    out->feed.beta_end = cfg->replay.beta_end;
    out->feed.beta_rows = cfg->replay.beta_steps ? cfg->replay.beta_steps : end;
    out->feed.priority_delay = cfg->replay.priority_delay;
    out->sets = 2;
    out->ride = cfg->replay.prioritized ? dqn_rows(train, cfg) : 0;
}

/*  Rows that were inserted when the steps before this update's were made: the first end of a batch at which as many steps were
 *  owed as at the end of the last batch. 0: there were none. */
static uint64_t s_rows_before(const tt_train_cfg_t *train, const dqn_cfg_t *cfg, uint64_t rows)
{
    const uint64_t batch = off_policy_batch(train), before = rows > batch ? rows - batch : 0;
    const uint64_t over = before > cfg->off.learning_starts ? before - cfg->off.learning_starts : 0;
    const uint64_t times = over / cfg->off.train_every;
    const uint64_t least = cfg->off.learning_starts + times * cfg->off.train_every;
    return times ? (least + batch - 1) / batch * batch : 0;
}

bool dqn_follows(const tt_train_cfg_t *train, const dqn_cfg_t *cfg, const tt_at_t *at)
{
    return at->step == 0 && at->rows / cfg->target_every > s_rows_before(train, cfg, at->rows) / cfg->target_every;
}
