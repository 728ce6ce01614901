#define TT_LOG_COMPONENT "snapshot"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/nn/tensor.h"
#include "common/snapshot/names.h"
#include "common/snapshot/parts.h"
#include "common/snapshot/seal.h"
#include "common/snapshot/snapshot.h"

/* ---- is it one, and whole? ----------------------------------------------------------------------------------------- */

tt_status_t snapshot_identify(const tt_st_t *file, bool sealed)
{
    const char *format = tt_st_meta(file, META_FORMAT);
    if (format && strcmp(format, FORMAT_NOW) == 0)
        return sealed ? TT_OK : tt_err(TT_DATA, "damaged: the checksum is missing, or not where it belongs");
    if (!format || strcmp(format, FORMAT_UNSEALED) != 0)
        return tt_err(TT_DATA, "not a snapshot of tutti (format '%.64s'; '%s' and '%s' are read)", format ? format : "",
            FORMAT_NOW, FORMAT_UNSEALED);
    return tt_st_meta(file, TT_SEAL_KEY) ? tt_err(TT_DATA, "damaged: a checksum where its format has none") : TT_OK;
}

static tt_status_t s_open(tt_st_t **file_p, const void *bytes, size_t size)
{
    bool sealed = false;
    tt_st_t *file = NULL;
    TT_TRY(tt_seal_check(bytes, size, &sealed));
    TT_TRY(tt_st_decode(&file, bytes, size));
    const tt_status_t status = snapshot_identify(file, sealed);
    if (status != TT_OK) {
        tt_st_destroy(&file);
        return status;
    }
    if (!sealed)
        log_warn("a snapshot of tutti 0.1, without a checksum: only its weights can be compared with what was written");
    *file_p = file;
    return TT_OK;
}

tt_status_t tt_snapshot_open_file(tt_st_t **file_p, const char *path)
{
    tt_buf_t bytes;
    tt_buf_init(&bytes, TT_SNAPSHOT_FILE_MAX);
    tt_status_t status = tt_buf_read_file(&bytes, path);
    if (status == TT_OK) {
        status = s_open(file_p, tt_buf_text(&bytes), bytes.size);
        if (status != TT_OK)
            tt_err_wrap(status, "%s", path);
    }
    tt_buf_free(&bytes);
    return status;
}

/* ---- weights ------------------------------------------------------------------------------------------------------- */

static void s_copy(float *to, const tt_tensor_t *tensor, const tt_st_array_t *array)
{
    const size_t count = tt_tensor_count(tensor);
    const float *from = array->data;
    for (size_t k = 0; k < count; k++)
        to[tt_tensor_at(tensor, k)] = from[k];
}

/*  "[512][3136]". */
static const char *s_shape(char out[96], uint32_t rank, const uint64_t *shape)
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < rank; i++)
        at += (size_t)snprintf(out + at, 96 - at, "[%llu]", (unsigned long long)shape[i]);
    return out;
}

static tt_status_t s_check_shape(const tt_tensor_t *tensor, const tt_st_array_t *array)
{
    uint64_t shape[4];
    char want[96], got[96];
    const uint32_t rank = tt_tensor_shape(tensor, shape);
    if (array->rank == rank && memcmp(array->shape, shape, rank * sizeof *shape) == 0)
        return TT_OK;
    return tt_err(TT_DATA, "%s: the shape is %s and not %s", tensor->name, s_shape(got, array->rank, array->shape),
        s_shape(want, rank, shape));
}

static tt_status_t s_check_tensor(const tt_tensor_t *tensor, const tt_st_array_t *array)
{
    const uint64_t count = (uint64_t)tensor->rows * tensor->cols;
    if (array->type != TT_ST_F32 || array->bytes != count * sizeof(float))
        return tt_err(TT_DATA, "%s has %zu bytes where this job needs %llu: another network", tensor->name,
            array->bytes, (unsigned long long)count * sizeof(float));
    TT_TRY(s_check_shape(tensor, array));
    const float *value = array->data;
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(value[i]))
            return tt_err(TT_DATA, "%s: a weight is not finite", tensor->name);
    return TT_OK;
}

