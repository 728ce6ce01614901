#include "learner/algorithm.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ALGORITHM(name) extern const tt_algorithm_t tt_algorithm_##name;
#include "learner/algorithms/algorithms.def"
#undef ALGORITHM

static const tt_algorithm_t *const s_algorithms[] = {
#define ALGORITHM(name) &tt_algorithm_##name,
#include "learner/algorithms/algorithms.def"
#undef ALGORITHM
};

const tt_algorithm_t *const *tt_algorithms(size_t *count)
{
    *count = TT_COUNT(s_algorithms);
    return s_algorithms;
}

/*  Algorithms of other libraries, and which of ours is nearest in kind. A word that is ours under another name is another matter
 *  (common/config/synonyms.h). */
static const struct {
    const char *theirs, *ours;
} s_kin[] = {
    {"tqc", "sac"},
    {"redq", "sac"},
    {"crossq", "sac"},
    {"trpo", "ppo"},
    {"ppg", "ppo"},
    {"a3c", "a2c"},
    {"acer", "a2c"},
    {"acktr", "a2c"},
    {"reinforce", "a2c"},
    {"vpg", "a2c"},
    {"iqn", "dqn"},
    {"apex", "dqn"},
    {"apex_dqn", "dqn"},
};

static tt_status_t s_unknown(const char *name)
{
    const char *names[TT_COUNT(s_algorithms)];
    for (size_t i = 0; i < TT_COUNT(s_algorithms); i++)
        names[i] = s_algorithms[i]->name;
    for (size_t k = 0; k < TT_COUNT(s_kin); k++)
        for (size_t i = 0; i < TT_COUNT(s_algorithms); i++)
            if (strcasecmp(name, s_kin[k].theirs) == 0 && strcmp(names[i], s_kin[k].ours) == 0)
                return tt_err(TT_NOT_FOUND,
                    "no algorithm '%s'; nearest in kind is '%s', %s; `tutti algorithms` lists them", name, names[i],
                    s_algorithms[i]->summary);
    const char *near = tt_nearest(name, names, TT_COUNT(names));
    return tt_err(TT_NOT_FOUND, "no algorithm '%s'%s%s%s; `tutti algorithms` lists them", name,
        near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

tt_status_t tt_algorithm_find(const tt_algorithm_t **out, const char *name)
{
    for (size_t i = 0; i < TT_COUNT(s_algorithms); i++)
        if (strcmp(name, s_algorithms[i]->name) == 0) {
            *out = s_algorithms[i];
            return TT_OK;
        }
    return s_unknown(name);
}

/*  The tower that is acted by, or whose head that is made of; of a dueling one the advantages, by which choices differ. */
static uint32_t s_acts(const tt_net_spec_t *spec)
{
    const uint32_t actor = tt_net_tower(spec, "actor");
    if (actor < spec->towers)
        return actor;
    uint32_t q = tt_net_tower(spec, "q");
    while (q < spec->towers && tt_tower_is_made(spec->tower[q].kind))
        q = spec->tower[q].advantage;
    return q;
}

tt_status_t tt_algorithm_init(const tt_algorithm_t *algorithm, const void *cfg, tt_net_t *net, tt_stream_t *stream,
    uint64_t seed, tt_progress_t progress)
{
    float gain[TT_TOWERS_MAX + 1]; /* one more: a network with neither */
    for (size_t t = 0; t < TT_COUNT(gain); t++)
        gain[t] = 1.0f;
    gain[s_acts(tt_net_spec(net))] = algorithm->head_gain(cfg);
    return tt_net_init(net, stream, seed, gain, algorithm->log_std0(cfg), progress);
}

/*  "ppo or a2c or impala". */
static const char *s_who_remembers(char *out, size_t size)
{
    for (size_t i = 0, at = 0; i < TT_COUNT(s_algorithms) && at < size; i++)
        if (s_algorithms[i]->sequences)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? " or " : "", s_algorithms[i]->name);
    return out;
}

tt_status_t tt_algorithm_check(
    const tt_algorithm_t *self, const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg)
{
    char who[128] = "";
    if (train->network.rnn != TT_RNN_NONE && !self->sequences)
        return tt_err(TT_CONFIG,
            "%s: network.rnn: %s trains networks that remember nothing: set it to none, or algorithm.name to %s",
            tt_config_origin(config, "network.rnn"), self->name, s_who_remembers(who, sizeof who));
    return self->check ? self->check(config, train, cfg) : TT_OK;
}

tt_algorithm_shape_t tt_algorithm_shape(const tt_algorithm_t *self, const tt_train_cfg_t *train, const void *cfg)
{
    tt_algorithm_shape_t shape = {0};
    if (self->shape)
        self->shape(train, cfg, &shape);
    return shape;
}
