/*  encoder - the key network.encoder: layers in words, and what of an observation they read.
 *
 *      list     = layer {"," layer}
 *      layer    = "conv" CHANNELS HxW ["/" STRIDE] ["pad" N] ["relu" | "tanh"]
 *               | ("max_pool" | "avg_pool") HxW ["/" STRIDE] ["pad" N]
 *               | "dense" UNITS ["relu" | "tanh"] | "layer_norm" ["relu" | "tanh"] | "relu" | "tanh"
 *               | "residual" [TIMES] "(" list ")" | "concat" KEY | "embed" KEY UNITS | the name of a known encoder
 *
 *  STRIDE and N are one number or HxW. What a layer does stands at tt_layer_kind_t; whether it fits, common/nn says.
 *
 *  The picture: the part of the observation that network.picture names; else the only one of bytes with two or three dimensions.
 *  Two dimensions are one channel; of three the first are the channels where it is smaller than the last and not larger than the
 *  second, else the last are. Where observations are stacked that is a frame's, and the channels of all frames come together, those of
 *  the oldest first: 4 frames of 84 x 84 are 4 channels, and of 84 x 84 x 3 they are 12. A list without conv and pooling, where no
 *  picture is named, reads the whole observation as one vector.
 *  One that has `embed` before any layer but concat begins with nothing: what it embeds and appends is all that it knows.
 *  Where a list reads a picture, or begins with nothing, and has no concat, all other parts are put behind it, in their order.
 *
 *  Threads: pure. */
#pragma once
#include "common/config/train.h"
#include "common/nn/nn.h"
#include "common/rl/columns.h"

/*  Is there one at all? */
bool tt_has_encoder(const tt_train_cfg_t *cfg);
/*  Put it before the towers of a network (tt_net_put_encoder) whose parts are the observation's columns. TT_INVALID: the words are
 *  none of the above (the text says which, and what is possible). */
tt_status_t tt_encoder_put(const tt_train_cfg_t *cfg, const tt_columns_t *columns, tt_net_spec_t *spec);
/*  Would that do? Also where there is none. key: of the config, which is at fault. */
tt_status_t tt_encoder_check(const tt_train_cfg_t *cfg, const tt_columns_t *columns, const char **key);
/*  The number of the picture's column; columns->obs_count where the whole observation is read. TT_INVALID as above, of
 *  network.picture too. */
tt_status_t tt_encoder_picture(const tt_train_cfg_t *cfg, const tt_columns_t *columns, uint32_t *column);