/*  What 0.1 wrote has a hash of the weights alone. */
static tt_status_t s_check_hash(const tt_st_t *file, const float *params, size_t count)
{
    const char *said = tt_st_meta(file, META_SHA256);
    char hash[65];
    if (tt_st_meta(file, TT_SEAL_KEY) || !said)
        return TT_OK;
    tt_weights_sha256(params, count, hash);
    return strcmp(said, hash) == 0 ? TT_OK : tt_err(TT_DATA, "damaged: weights_sha256 is not that of the weights");
}

/*  Its own, and those of what it alone reads: "critic_encoder", "critic_lstm". */
static bool s_is_critics(const char *name)
{
    return strncmp(name, "critic", 6) == 0 && (name[6] == '.' || name[6] == '_');
}

tt_status_t tt_snapshot_weights(const tt_st_t *file, const tt_tensor_t *tensor, size_t count, bool all, float *params)
{
    size_t floats = 0;
    bool whole = true;
    for (size_t i = 0; i < count; i++) {
        const tt_st_array_t *array = tt_st_find(file, tensor[i].name);
        floats += (size_t)tensor[i].rows * tensor[i].cols;
        if (array) {
            TT_TRY(s_check_tensor(&tensor[i], array));
            s_copy(params + tensor[i].offset, &tensor[i], array);
            continue;
        }
        whole = false;
        if (all || !s_is_critics(tensor[i].name))
            return tt_err(TT_DATA, "%s is missing: not a snapshot of tutti, or of another network", tensor[i].name);
    }
    return whole ? s_check_hash(file, params, floats) : TT_OK;
}

const tt_st_array_t *tt_snapshot_norm(const tt_st_t *file, uint64_t version)
{
    char name[96];
    snprintf(name, sizeof name, NAME_NORM, (unsigned long long)version);
    return tt_st_find(file, name);
}

tt_status_t tt_snapshot_update(const tt_st_t *file, uint64_t *out)
{
    const tt_st_array_t *array = tt_st_find(file, NAME_UPDATE);
    int64_t update = -1;
    if (array && array->type == TT_ST_I64 && array->bytes == sizeof update)
        memcpy(&update, array->data, sizeof update);
    if (update < 0)
        return tt_err(TT_DATA, "%s is missing, or no count: not a snapshot of tutti", NAME_UPDATE);
    *out = (uint64_t)update;
    return TT_OK;
}

const char *tt_snapshot_config(const tt_st_t *file)
{
    return tt_st_meta(file, META_CONFIG);
}

bool tt_snapshot_has_critic(const tt_st_t *file)
{
    return tt_st_find(file, "critic.0.weight") != NULL;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

/*  An array that must be there with this type and number of elements. */
static tt_status_t s_need(
    const tt_snapshot_t *self, const char *name, tt_st_type_t type, uint64_t count, const void **out)
{
    const tt_st_array_t *array = tt_st_find(self->file, name);
    if (!array)
        return tt_err(TT_DATA, "%s is missing: not a snapshot of tutti, or of another network", name);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < array->rank; i++)
        elements *= array->shape[i];
    if (array->type != type || array->bytes != count * tt_st_size(type) || elements != count)
        return tt_err(TT_DATA,
            "%s has %llu elements where this job needs %llu: another network, algorithm or number of envs", name,
            (unsigned long long)elements, (unsigned long long)count);
    *out = array->data;
    return TT_OK;
}

static tt_status_t s_need_number(const tt_snapshot_t *self, const char *name, uint64_t *out)
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

static tt_status_t s_read_tensors(tt_snapshot_t *self)
{
    self->owned = tt_aligned0(tt_mul(self->param_count, sizeof(float)));
    TT_TRY(tt_snapshot_weights(self->file, self->tensor, self->tensors, true, self->owned));
    self->params = self->owned;
    return TT_OK;
}

