#include "common/snapshot/snapshot.h"
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/tensor.h"
#include "common/snapshot/names.h"
#include "common/snapshot/parts.h"
#include "common/snapshot/seal.h"

/*  What an encode collects: arrays, metadata, and numbers that arrays point to. */
typedef struct {
    tt_st_array_t *array;
    size_t arrays, room;
    tt_st_meta_t meta[9];
    size_t metas;
    int64_t number[11 + TT_TOWERS_MAX], waiting[TT_SNAPSHOT_WAITING_MAX];
    size_t numbers;
    float *weights; /* tensors in the order of files */
    char texts[4][80];
    char (*file)[TT_PIECE_FILE]; /* [files] of pieces                          */
    size_t files;
    int64_t *piece; /* [pieces][PIECE_NUMBERS]                    */
    uint8_t *hash;  /* [pieces][TT_PIECE_HASH]                    */
} draft_t;

static void s_array(draft_t *draft, const char *name, tt_st_type_t type, const void *data, uint64_t rows, uint64_t cols)
{
    TT_CHECK(draft->arrays < draft->room);
    tt_st_array_t *array = &draft->array[draft->arrays++];
    *array = (tt_st_array_t){.type = type, .rank = cols ? 2 : 1, .shape = {rows, cols}, .data = data};
    snprintf(array->name, sizeof array->name, "%s", name);
    array->bytes = (size_t)(rows * (cols ? cols : 1)) * tt_st_size(type);
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

static void s_tensors(draft_t *draft, const tt_snapshot_t *self)
{
    draft->weights = tt_array0(self->param_count, sizeof(float));
    for (size_t i = 0; i < self->tensors; i++) {
        const tt_tensor_t *tensor = &self->tensor[i];
        const float *from = self->params + tensor->offset;
        float *to = draft->weights + tensor->offset;
        const size_t count = tt_tensor_count(tensor);
        for (size_t k = 0; k < count; k++)
            to[k] = from[tt_tensor_at(tensor, k)];
        s_array(draft, tensor->name, TT_ST_F32, to, count, 0);
        tt_st_array_t *array = &draft->array[draft->arrays - 1];
        array->rank = tt_tensor_shape(tensor, array->shape);
    }
}

static void s_versions(draft_t *draft, const tt_snapshot_t *self)
{
    for (size_t i = 0; i < self->versions; i++) {
        const tt_snapshot_version_t *version = &self->version[i];
        char name[96];
        snprintf(name, sizeof name, NAME_PARAMS, (unsigned long long)version->version);
        s_array(draft, name, TT_ST_F32, version->params, self->param_count, 0);
        snprintf(name, sizeof name, NAME_NORM, (unsigned long long)version->version);
        s_array(draft, name, TT_ST_F64, version->norm, self->norm_count, 0);
        if (!version->reward)
            continue; /* of a bare file */
        snprintf(name, sizeof name, NAME_REWARD, (unsigned long long)version->version);
        s_array(draft, name, TT_ST_F64, version->reward, self->reward_count, 0);
    }
}

/*  What is still to be evaluated. */
static void s_waiting(draft_t *draft, const tt_snapshot_t *self)
{
    for (size_t i = 0; i < self->waitings; i++) {
        const tt_snapshot_version_t *version = &self->waiting[i];
        char name[96];
        draft->waiting[i] = (int64_t)version->version;
        snprintf(name, sizeof name, NAME_WAITING_PARAMS, (unsigned long long)version->version);
        s_array(draft, name, TT_ST_F32, version->params, self->param_count, 0);
        snprintf(name, sizeof name, NAME_WAITING_NORM, (unsigned long long)version->version);
        s_array(draft, name, TT_ST_F64, version->norm, self->norm_count, 0);
    }
    if (self->waitings)
        s_array(draft, NAME_WAITING, TT_ST_I64, draft->waiting, self->waitings, 0);
}

static void s_metadata(draft_t *draft, const tt_snapshot_t *self)
{
    snprintf(draft->texts[0], sizeof draft->texts[0], "%llu", (unsigned long long)self->update);
    snprintf(draft->texts[1], sizeof draft->texts[1], "%.17g", self->return_mean);
    tt_weights_sha256(self->params, self->param_count, draft->texts[2]);
    s_meta(draft, TT_SEAL_KEY, TT_SEAL_OPEN); /* first: seal.h counts on it */
    s_meta(draft, META_FORMAT, FORMAT_NOW);
    s_meta(draft, META_CONFIG, self->config);
    s_meta(draft, META_ENV, self->env);
    s_meta(draft, META_ALGORITHM, self->algorithm);
    s_meta(draft, META_UPDATE, draft->texts[0]);
    s_meta(draft, META_RETURN_MEAN, draft->texts[1]);
    s_meta(draft, META_SHA256, draft->texts[2]);
    if (self->bare)
        s_meta(draft, META_HOLDS, HOLDS_WEIGHTS);
}

/*  Pieces of a file mostly follow one another. */
static size_t s_file(draft_t *draft, const char *name)
{
    for (size_t i = draft->files; i-- > 0;)
        if (strcmp(draft->file[i], name) == 0)
            return i;
    snprintf(draft->file[draft->files], TT_PIECE_FILE, "%s", name);
    return draft->files++;
}

static void s_pieces(draft_t *draft, const tt_snapshot_t *self)
{
    draft->file = tt_array0(self->pieces, sizeof *draft->file);
    draft->piece = tt_array0(self->pieces, PIECE_NUMBERS * sizeof *draft->piece);
    draft->hash = tt_array0(self->pieces, TT_PIECE_HASH);
    for (size_t i = 0; i < self->pieces; i++) {
        const tt_piece_t *piece = &self->piece[i];
        const int64_t numbers[PIECE_NUMBERS] = {(int64_t)s_file(draft, piece->file), (int64_t)piece->offset,
            (int64_t)piece->bytes, (int64_t)piece->first, (int64_t)piece->next};
        memcpy(draft->piece + i * PIECE_NUMBERS, numbers, sizeof numbers);
        memcpy(draft->hash + i * TT_PIECE_HASH, piece->hash, TT_PIECE_HASH);
    }
    s_array(draft, NAME_FILES, TT_ST_U8, draft->file, draft->files, TT_PIECE_FILE);
    s_array(draft, NAME_PIECES, TT_ST_I64, draft->piece, self->pieces, PIECE_NUMBERS);
    s_array(draft, NAME_HASHES, TT_ST_U8, draft->hash, self->pieces, TT_PIECE_HASH);
}

static void s_opts(draft_t *draft, const tt_snapshot_t *self)
{
    for (uint32_t g = 0; g < self->opts; g++) {
        const tt_snapshot_opt_t *opt = &self->opt[g];
        char name[96];
        snapshot_opt_name(name, sizeof name, opt->name, false);
        s_number(draft, name, opt->step);
        snapshot_opt_name(name, sizeof name, opt->name, true);
        if (opt->count)
            s_array(draft, name, TT_ST_F32, opt->state, opt->count, 0);
    }
}

/*  What is needed to go on. */
static void s_state(draft_t *draft, const tt_snapshot_t *self)
{
    s_number(draft, NAME_STEP, self->step);
    s_number(draft, NAME_STEPS, self->steps);
    s_number(draft, NAME_MADE, self->made);
    s_number(draft, NAME_TRAINED, self->trained);
    s_number(draft, NAME_LAG_MAX, self->lag_max);
    s_number(draft, NAME_SOLVED, self->solved);
    s_array(draft, NAME_BEST, TT_ST_F64, &self->best, 1, 0);
    s_opts(draft, self);
    if (self->env_states)
        s_array(draft, NAME_ENV_STATES, TT_ST_U8, self->env_states, self->envs, self->env_bytes);
    if (self->sum) {
        s_number(draft, NAME_SUM_STEP, self->sum_step);
        s_array(draft, NAME_SUM, TT_ST_F32, self->sum, self->sum_count, 0);
    }
    s_array(draft, NAME_EPISODES, TT_ST_F64, self->episodes, self->episodes_count, 0);
    s_array(draft, NAME_RETURNS, TT_ST_F64, self->returns, self->envs, 0);
    for (uint32_t k = 1; k < self->sets; k++) {
        char name[32];
        snprintf(name, sizeof name, NAME_SET, k);
        s_array(draft, name, TT_ST_F32, self->set[k], self->param_count, 0);
    }
    if (self->replays && self->replay)
        s_array(draft, NAME_REPLAY, TT_ST_U8, self->replay, self->replay_bytes, 0);
    if (self->pieces)
        s_pieces(draft, self);
    s_waiting(draft, self);
}

static void s_draft(draft_t *draft, const tt_snapshot_t *self)
{
    *draft =
        (draft_t){.room = self->tensors + 3 * self->versions + 2 * self->waitings + self->sets + 2 * self->opts + 24};
    draft->array = tt_array0(draft->room, sizeof *draft->array);
    s_tensors(draft, self);
    s_number(draft, NAME_UPDATE, self->update);
    s_versions(draft, self);
    if (!self->bare)
        s_state(draft, self);
    s_metadata(draft, self);
}

static void s_draft_free(draft_t *draft)
{
    free(draft->array);
    free(draft->weights);
    free(draft->file);
    free(draft->piece);
    free(draft->hash);
}

tt_status_t tt_snapshot_encode(const tt_snapshot_t *self, tt_buf_t *out)
{
    draft_t draft;
    const size_t begin = out->size;
    s_draft(&draft, self);
    tt_status_t status = tt_st_encode(out, draft.array, draft.arrays, draft.meta, draft.metas);
    s_draft_free(&draft);
    if (status == TT_OK)
        status = tt_seal(out->data + begin, out->size - begin);
    return status;
}

tt_status_t tt_snapshot_write(const tt_snapshot_t *self, const char *path, tt_progress_t progress)
{
    tt_buf_t bytes;
    tt_buf_init(&bytes, TT_SNAPSHOT_FILE_MAX);
    tt_status_t status = tt_snapshot_encode(self, &bytes);
    tt_progress(progress);
    if (status == TT_OK)
        status = tt_st_save(&bytes, path, true, progress);
    tt_buf_free(&bytes);
    return status;
}

void tt_weights_sha256(const float *params, size_t count, char out[65])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, (const unsigned char *)params, count * sizeof(float));
    sodium_bin2hex(out, 65, hash, sizeof hash);
}
