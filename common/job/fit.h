/*  fit - what a job's settings come to in bytes, and whether everybody can hold it.
 *
 *  A config whose every key is in range may still make a network, a batch or a snapshot that no frame carries. `check` and
 *  `run` ask here before anything starts, and so does each role with the config it was welcomed with: what the one accepts
 *  the other does not refuse.
 *
 *  Threads: pure. */
#pragma once
#include "common/config/train.h"
#include "common/nn/nn.h"
#include "common/wire/segment.h"

/*  What a row of this job's experience consists of, and what is carried beside it. Caller owns. TT_CONFIG: the spaces are none, or too large. */
tt_status_t tt_train_columns(tt_columns_t **self_p, const tt_train_cfg_t *cfg);
/*  The network that the settings describe, its first head as wide as what there is to choose from; collectors, learners and `eval` must
 *  agree. Without a tower where tt_encoder_check refuses the encoder, or actor.groups
 *  are none of it. */
tt_net_spec_t tt_train_net(const tt_train_cfg_t *cfg, const tt_columns_t *columns);
/*  Could `words` be its encoder where nobody says otherwise: the observation has a picture of bytes, one, and it is large enough? */
bool tt_train_could_see(const tt_train_cfg_t *cfg, const tt_columns_t *columns, const char *words);
/*  The parts of a network's observation: these columns, where not all of them are read as floats, or `named`: each is to be one. */
void tt_train_parts(tt_net_spec_t *spec, const tt_columns_t *columns, bool named);
/*  Envs that a segment holds at most: so many that it is not over TT_SEGMENT_MAX, the same for every collector; 0: not even one.
 *  TT_SEGMENT_ENVS in the environment lowers it, and what is trained stays the same. */
uint32_t tt_train_segment_envs(const tt_train_cfg_t *cfg, const tt_columns_t *columns);
/*  Bytes of a saved env as segments and snapshots hold it: the env's own, and what the policy carries; 0: it cannot be saved. */
uint32_t tt_train_state_bytes(const tt_train_cfg_t *cfg, const tt_columns_t *columns);
/*  The largest segment that a collector sends, without finals: the whole batch where it can be one. The columns are borrowed. */
tt_segment_shape_t tt_train_segment(const tt_train_cfg_t *cfg, const tt_columns_t *columns);

/*  TT_CONFIG: with the origin of the key at fault (config NULL: its name alone), and what to lower. cfg has passed
 *  tt_train_check and knows its space. */
tt_status_t tt_train_fit(const tt_config_t *config, const tt_train_cfg_t *cfg);