static tt_status_t s_read_versions(tt_snapshot_t *self)
{
    uint64_t oldest = self->update;
    char name[96];
    while (oldest > 0 && self->update - oldest + 1 < TT_SNAPSHOT_VERSIONS_MAX) {
        snprintf(name, sizeof name, NAME_PARAMS, (unsigned long long)oldest - 1);
        if (!tt_st_find(self->file, name))
            break;
        oldest--;
    }
    self->versions = 0;
    for (uint64_t v = oldest; v <= self->update; v++) {
        tt_snapshot_version_t *version = &self->version[self->versions++];
        const void *data[3] = {NULL};
        snprintf(name, sizeof name, NAME_PARAMS, (unsigned long long)v);
        TT_TRY(s_need(self, name, TT_ST_F32, self->param_count, &data[0]));
        snprintf(name, sizeof name, NAME_NORM, (unsigned long long)v);
        TT_TRY(s_need(self, name, TT_ST_F64, self->norm_count, &data[1]));
        snprintf(name, sizeof name, NAME_REWARD, (unsigned long long)v);
        TT_TRY(s_need(self, name, TT_ST_F64, self->reward_count, &data[2]));
        *version = (tt_snapshot_version_t){v, data[0], data[1], data[2]};
    }
    return TT_OK;
}

static tt_status_t s_read_counters(tt_snapshot_t *self)
{
    uint64_t step = 0;
    const void *best = NULL;
    TT_TRY(s_need_number(self, NAME_UPDATE, &self->update));
    TT_TRY(s_need_number(self, NAME_STEP, &step));
    TT_TRY(s_need_number(self, NAME_STEPS, &self->steps));
    TT_TRY(s_need_number(self, NAME_TRAINED, &self->trained));
    TT_TRY(s_need_number(self, NAME_LAG_MAX, &self->lag_max));
    TT_TRY(s_need_number(self, NAME_SOLVED, &self->solved));
    TT_TRY(s_need(self, NAME_BEST, TT_ST_F64, 1, &best));
    memcpy(&self->best, best, sizeof self->best);
    if (step > UINT32_MAX)
        return tt_err(TT_DATA, "tutti.step is out of range");
    self->step = (uint32_t)step;
    return TT_OK;
}

void snapshot_opt_name(char *out, size_t size, const char *group, bool state)
{
    if (*group)
        snprintf(out, size, state ? NAME_GROUP_STATE : NAME_GROUP_STEP, group);
    else
        snprintf(out, size, "%s", state ? NAME_OPT_STATE : NAME_OPT_STEP);
}

static tt_status_t s_read_opts(tt_snapshot_t *self)
{
    for (uint32_t g = 0; g < self->opts; g++) {
        tt_snapshot_opt_t *opt = &self->opt[g];
        const void *data = NULL;
        char name[96];
        snapshot_opt_name(name, sizeof name, opt->name, false);
        TT_TRY(s_need_number(self, name, &opt->step));
        snapshot_opt_name(name, sizeof name, opt->name, true);
        if (opt->count)
            TT_TRY(s_need(self, name, TT_ST_F32, opt->count, &data));
        opt->state = data;
    }
    self->made = self->opts ? self->opt[0].step : 0;
    return tt_st_find(self->file, NAME_MADE) ? s_need_number(self, NAME_MADE, &self->made) : TT_OK;
}

/*  Of how many bytes a replay is, only its own module can say; and one that was not kept is absent. */
static tt_status_t s_read_replay(tt_snapshot_t *self)
{
    const tt_st_array_t *array = self->replays ? tt_st_find(self->file, NAME_REPLAY) : NULL;
    self->replay = NULL;
    self->piece = NULL;
    self->pieces = 0;
    if (!array)
        return TT_OK;
    if (array->type != TT_ST_U8)
        return tt_err(TT_DATA, NAME_REPLAY " are no bytes");
    self->replay = array->data;
    self->replay_bytes = array->bytes;
    TT_TRY(tt_snapshot_pieces(self->file, &self->owned_piece, &self->pieces));
    self->piece = self->owned_piece;
    return TT_OK;
}

static tt_status_t s_read_sets(tt_snapshot_t *self)
{
    for (uint32_t k = 1; k < self->sets; k++) {
        const void *data = NULL;
        char name[32];
        snprintf(name, sizeof name, NAME_SET, k);
        TT_TRY(s_need(self, name, TT_ST_F32, self->param_count, &data));
        self->set[k] = data;
    }
    return TT_OK;
}

