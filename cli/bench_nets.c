#include "cli/bench_nets.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/job/fit.h"
#include "learner/algorithms/twin.h"

/*  What a known encoder is fed with. */
static const struct {
    const char *name, *obs;
    uint32_t divisor;
} s_nets[] = {
    {"nature", "uint8[84, 84, 4]", 255}, {"impala", "uint8[84, 84, 4]", 255}, {"minatar", "bool[10, 10, 4]", 1}};

/*  As a job has it. */
static tt_status_t s_fill(size_t i, tt_train_cfg_t *cfg, tt_net_spec_t *spec)
{
    tt_columns_t *columns = NULL;
    snprintf(cfg->network.encoder, sizeof cfg->network.encoder, "%s", s_nets[i].name);
    snprintf(cfg->space.obs, sizeof cfg->space.obs, "%s", s_nets[i].obs);
    cfg->space.divisor = s_nets[i].divisor;
    const tt_status_t status = tt_train_columns(&columns, cfg);
    if (status == TT_OK)
        *spec = tt_train_net(cfg, columns);
    tt_columns_destroy(&columns);
    return status;
}

static tt_status_t s_find(const char *name, tt_train_cfg_t *cfg, tt_net_spec_t *spec)
{
    for (size_t i = 0; i < TT_COUNT(s_nets); i++)
        if (strcmp(s_nets[i].name, name) == 0)
            return s_fill(i, cfg, spec);
    return tt_err(TT_USAGE, "--net: no network is called '%s'; there are nature, impala and minatar", name);
}

tt_status_t bench_net(const char *name, uint32_t out, tt_net_spec_t *spec)
{
    tt_train_cfg_t *cfg = tt_new0(sizeof *cfg);
    snprintf(cfg->space.action, sizeof cfg->space.action, "discrete(%u)", out);
    cfg->network.shared = true;
    const tt_status_t status = s_find(name, cfg, spec);
    free(cfg);
    return status;
}

tt_status_t bench_twin_net(const char *name, tt_act_t kind, const uint32_t hidden[2], uint32_t out, tt_net_spec_t *spec)
{
    tt_train_cfg_t *cfg = tt_new0(sizeof *cfg);
    snprintf(cfg->space.action, sizeof cfg->space.action, "float32[%u]", out);
    cfg->actor = (tt_actor_t){.kind = (int)kind, .squash = true, .state_std = kind == TT_ACT_SQUASHED};
    snprintf(cfg->actor.groups, sizeof cfg->actor.groups, "%s", TWIN_GROUPS_TEXT);
    cfg->network.hidden.count = 2;
    memcpy(cfg->network.hidden.at, hidden, 2 * sizeof *hidden);
    cfg->network.activation = TT_ACT_RELU;
    const tt_status_t status = s_find(name, cfg, spec);
    free(cfg);
    return status;
}

void *bench_net_rows(const tt_net_spec_t *spec, size_t rows)
{
    const bool bits = spec->part[0].divisor == 1.0f;
    const size_t bytes = tt_mul(rows, tt_net_row_bytes(spec));
    uint8_t *memory = tt_new0(bytes);
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t word[4];
        tt_draw(word, 1, TT_STREAM_TEST, 1, i);
        for (size_t k = 0; k < 4 && i + k < bytes; k++)
            memory[i + k] = bits ? (uint8_t)(word[k] % 5 == 0) : (uint8_t)word[k];
    }
    return memory;
}

void bench_net_work(const tt_net_spec_t *spec, double *forward, double *both)
{
    double work = 0, first = 0;
    for (uint32_t t = 0; t < spec->towers; t++) {
        tt_net_spec_t alone = *spec; /* the first layer of each tower that reads the observation */
        alone.tower[t].layers = 1;
        work += (double)tt_net_tower_work(spec, t);
        if (spec->tower[t].kind == TT_TOWER_ENCODER)
            first += (double)tt_net_tower_work(&alone, t);
        else if (spec->tower[t].from == 0)
            first += (double)spec->obs * (spec->tower[t].hidden_count ? spec->tower[t].hidden[0] : spec->tower[t].out);
    }
    *forward = work;
    *both = 3.0 * work - first;
}

/*  Multiply-adds of its first layer. */
static double s_first_work(const tt_net_spec_t *spec, uint32_t t)
{
    tt_net_spec_t alone = *spec;
    alone.tower[t].layers = 1;
    if (alone.tower[t].kind == TT_TOWER_MLP) {
        alone.tower[t].hidden_count = 1;
        alone.tower[t].out = 0;
    }
    return (double)tt_net_tower_work(&alone, t);
}

/*  Of a stage, what a tower is of: what is read first needs no gradient, nor does the action of a critic that is trained; of one that is
 *  gone through the action's inputs alone do. */
static double s_tower_work(const tt_net_spec_t *spec, uint32_t t, const tt_objective_stage_t *stage)
{
    const tt_tower_t *tower = &spec->tower[t];
    const double work = (double)tt_net_tower_work(spec, t), first = s_first_work(spec, t);
    const double action = tower->action ? (double)spec->action * tower->hidden[0] : 0;
    if (stage->grad)
        return 3 * work - (tower->from ? action : first);
    return stage->through && tower->action ? 2 * work - (first - action) : work;
}

/*  A trunk that stages of one view read is computed once. */
double bench_objective_work(const tt_net_spec_t *spec, const tt_objective_t *objective)
{
    uint32_t seen[TT_FRAMES][TT_SETS_MAX] = {0};
    double work = 0;
    for (uint32_t s = 0; s < objective->stages; s++) {
        const tt_objective_stage_t *stage = &objective->stage[s];
        for (uint32_t next = stage->tower + 1u; next; next = spec->tower[next - 1].from) {
            uint32_t *towers = &seen[stage->frame][stage->set];
            work += *towers >> (next - 1) & 1 ? 0 : s_tower_work(spec, next - 1, stage);
            *towers |= 1u << (next - 1);
        }
    }
    return work;
}
