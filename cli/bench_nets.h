/*  bench_nets - known networks for pictures, as `tutti bench kernels --net` measures them, and the work of networks.
 *
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"

/*  An actor with `out` outputs and a critic, both on one encoder: of Nature's DQN (Mnih et al. 2015) or IMPALA's deep network (Espeholt et
 *  al. 2018) on 84 x 84 x 4 bytes, or MinAtar's (Young and Tian 2019) on 10 x 10 x 4 bits. TT_USAGE: none is called so. */
tt_status_t bench_net(const char *name, uint32_t out, tt_net_spec_t *spec);
/*  An observation: random bytes, for bits a fifth of them 1; rows of tt_net_row_bytes. free() it. */
void *bench_net_rows(const tt_net_spec_t *spec, size_t rows);
/*  Multiply-adds of a row: forward, and forward with both gradients (the first layer of each tower that reads the observation needs none
 *  of its input's). */
void bench_net_work(const tt_net_spec_t *spec, double *forward, double *both);
/*  The same of an objective: forward in each stage, both gradients where it is trained, and that of its inputs where one goes through it to
 *  the action. All of its towers are MLPs that read the observation. */
double bench_objective_work(const tt_net_spec_t *spec, const tt_objective_t *objective);
