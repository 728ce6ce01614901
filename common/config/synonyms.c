#include "common/config/synonyms.h"
#include "common/config/parts.h"
#include <ctype.h>

static const tt_synonym_t s_synonyms[] = {
    /* what is trained, and for how long */
    {"env_id", "env", NULL},
    {"env_name", "env", NULL},
    {"gym_id", "env", NULL},
    {"environment", "env", NULL},
    {"env_kwargs", "env.args", "env: {id: ENV, args: {KEY: VALUE}}"},
    {"env_config", "env.args", "env: {id: ENV, args: {KEY: VALUE}}"},
    {"env_wrapper", "env.wrappers", "env: {id: gym:ID, wrappers: [NAME]}"},
    {"n_stack", "env.stack", "env: {id: ENV, stack: 4}"},
    {"framestack", "env.stack", "env: {id: ENV, stack: 4}"},
    {"env_framestack", "env.stack", "env: {id: ENV, stack: 4}"},
    {"frame_stack", "env.stack", "env: {id: ENV, stack: 4}"},
    {"exp_name", "name", NULL},
    {"experiment", "name", NULL},
    {"random_seed", "seed", NULL},
    {"algo", "algorithm.name", NULL},
    {"total_timesteps", "stop.env_steps", NULL},
    {"n_timesteps", "stop.env_steps", NULL},
    {"timesteps_total", "stop.env_steps", NULL},
    {"num_env_steps_sampled_lifetime", "stop.env_steps", NULL},
    {"train_for_env_steps", "stop.env_steps", NULL},
    {"max_env_step", "stop.env_steps", NULL},
    {"train_for_seconds", "stop.wall_s", NULL},
    {"time_total_s", "stop.wall_s", NULL},
    {"stop_value", "stop.return_mean", "of the last 100 training episodes"},
    {"episode_reward_mean", "stop.return_mean", "of the last 100 training episodes"},
    {"episode_return_mean", "stop.return_mean", "of the last 100 training episodes"},
    {"save_every_sec", "checkpoint.every_s", NULL},
    {"checkpoint_freq", "checkpoint.every_s", "in seconds, not in updates"},
    {"save_freq", "checkpoint.every_s", "in seconds, not in steps"},
    {"save_replay_buffer", "replay.save", NULL},
    {"store_buffer_in_checkpoints", "replay.save", NULL},
    {"keep_checkpoints", "checkpoint.keep", NULL},

    /* evaluation beside training */
    {"eval_freq", "eval.every", "in env steps of all environments together"},
    {"eval_every", "eval.every", "in env steps of all environments together"},
    {"evaluation_interval", "eval.every", "in env steps, not in updates"},
    {"n_eval_episodes", "eval.episodes", NULL},
    {"n_evaluator_episode", "eval.episodes", NULL},
    {"evaluation_duration", "eval.episodes", NULL},
    {"eval_seed", "eval.seed", NULL},
    {"evaluator_env_num", NULL, "as many environments as eval.episodes play side by side; leave it away"},
    {"evaluation_num_workers", NULL, "the leading learner evaluates, in a thread of its own; leave it away"},
    {"evaluation_num_env_runners", NULL, "the leading learner evaluates, in a thread of its own; leave it away"},

    /* how much is collected, and by whom */
    {"n_envs", "num_envs", "in all collectors together"},
    {"env_num", "num_envs", "in all collectors together"},
    {"collector_env_num", "num_envs", "in all collectors together"},
    {"num_envs_per_worker", "num_envs", "in all collectors together: times the workers"},
    {"num_envs_per_env_runner", "num_envs", "in all collectors together: times the env runners"},
    {"n_steps", "num_steps", NULL},
    {"rollout_fragment_length", "num_steps", NULL},
    {"rollout", "num_steps", NULL},
    {"n_sample", "num_steps", "of each env: n_sample / num_envs"},
    {"train_batch_size", "num_steps", "of each env: train_batch_size / num_envs"},
    {"train_batch_size_per_learner", "num_steps", "of each env: a batch of all learners has num_envs * num_steps rows"},
    {"num_workers", "collector.replicas", NULL},
    {"num_rollout_workers", "collector.replicas", NULL},
    {"num_env_runners", "collector.replicas", NULL},
    {"collector_num", "collector.replicas", NULL},
    {"num_learners", "learner.replicas", NULL},
    {"num_learner_workers", "learner.replicas", NULL},
    {"multi_gpu", "learner.replicas", "processes; learner.device says on what each computes"},
    {"async_rl", "lag", "0 lock-step, 1 pipelined, more: asynchronous"},
    {"max_policy_lag", "lag",
        "in updates, not in optimiser steps; older experience is never made, so none is thrown away"},

    /* the step */
    {"lr", "algorithm.learning_rate", NULL},
    {"sigma0", "algorithm.noisy_sigma", NULL},
    {"anneal_lr", "algorithm.anneal", "linear for true, none for false"},
    {"lr_schedule", "algorithm.anneal", "none or linear; nothing adapts to the KL divergence"},
    {"discount", "algorithm.gamma", NULL},
    {"discount_factor", "algorithm.gamma", NULL},
    {"lambda", "algorithm.gae_lambda", NULL},
    {"lambda_", "algorithm.gae_lambda", NULL},
    {"n_epochs", "algorithm.epochs", NULL},
    {"update_epochs", "algorithm.epochs", NULL},
    {"num_epochs", "algorithm.epochs", NULL},
    {"num_sgd_iter", "algorithm.epochs", NULL},
    {"epoch_per_collect", "algorithm.epochs", NULL},
    {"num_minibatches", "algorithm.minibatches", NULL},
    {"num_batches_per_epoch", "algorithm.minibatches", NULL},
    {"batch_size", "algorithm.minibatch_size", "rows of one optimiser step; the whole batch has num_envs * num_steps"},
    {"sgd_minibatch_size", "algorithm.minibatch_size", NULL},
    {"clip_range", "algorithm.clip", NULL},
    {"clip_coef", "algorithm.clip", NULL},
    {"clip_param", "algorithm.clip", NULL},
    {"clip_ratio", "algorithm.clip", NULL},
    {"ppo_clip_ratio", "algorithm.clip", "from 1 - clip to 1 + clip, where Sample Factory has 1 / (1 + clip)"},
    {"clip_vloss", "algorithm.clip_value", NULL},
    {"clip_range_vf", "algorithm.clip_value", "true or false; how far a value may go is algorithm.clip"},
    {"vf_clip_param", "algorithm.clip_value", "true or false; how far a value may go is algorithm.clip"},
    {"ppo_clip_value", "algorithm.clip_value", "true or false; how far a value may go is algorithm.clip"},
    {"ent_coef", "algorithm.entropy_coef", NULL},
    {"entropy_coeff", "algorithm.entropy_coef", NULL},
    {"entropy_weight", "algorithm.entropy_coef", NULL},
    {"entropy", "algorithm.entropy_coef", NULL},
    {"exploration_loss_coeff", "algorithm.entropy_coef", NULL},
    {"vf_coef", "algorithm.value_coef",
        "of half the squared error, as CleanRL: twice the number that Stable-Baselines3 has"},
    {"vf_loss_coeff", "algorithm.value_coef", "of half the squared error: twice RLlib's number"},
    {"value_weight", "algorithm.value_coef", "of half the squared error, as DI-engine"},
    {"value_loss_coeff", "algorithm.value_coef", "of half the squared error: twice Sample Factory's number"},
    {"grad_clip", "algorithm.max_grad_norm", "of the norm"},
    {"grad_clip_value", "algorithm.max_grad_norm", "of the norm"},
    {"norm_adv", "algorithm.normalize_advantage", NULL},
    {"adv_norm", "algorithm.normalize_advantage", NULL},
    {"kl_target", "algorithm.target_kl", "ends an update early; there is no penalty on the KL divergence"},
    {"kl_coeff", "algorithm.target_kl", "ends an update early; there is no penalty on the KL divergence"},
    {"adam_epsilon", "algorithm.adam_eps", NULL},
    {"log_std_init", "algorithm.log_std0", NULL},
    {"free_log_std", "algorithm.state_std", "which is its opposite"},
    {"adaptive_stddev", "algorithm.state_std", NULL},
    {"sigma_type", "algorithm.state_std", "true for 'conditioned'"},
    {"initial_stddev", "algorithm.log_std0", "its logarithm"},

    /* steps from a replay */
    {"buffer_size", "replay.capacity", NULL},
    {"replay_buffer_size", "replay.capacity", NULL},
    {"prioritized_replay", "replay.prioritized", NULL},
    {"priority", "replay.prioritized", NULL},
    {"prioritized_replay_alpha", "replay.alpha", NULL},
    {"prioritized_replay_beta", "replay.beta", NULL},
    {"prioritized_replay_eps", "replay.epsilon", NULL},
    {"num_steps_sampled_before_learning_starts", "algorithm.learning_starts", NULL},
    {"train_freq", "algorithm.train_every", "in env steps of all environments together"},
    {"train_frequency", "algorithm.train_every", "in env steps of all environments together"},
    {"update_per_collect", "algorithm.gradient_steps", "for algorithm.train_every env steps"},
    {"target_update_interval", "algorithm.target_every", "in env steps of all environments together"},
    {"target_network_frequency", "algorithm.target_every", "in env steps of all environments together"},
    {"target_network_update_freq", "algorithm.target_every", NULL},
    {"target_update_freq", "algorithm.target_every", "in env steps, not in optimiser steps"},
    {"target_theta", "algorithm.tau", NULL},
    {"polyak", "algorithm.tau", "1 - polyak"},
    {"double_q", "algorithm.double", NULL},
    {"q_lr", "algorithm.critic_learning_rate", NULL},
    {"critic_lr", "algorithm.critic_learning_rate", NULL},
    {"learning_rate_q", "algorithm.critic_learning_rate", NULL},
    {"policy_lr", "algorithm.learning_rate", NULL},
    {"actor_lr", "algorithm.learning_rate", NULL},
    {"learning_rate_policy", "algorithm.learning_rate", NULL},
    {"alpha_lr", "algorithm.learning_rate", "the entropy's weight is trained at the actor's"},
    {"learning_rate_alpha", "algorithm.learning_rate", "the entropy's weight is trained at the actor's"},
    {"initial_alpha", "algorithm.entropy_coef", NULL},
    {"alpha", "algorithm.entropy_coef", "the entropy's weight, which SAC's authors call alpha"},
    {"autotune", "algorithm.tune_entropy", NULL},
    {"auto_alpha", "algorithm.tune_entropy", NULL},
    {"policy_frequency", NULL, "sac's actor takes a step after each of the critics'; leave it away"},
    {"twin_q", NULL, "sac always has two critics; leave it away"},
    {"twin_critic", NULL, "sac always has two critics; leave it away"},
    {"nstep", "algorithm.n_step", NULL},
    {"n_quantiles", "algorithm.quantiles", NULL},
    {"num_quantiles", "algorithm.quantiles", NULL},
    {"exploration_fraction", "algorithm.epsilon_steps", "in env steps: exploration_fraction times stop.env_steps"},
    {"epsilon_timesteps", "algorithm.epsilon_steps", NULL},
    {"squash_output", "algorithm.squash", NULL},
    {"exploration_initial_eps", "algorithm.epsilon_start", NULL},
    {"initial_epsilon", "algorithm.epsilon_start", NULL},
    {"start_e", "algorithm.epsilon_start", NULL},
    {"exploration_final_eps", "algorithm.epsilon_end", NULL},
    {"final_epsilon", "algorithm.epsilon_end", NULL},
    {"end_e", "algorithm.epsilon_end", NULL},

    /* the network, and what it sees */
    {"hidden_sizes", "network.hidden", NULL},
    {"hidden_size", "network.hidden", "a list, as [64, 64]"},
    {"net_arch", "network.hidden", "a list, as [64, 64]: policy and value function have layers of the same shape"},
    {"features_extractor_class", "network.encoder", "nature is Stable-Baselines3's NatureCNN"},
    {"features_extractor_kwargs", "network.encoder", "a list of layers, as [conv 32 8x8 /4 relu, dense 512 relu]"},
    {"share_features_extractor", "network.shared", NULL},
    {"conv_filters", "network.encoder",
        "a list of layers: [16, [8, 8], 4] of RLlib is 'conv 16 8x8 /4 pad N relu', with the padding written out"},
    {"cnn_filter_specifiers", "network.encoder",
        "a list of layers: [16, [8, 8], 4] of RLlib is 'conv 16 8x8 /4 pad N relu', with the padding written out"},
    {"encoder_conv_architecture", "network.encoder",
        "nature for convnet_atari, impala for resnet_impala, or a list of layers"},
    {"encoder_conv_mlp_layers", "network.encoder", "its last layers: dense 512 relu"},
    {"cnn", "network.encoder", "nature, impala, minatar, or a list of layers"},
    {"conv", "network.encoder", "a list of layers, as [conv 32 8x8 /4 relu, dense 512 relu]"},
    {"normalize_images", NULL, "an encoder divides bytes by 255 where the space says 255; leave it away"},
    {"vf_share_layers", "network.shared", NULL},
    {"actor_critic_share_weights", "network.shared", NULL},
    {"share_encoder", "network.shared", NULL},
    {"fcnet_hiddens", "network.hidden", NULL},
    {"encoder_mlp_layers", "network.hidden", NULL},
    {"encoder_hidden_size_list", "network.hidden", "of pictures: network.encoder, a list of layers"},
    {"policy_kwargs", "network.hidden", "and network.activation"},
    {"policy", "network.hidden",
        "and network.activation; for CnnPolicy network.encoder: nature and network.shared: true; for MlpLstmPolicy "
        "network.rnn: lstm"},
    {"lstm", "network.rnn", "lstm for true, none for false"},
    {"gru", "network.rnn", "gru for true, none for false"},
    {"use_rnn", "network.rnn", "lstm or gru for true, none for false"},
    {"use_lstm", "network.rnn", "lstm for true, none for false"},
    {"use_recurrent", "network.rnn", "lstm or gru for true, none for false"},
    {"recurrent", "network.rnn", "lstm or gru for true, none for false"},
    {"rnn_type", "network.rnn", "lstm or gru"},
    {"rnn_hidden_size", "network.rnn_size", NULL},
    {"lstm_cell_size", "network.rnn_size", "with network.rnn: lstm"},
    {"lstm_hidden_size", "network.rnn_size", "with network.rnn: lstm"},
    {"shared_lstm", "network.shared", "true: policy and value function read one network.rnn"},
    {"enable_critic_lstm", "network.shared", "false for true: each has a network.rnn of its own"},
    {"n_lstm_layers", NULL, "network.rnn is one layer; leave it away"},
    {"rnn_num_layers", NULL, "network.rnn is one layer; leave it away"},
    {"max_seq_len", "num_steps", "gradients go back through the steps of a batch, no further"},
    {"hidden_state", NULL, "what a policy with network.rnn carries is kept for each env; leave it away"},
    {"activation_fn", "network.activation", "tanh or relu"},
    {"fcnet_activation", "network.activation", "tanh or relu"},
    {"nonlinearity", "network.activation", "tanh or relu"},
    {"ortho_init", "network.init", "orthogonal for true, uniform for false"},
    {"norm_obs", "normalize.obs", NULL},
    {"normalize_input", "normalize.obs", NULL},
    {"norm_reward", "normalize.reward", NULL},
    {"reward_clip", "normalize.clip_reward", "of normalised rewards"},

    /* what there is not */
    {"device", "learner.device", "collector.device is that of those who play"},
    {"cuda", NULL, "say learner.device: cuda; collector.device: cuda has collectors act on a card, too"},
    {"num_gpus", NULL, "say learner.device: cuda; a learner has one card"},
    {"torch_deterministic", NULL, "every run is deterministic; leave it away"},
    {"framework", NULL, "there is only one; leave it away"},
    {"track", NULL, "metrics.jsonl and event files for TensorBoard are always written; leave it away"},
    {"tensorboard_log", NULL, "event files are always written, into the run's directory; leave it away"},
    {"verbose", NULL, "'tutti run --quiet' says less, TT_LOG more; leave it away"},
    {"capture_video", NULL, "nothing is rendered; leave it away"},
    {"use_sde", NULL, "there is no state-dependent exploration; leave it away"},
    {"use_attention", NULL, "there are no transformers; network.rnn: lstm or gru remembers; leave it away"},
    {"lstm_use_prev_action", NULL, "what is remembered is made of observations alone; leave it away"},
    {"lstm_use_prev_reward", NULL, "what is remembered is made of observations alone; leave it away"},
    {"num_atoms", NULL, "values are expected ones, not distributions; leave it away"},
    {"optimize_memory_usage", NULL, "an observation is stored once; leave it away"},
};

