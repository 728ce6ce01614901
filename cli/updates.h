/*  updates - what stop.env_steps comes to before a run begins: how many updates, and whether it is any.
 *
 *  A run is over when its batches come to so many steps, and the last one is not trained on.
 *
 *  Threads: pure, but for what is printed. */
#pragma once
#include <stdio.h>
#include "common/config/train.h"

/*  Updates of a run that ends by stop.env_steps; without that rule there is no such number, and it is 0. */
uint64_t updates_of(const tt_train_cfg_t *train);

/*  "<who>: nothing will be trained: ...", if that is so. */
void updates_warn(FILE *out, const char *who, const tt_train_cfg_t *train);

/*  For `check`: "#   updates      781: ...". */
void updates_print(FILE *out, const tt_train_cfg_t *train);
