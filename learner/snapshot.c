#include "learner/snapshot.h"
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/*  What an encode collects: arrays, metadata, and numbers that arrays point to. */
typedef struct {
    tt_st_array_t *array;
    size_t arrays, room;
    tt_st_meta_t meta[8];
    size_t metas;
    int64_t number[12];
    size_t numbers;
    float *weights; /* transposed tensors */
    char texts[4][80];
} draft_t;

static size_t s_type_size(tt_st_type_t type)
{
    return type == TT_ST_U8 ? 1 : type == TT_ST_F64 || type == TT_ST_I64 ? 8 : 4;
}

static void s_array(draft_t *draft, const char *name, tt_st_type_t type, const void *data, uint64_t rows, uint64_t cols)
{
    TT_CHECK(draft->arrays < draft->room);
    tt_st_array_t *array = &draft->array[draft->arrays++];
    *array = (tt_st_array_t){.type = type, .rank = cols ? 2 : 1, .shape = {rows, cols}, .data = data};
    snprintf(array->name, sizeof array->name, "%s", name);
    array->bytes = (size_t)(rows * (cols ? cols : 1)) * s_type_size(type);
}

static void s_number(draft_t *draft, const char *name, uint64_t value)
{
    TT_CHECK(draft->numbers < TT_COUNT(draft->number));
    int64_t *number = &draft->number[draft->numbers++];
    *number = (int64_t)value;
    s_array(draft, name, TT_ST_I64, number, 1, 0);
}

static void s_meta(draft_t *draft, const char *key, const char *value)
{
    TT_CHECK(draft->metas < TT_COUNT(draft->meta));
    tt_st_meta_t *meta = &draft->meta[draft->metas++];
    snprintf(meta->key, sizeof meta->key, "%s", key);
    meta->value = (char *)value; /* only read by the encoder */
}

static bool s_is_weight(const tt_tensor_t *tensor)
{
    const char *dot = strrchr(tensor->name, '.');
    return dot && strcmp(dot, ".weight") == 0;
}

/*  [in][out] here, [out][in] there. */
static void s_transpose(float *out, const float *in, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            out[c * rows + r] = in[r * cols + c];
}

static void s_tensors(draft_t *draft, const snapshot_t *self)
{
    draft->weights = tt_array0(self->param_count, sizeof(float));
    for (size_t i = 0; i < self->tensors; i++) {
        const tt_tensor_t *tensor = &self->tensor[i];
        float *to = draft->weights + tensor->offset;
        if (s_is_weight(tensor)) {
            s_transpose(to, self->params + tensor->offset, tensor->rows, tensor->cols);
            s_array(draft, tensor->name, TT_ST_F32, to, tensor->cols, tensor->rows);
        } else {
            memcpy(to, self->params + tensor->offset, (size_t)tensor->rows * tensor->cols * sizeof(float));
            s_array(draft, tensor->name, TT_ST_F32, to, (uint64_t)tensor->rows * tensor->cols, 0);
        }
    }
}

static void s_versions(draft_t *draft, const snapshot_t *self)
{
    for (size_t i = 0; i < self->versions; i++) {
        const snapshot_version_t *version = &self->version[i];
        char name[96];
        snprintf(name, sizeof name, "tutti.version.%llu.params", (unsigned long long)version->version);
        s_array(draft, name, TT_ST_F32, version->params, self->param_count, 0);
        snprintf(name, sizeof name, "tutti.version.%llu.norm", (unsigned long long)version->version);
        s_array(draft, name, TT_ST_F64, version->norm, self->norm_count, 0);
        snprintf(name, sizeof name, "tutti.version.%llu.reward", (unsigned long long)version->version);
        s_array(draft, name, TT_ST_F64, version->reward, self->reward_count, 0);
    }
}

static void s_metadata(draft_t *draft, const snapshot_t *self)
{
    snprintf(draft->texts[0], sizeof draft->texts[0], "%llu", (unsigned long long)self->update);
    snprintf(draft->texts[1], sizeof draft->texts[1], "%.17g", self->return_mean);
    snapshot_sha256(self->params, self->param_count, draft->texts[2]);
    s_meta(draft, "format", "tutti-1");
    s_meta(draft, "config", self->config);
    s_meta(draft, "env", self->env);
    s_meta(draft, "algorithm", self->algorithm);
    s_meta(draft, "update", draft->texts[0]);
    s_meta(draft, "return_mean", draft->texts[1]);
    s_meta(draft, "weights_sha256", draft->texts[2]);
}

