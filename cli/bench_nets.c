#include "cli/bench_nets.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/job/fit.h"

/*  What a known encoder is fed with. */
static const struct {
    const char *name, *obs;
    uint32_t divisor;
} s_nets[] = {
    {"nature", "uint8[84, 84, 4]", 255}, {"impala", "uint8[84, 84, 4]", 255}, {"minatar", "bool[10, 10, 4]", 1}};

/*  As a job has it. */
static tt_status_t s_fill(size_t i, uint32_t out, tt_net_spec_t *spec)
{
    tt_train_cfg_t *cfg = tt_new0(sizeof *cfg);
    tt_columns_t *columns = NULL;
    snprintf(cfg->network.encoder, sizeof cfg->network.encoder, "%s", s_nets[i].name);
    snprintf(cfg->space.obs, sizeof cfg->space.obs, "%s", s_nets[i].obs);
    snprintf(cfg->space.action, sizeof cfg->space.action, "discrete(%u)", out);
    cfg->space.divisor = s_nets[i].divisor;
    cfg->network.shared = true;
    const tt_status_t status = tt_train_columns(&columns, cfg);
    if (status == TT_OK)
        *spec = tt_train_net(cfg, columns);
    tt_columns_destroy(&columns);
    free(cfg);
    return status;
}

tt_status_t bench_net(const char *name, uint32_t out, tt_net_spec_t *spec)
{
    for (size_t i = 0; i < TT_COUNT(s_nets); i++)
        if (strcmp(s_nets[i].name, name) == 0)
            return s_fill(i, out, spec);
    return tt_err(TT_USAGE, "--net: no network is called '%s'; there are nature, impala and minatar", name);
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

/*  Of its first layer's inputs a trained stage needs no gradient, and one that is gone through needs the action's alone. */
static double s_stage_work(const tt_net_spec_t *spec, const tt_stage_t *stage)
{
    const tt_tower_t *tower = &spec->tower[stage->tower];
    TT_CHECK(tower->kind == TT_TOWER_MLP && tower->from == 0 && tower->hidden_count);
    const double work = (double)tt_net_tower_work(spec, stage->tower), units = tower->hidden[0];
    const uint32_t action = tower->action ? spec->action : 0;
    return stage->grad ? 3 * work - (spec->obs + action) * units : stage->through ? 2 * work - spec->obs * units : work;
}

double bench_objective_work(const tt_net_spec_t *spec, const tt_objective_t *objective)
{
    double work = 0;
    for (uint32_t s = 0; s < objective->stages; s++)
        work += s_stage_work(spec, &objective->stage[s]);
    return work;
}
