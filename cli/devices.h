/*  devices - what of a config's devices this machine lacks: no fault of the config, which may be for another one.
 *
 *  Threads: main thread; a card is opened and closed. */
#pragma once
#include <jansson.h>
#include "common/config/train.h"

/*  A list of sentences, "learner.device: ...", empty where a run here would find what it asks for. New. */
json_t *devices_lacking(const tt_train_cfg_t *train);