static void s_draft(draft_t *draft, const snapshot_t *self)
{
    *draft = (draft_t){.room = self->tensors + 3 * self->versions + 20};
    draft->array = tt_array0(draft->room, sizeof *draft->array);
    s_tensors(draft, self);
    s_number(draft, "tutti.update", self->update);
    s_number(draft, "tutti.step", self->step);
    s_number(draft, "tutti.steps", self->steps);
    s_number(draft, "tutti.optimizer.step", self->opt_step);
    s_number(draft, "tutti.trained", self->trained);
    s_number(draft, "tutti.lag_max", self->lag_max);
    s_number(draft, "tutti.solved", self->solved);
    s_array(draft, "tutti.best", TT_ST_F64, &self->best, 1, 0);
    if (self->opt_count)
        s_array(draft, "tutti.optimizer.state", TT_ST_F32, self->opt_state, self->opt_count, 0);
    s_versions(draft, self);
    if (self->env_states)
        s_array(draft, "tutti.env_states", TT_ST_U8, self->env_states, self->envs, self->env_bytes);
    if (self->sum) {
        s_number(draft, "tutti.sum.step", self->sum_step);
        s_array(draft, "tutti.sum", TT_ST_F32, self->sum, self->sum_count, 0);
    }
    s_array(draft, "tutti.episodes", TT_ST_F64, self->episodes, self->episodes_count, 0);
    s_array(draft, "tutti.returns", TT_ST_F64, self->returns, self->envs, 0);
    s_metadata(draft, self);
}

static void s_draft_free(draft_t *draft)
{
    free(draft->array);
    free(draft->weights);
}

tt_status_t snapshot_encode(const snapshot_t *self, tt_buf_t *out)
{
    draft_t draft;
    s_draft(&draft, self);
    const tt_status_t status = tt_st_encode(out, draft.array, draft.arrays, draft.meta, draft.metas);
    s_draft_free(&draft);
    return status;
}

tt_status_t snapshot_write(const snapshot_t *self, const char *path)
{
    draft_t draft;
    s_draft(&draft, self);
    const tt_status_t status = tt_st_write(path, draft.array, draft.arrays, draft.meta, draft.metas, true);
    s_draft_free(&draft);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/*  An array that must be there with this type and number of elements. */
static tt_status_t s_need(const snapshot_t *self, const char *name, tt_st_type_t type, uint64_t count, const void **out)
{
    const tt_st_array_t *array = tt_st_find(self->file, name);
    if (!array)
        return tt_err(TT_DATA, "%s is missing: not a snapshot of tutti, or of another network", name);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < array->rank; i++)
        elements *= array->shape[i];
    if (array->type != type || array->bytes != count * s_type_size(type) || elements != count)
        return tt_err(TT_DATA,
            "%s has %llu elements where this job needs %llu: another network, algorithm or number of envs", name,
            (unsigned long long)elements, (unsigned long long)count);
    *out = array->data;
    return TT_OK;
}

static tt_status_t s_need_number(const snapshot_t *self, const char *name, uint64_t *out)
{
    const void *data = NULL;
    TT_TRY(s_need(self, name, TT_ST_I64, 1, &data));
    int64_t number;
    memcpy(&number, data, sizeof number);
    if (number < 0)
        return tt_err(TT_DATA, "%s is negative", name);
    *out = (uint64_t)number;
    return TT_OK;
}

static tt_status_t s_read_tensors(snapshot_t *self)
{
    self->owned = tt_aligned0(tt_mul(self->param_count, sizeof(float)));
    for (size_t i = 0; i < self->tensors; i++) {
        const tt_tensor_t *tensor = &self->tensor[i];
        const size_t count = (size_t)tensor->rows * tensor->cols;
        const void *data = NULL;
        TT_TRY(s_need(self, tensor->name, TT_ST_F32, count, &data));
        const tt_st_array_t *array = tt_st_find(self->file, tensor->name);
        if (s_is_weight(tensor) && (array->rank != 2 || array->shape[0] != tensor->cols))
            return tt_err(TT_DATA, "%s: the shape is not [%u][%u]", tensor->name, tensor->cols, tensor->rows);
        float *to = self->owned + tensor->offset;
        if (s_is_weight(tensor))
            s_transpose(to, data, tensor->cols, tensor->rows);
        else
            memcpy(to, data, count * sizeof(float));
    }
    for (size_t i = 0; i < self->param_count; i++)
        if (!isfinite(self->owned[i]))
            return tt_err(TT_DATA, "a weight is not finite");
    self->params = self->owned;
    return TT_OK;
}