/*  Algorithms of others that are one of ours with other settings. */
static const struct {
    const char *name, *ours;
} s_algorithms[] = {
    {"recurrent_ppo", "ppo with network.rnn: lstm"},
    {"recurrentppo", "ppo with network.rnn: lstm"},
    {"ppo_recurrent", "ppo with network.rnn: lstm"},
    {"ppo_lstm", "ppo with network.rnn: lstm"},
    {"ppo_gru", "ppo with network.rnn: gru"},
    {"ppo_rnn", "ppo with network.rnn: lstm or gru"},
    {"a2c_lstm", "a2c with network.rnn: lstm"},
};

/*  "clip_range" of "algorithm.clip-Range" and of "CLIP_RANGE". */
static bool s_is(const char *leaf, const char *word)
{
    for (; *leaf && *word; leaf++, word++)
        if ((*leaf == '-' ? '_' : tolower((unsigned char)*leaf)) != *word)
            return false;
    return *leaf == *word;
}

const tt_synonym_t *tt_synonym(const char *key)
{
    for (size_t i = 0; i < TT_COUNT(s_synonyms); i++)
        if (s_is(key_leaf(key), s_synonyms[i].word))
            return &s_synonyms[i];
    return NULL;
}

const char *tt_synonym_algorithm(const char *name)
{
    for (size_t i = 0; i < TT_COUNT(s_algorithms); i++)
        if (s_is(name, s_algorithms[i].name))
            return s_algorithms[i].ours;
    return NULL;
}

const tt_synonym_t *tt_synonyms(size_t *count)
{
    *count = TT_COUNT(s_synonyms);
    return s_synonyms;
}
