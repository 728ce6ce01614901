/*  Any text as an encoder: refused, or layers that common/nn checks, and refuses or not. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/encoder.h"
#include "common/job/fit.h"
#include "common/nn/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_train_cfg_t cfg = {.num_envs = 1,
        .num_steps = 1,
        .space = {.obs = "{at: float32[2], image: uint8[12, 12, 3], pick: multi_discrete(3, 90)}",
            .action = "discrete(2)",
            .divisor = 255}};
    if (size >= sizeof cfg.network.encoder)
        return 0;
    memcpy(cfg.network.encoder, data, size);
    tt_columns_t *columns = NULL;
    const char *key;
    tt_status_t status = tt_train_columns(&columns, &cfg);
    TT_CHECK(status == TT_OK);
    const bool known = tt_encoder_check(&cfg, columns, &key) == TT_OK;
    const tt_net_spec_t net = tt_train_net(&cfg, columns);
    TT_CHECK(known == (net.towers > 0));
    if (known && tt_spec_check(&net) == TT_OK)
        TT_CHECK(tt_net_param_count(&net) > 0 && tt_net_row_bytes(&net) == columns->row);
    tt_columns_destroy(&columns);
    return 0;
}
