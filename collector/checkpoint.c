#include "collector/checkpoint.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/encoder.h"
#include "common/job/fit.h"
#include "common/snapshot/snapshot.h"

static tt_status_t s_weights(checkpoint_t *self, const tt_st_t *file, const char *device)
{
    const char *key;
    const tt_status_t known = tt_encoder_check(&self->cfg, self->columns, &key);
    if (known != TT_OK)
        return tt_err_wrap(known, "%s", key);
    const tt_net_spec_t spec = tt_train_net(&self->cfg, self->columns);
    TT_TRY(tt_inference_new(&self->net, device, 0, &spec));
    size_t count;
    const tt_tensor_t *tensor = tt_net_tensors(tt_inference_net(self->net), &count);
    float *params = tt_array0(tt_net_param_count(&spec), sizeof *params);
    tt_status_t status = tt_snapshot_weights(file, tensor, count, false, params);
    if (status == TT_OK)
        status = tt_inference_put(self->net, params);
    free(params);
    self->critic = tt_snapshot_has_critic(file);
    return status;
}

static tt_status_t s_norm(checkpoint_t *self, const tt_st_t *file)
{
    const tt_st_array_t *array = tt_snapshot_norm(file, self->update);
    const size_t count = tt_norm_block_count(self->columns->scaled);
    if (!array || array->type != TT_ST_F64 || array->bytes != count * sizeof(double))
        return tt_err(
            TT_DATA, "the observations' normaliser of version %" PRIu64 " is missing or of another size", self->update);
    double *block = tt_array0(count, sizeof *block);
    memcpy(block, array->data, array->bytes);
    self->norm = tt_norm_new(self->columns->scaled);
    const tt_status_t status = tt_norm_load(self->norm, block, count);
    free(block);
    return status;
}

static tt_status_t s_read(checkpoint_t *self, const tt_st_t *file, const char *device)
{
    const char *config = tt_snapshot_config(file);
    if (!config)
        return tt_err(TT_DATA, "no config in its metadata: not a checkpoint of tutti");
    TT_TRY(tt_snapshot_update(file, &self->update));
    TT_TRY(tt_train_parse(&self->cfg, config, strlen(config)));
    TT_TRY(tt_train_columns(&self->columns, &self->cfg));
    TT_TRY(s_weights(self, file, device));
    return self->cfg.normalize.obs ? s_norm(self, file) : TT_OK;
}

tt_status_t checkpoint_open(checkpoint_t *self, const char *path, const char *device)
{
    *self = (checkpoint_t){0};
    tt_st_t *file;
    TT_TRY(tt_snapshot_open_file(&file, path));
    const tt_status_t status = s_read(self, file, device);
    tt_st_destroy(&file);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "%s", path);
}

void checkpoint_close(checkpoint_t *self)
{
    tt_norm_destroy(&self->norm);
    tt_inference_destroy(&self->net);
    tt_columns_destroy(&self->columns);
}
