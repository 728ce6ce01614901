#include "collector/checkpoint.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/of_train.h"
#include "common/nn/safetensors.h"

static bool s_is_weight(const char *name)
{
    const size_t length = strlen(name);
    return length > 7 && strcmp(name + length - 7, ".weight") == 0;
}

/*  [out][in] in the file, [in][out] here. The data may lie unaligned. */
static void s_copy(float *to, const tt_tensor_t *tensor, const tt_st_array_t *array)
{
    const size_t rows = tensor->rows, cols = tensor->cols;
    if (!s_is_weight(tensor->name)) {
        memcpy(to, array->data, rows * cols * sizeof *to);
        return;
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            memcpy(&to[r * cols + c], (const float *)array->data + c * rows + r, sizeof *to);
}

static tt_status_t s_tensor(const tt_st_t *file, const tt_tensor_t *tensor, float *params)
{
    const tt_st_array_t *array = tt_st_find(file, tensor->name);
    const bool needed = strncmp(tensor->name, "critic.", 7) != 0;
    if (!array && !needed)
        return TT_OK;
    if (!array)
        return tt_err(TT_DATA, "tensor %s is missing", tensor->name);
    if (array->type != TT_ST_F32 || array->bytes != (size_t)tensor->rows * tensor->cols * sizeof(float))
        return tt_err(TT_DATA, "tensor %s is not %u x %u float32", tensor->name, tensor->cols, tensor->rows);
    s_copy(params + tensor->offset, tensor, array);
    return TT_OK;
}

static tt_status_t s_weights(checkpoint_t *self, const tt_st_t *file)
{
    const tt_net_spec_t spec = tt_net_spec_of_train(&self->cfg);
    TT_TRY(tt_device_open(&self->device, "cpu", 0));
    TT_TRY(tt_net_new(&self->net, self->device, &spec, 1));
    size_t count;
    const tt_tensor_t *tensor = tt_net_tensors(self->net, &count);
    float *params = tt_array0(tt_net_param_count(&spec), sizeof *params);
    tt_status_t status = TT_OK;
    for (size_t i = 0; status == TT_OK && i < count; i++)
        status = s_tensor(file, &tensor[i], params);
    if (status == TT_OK)
        status = tt_net_put(self->net, params);
    free(params);
    return status;
}

static tt_status_t s_norm(checkpoint_t *self, const tt_st_t *file)
{
    char name[96];
    snprintf(name, sizeof name, "tutti.version.%" PRIu64 ".norm", self->update);
    const tt_st_array_t *array = tt_st_find(file, name);
    const size_t count = tt_norm_block_count(self->cfg.space.obs);
    if (!array || array->type != TT_ST_F64 || array->bytes != count * sizeof(double))
        return tt_err(TT_DATA, "%s is missing or of another size: the observations' normaliser", name);
    double *block = tt_array0(count, sizeof *block);
    memcpy(block, array->data, array->bytes);
    self->norm = tt_norm_new(self->cfg.space.obs);
    const tt_status_t status = tt_norm_load(self->norm, block, count);
    free(block);
    return status;
}

static tt_status_t s_read(checkpoint_t *self, const tt_st_t *file)
{
    const char *format = tt_st_meta(file, "format"), *config = tt_st_meta(file, "config");
    const tt_st_array_t *update = tt_st_find(file, "tutti.update");
    if (!format || strncmp(format, "tutti-", 6) != 0 || !config || !update || update->type != TT_ST_I64 ||
        update->bytes != sizeof self->update)
        return tt_err(TT_DATA, "safetensors, but not a checkpoint of tutti");
    memcpy(&self->update, update->data, sizeof self->update);
    TT_TRY(tt_train_parse(&self->cfg, config, strlen(config)));
    TT_TRY(s_weights(self, file));
    return self->cfg.normalize.obs ? s_norm(self, file) : TT_OK;
}

tt_status_t checkpoint_open(checkpoint_t *self, const char *path)
{
    *self = (checkpoint_t){0};
    tt_st_t *file;
    TT_TRY(tt_st_read(&file, path));
    const tt_status_t status = s_read(self, file);
    tt_st_destroy(&file);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "%s", path);
}

void checkpoint_close(checkpoint_t *self)
{
    tt_norm_destroy(&self->norm);
    tt_net_destroy(&self->net);
    tt_device_close(&self->device);
}