static tt_status_t s_read_versions(snapshot_t *self)
{
    uint64_t oldest = self->update;
    char name[96];
    while (oldest > 0 && self->update - oldest + 1 < SNAPSHOT_VERSIONS_MAX) {
        snprintf(name, sizeof name, "tutti.version.%llu.params", (unsigned long long)oldest - 1);
        if (!tt_st_find(self->file, name))
            break;
        oldest--;
    }
    self->versions = 0;
    for (uint64_t v = oldest; v <= self->update; v++) {
        snapshot_version_t *version = &self->version[self->versions++];
        const void *data[3] = {NULL};
        snprintf(name, sizeof name, "tutti.version.%llu.params", (unsigned long long)v);
        TT_TRY(s_need(self, name, TT_ST_F32, self->param_count, &data[0]));
        snprintf(name, sizeof name, "tutti.version.%llu.norm", (unsigned long long)v);
        TT_TRY(s_need(self, name, TT_ST_F64, self->norm_count, &data[1]));
        snprintf(name, sizeof name, "tutti.version.%llu.reward", (unsigned long long)v);
        TT_TRY(s_need(self, name, TT_ST_F64, self->reward_count, &data[2]));
        *version = (snapshot_version_t){v, data[0], data[1], data[2]};
    }
    return TT_OK;
}

static tt_status_t s_read_counters(snapshot_t *self)
{
    uint64_t step = 0;
    const void *best = NULL;
    TT_TRY(s_need_number(self, "tutti.update", &self->update));
    TT_TRY(s_need_number(self, "tutti.step", &step));
    TT_TRY(s_need_number(self, "tutti.steps", &self->steps));
    TT_TRY(s_need_number(self, "tutti.optimizer.step", &self->opt_step));
    TT_TRY(s_need_number(self, "tutti.trained", &self->trained));
    TT_TRY(s_need_number(self, "tutti.lag_max", &self->lag_max));
    TT_TRY(s_need_number(self, "tutti.solved", &self->solved));
    TT_TRY(s_need(self, "tutti.best", TT_ST_F64, 1, &best));
    memcpy(&self->best, best, sizeof self->best);
    if (step > UINT32_MAX)
        return tt_err(TT_DATA, "tutti.step is out of range");
    self->step = (uint32_t)step;
    return TT_OK;
}

static tt_status_t s_read_all(snapshot_t *self)
{
    const char *format = tt_st_meta(self->file, "format");
    if (!format || strcmp(format, "tutti-1") != 0)
        return tt_err(TT_DATA, "not a snapshot of tutti (format '%s', expected 'tutti-1')", format ? format : "");
    const void *data = NULL;
    TT_TRY(s_read_counters(self));
    TT_TRY(s_read_tensors(self));
    TT_TRY(s_read_versions(self));
    self->opt_state = NULL;
    if (self->opt_count) {
        TT_TRY(s_need(self, "tutti.optimizer.state", TT_ST_F32, self->opt_count, &data));
        self->opt_state = data;
    }
    self->env_states = NULL;
    if (self->env_bytes && tt_st_find(self->file, "tutti.env_states")) {
        TT_TRY(s_need(self, "tutti.env_states", TT_ST_U8, self->envs * self->env_bytes, &data));
        self->env_states = data;
    }
    self->sum = NULL;
    if (self->sum_count && tt_st_find(self->file, "tutti.sum")) {
        TT_TRY(s_need(self, "tutti.sum", TT_ST_F32, self->sum_count, &data));
        self->sum = data;
        TT_TRY(s_need_number(self, "tutti.sum.step", &self->sum_step));
    }
    TT_TRY(s_need(self, "tutti.episodes", TT_ST_F64, self->episodes_count, &data));
    self->episodes = data;
    TT_TRY(s_need(self, "tutti.returns", TT_ST_F64, self->envs, &data));
    self->returns = data;
    self->config = tt_st_meta(self->file, "config");
    self->env = tt_st_meta(self->file, "env");
    self->algorithm = tt_st_meta(self->file, "algorithm");
    return TT_OK;
}

static tt_status_t s_read(snapshot_t *self)
{
    self->owned = NULL;
    const tt_status_t status = s_read_all(self);
    if (status != TT_OK)
        snapshot_close(self);
    return status;
}

tt_status_t snapshot_decode(snapshot_t *self, const void *bytes, size_t size)
{
    TT_TRY(tt_st_decode(&self->file, bytes, size));
    return s_read(self);
}

tt_status_t snapshot_read(snapshot_t *self, const char *path)
{
    TT_TRY(tt_st_read(&self->file, path));
    const tt_status_t status = s_read(self);
    return status == TT_OK ? status : tt_err_wrap(status, "%s", path);
}

void snapshot_close(snapshot_t *self)
{
    tt_st_destroy(&self->file);
    free(self->owned);
    self->owned = NULL;
}

void snapshot_sha256(const float *params, size_t count, char out[65])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, (const unsigned char *)params, count * sizeof(float));
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}