static tt_status_t s_read_waiting(tt_snapshot_t *self)
{
    const tt_st_array_t *list = tt_st_find(self->file, NAME_WAITING);
    const void *data = NULL;
    char name[96];
    self->waitings = 0;
    const size_t count = list ? list->bytes / sizeof(int64_t) : 0;
    if (count > TT_SNAPSHOT_WAITING_MAX)
        return tt_err(TT_DATA, NAME_WAITING " has %zu versions, must be at most %d", count, TT_SNAPSHOT_WAITING_MAX);
    if (count)
        TT_TRY(s_need(self, NAME_WAITING, TT_ST_I64, count, &data));
    for (size_t i = 0; i < count; i++) {
        tt_snapshot_version_t *version = &self->waiting[i];
        const void *params = NULL, *norm = NULL;
        memcpy(&version->version, (const int64_t *)data + i, sizeof version->version);
        if (version->version > self->update || (i && version->version <= self->waiting[i - 1].version))
            return tt_err(TT_DATA, NAME_WAITING ": no ascending versions up to that of the snapshot");
        snprintf(name, sizeof name, NAME_WAITING_PARAMS, (unsigned long long)version->version);
        TT_TRY(s_need(self, name, TT_ST_F32, self->param_count, &params));
        snprintf(name, sizeof name, NAME_WAITING_NORM, (unsigned long long)version->version);
        TT_TRY(s_need(self, name, TT_ST_F64, self->norm_count, &norm));
        version->params = params;
        version->norm = norm;
    }
    self->waitings = count;
    return TT_OK;
}

static tt_status_t s_read_all(tt_snapshot_t *self)
{
    const void *data = NULL;
    TT_TRY(s_read_counters(self));
    TT_TRY(s_read_tensors(self));
    TT_TRY(s_read_versions(self));
    TT_TRY(s_read_opts(self));
    self->env_states = NULL;
    if (self->env_bytes && tt_st_find(self->file, NAME_ENV_STATES)) {
        TT_TRY(s_need(self, NAME_ENV_STATES, TT_ST_U8, self->envs * self->env_bytes, &data));
        self->env_states = data;
    }
    self->sum = NULL;
    if (self->sum_count && tt_st_find(self->file, NAME_SUM)) {
        TT_TRY(s_need(self, NAME_SUM, TT_ST_F32, self->sum_count, &data));
        self->sum = data;
        TT_TRY(s_need_number(self, NAME_SUM_STEP, &self->sum_step));
    }
    TT_TRY(s_need(self, NAME_EPISODES, TT_ST_F64, self->episodes_count, &data));
    self->episodes = data;
    TT_TRY(s_need(self, NAME_RETURNS, TT_ST_F64, self->envs, &data));
    self->returns = data;
    TT_TRY(s_read_sets(self));
    TT_TRY(s_read_replay(self));
    TT_TRY(s_read_waiting(self));
    self->config = tt_snapshot_config(self->file);
    self->env = tt_st_meta(self->file, META_ENV);
    self->algorithm = tt_st_meta(self->file, META_ALGORITHM);
    return TT_OK;
}

static tt_status_t s_read(tt_snapshot_t *self)
{
    self->owned = NULL;
    self->owned_piece = NULL;
    const tt_status_t status = s_read_all(self);
    if (status != TT_OK)
        tt_snapshot_close(self);
    return status;
}

tt_status_t tt_snapshot_decode(tt_snapshot_t *self, const void *bytes, size_t size)
{
    TT_TRY(s_open(&self->file, bytes, size));
    return s_read(self);
}

tt_status_t tt_snapshot_read(tt_snapshot_t *self, const char *path)
{
    TT_TRY(tt_snapshot_open_file(&self->file, path));
    const tt_status_t status = s_read(self);
    return status == TT_OK ? status : tt_err_wrap(status, "%s", path);
}

void tt_snapshot_close(tt_snapshot_t *self)
{
    tt_st_destroy(&self->file);
    free(self->owned);
    free(self->owned_piece);
    self->owned = NULL;
    self->owned_piece = NULL;
    self->piece = NULL;
    self->pieces = 0;
}
