/*  bench_nets - known networks for pictures, as `tutti bench kernels --net` measures them, and the work of networks.
 *
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"
#include "common/rl/schedule.h"

/*  An actor with `out` outputs and a critic, both on one encoder: of Nature's DQN (Mnih et al. 2015) or IMPALA's deep network (Espeholt et
 *  al. 2018) on 84 x 84 x 4 bytes, or MinAtar's (Young and Tian 2019) on 10 x 10 x 4 bits. TT_USAGE: none is called so. */
tt_status_t bench_net(const char *name, uint32_t out, tt_net_spec_t *spec);
/*  The same with an actor of an action of `out` numbers (TT_ACT_SQUASHED: with deviations; TT_ACT_MEAN: without) and two critics, of two hidden
 *  layers each; an encoder before the actor, one before the critics. */
tt_status_t bench_twin_net(
    const char *name, tt_act_t kind, const uint32_t hidden[2], uint32_t out, tt_net_spec_t *spec);
/*  An observation: random bytes, for bits a fifth of them 1; rows of tt_net_row_bytes. free() it. */
void *bench_net_rows(const tt_net_spec_t *spec, size_t rows);
/*  Multiply-adds of a row: forward, and forward with both gradients (the first layer of each tower that reads the observation needs none
 *  of its input's). */
void bench_net_work(const tt_net_spec_t *spec, double *forward, double *both);
/*  The same of an objective: forward in each stage, with the trunks that it reads, both gradients where it is trained, and that of the
 *  action where one goes through it. Its towers are MLPs, and encoders before them. */
double bench_objective_work(const tt_net_spec_t *spec, const tt_objective_t *objective);
