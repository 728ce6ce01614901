/*  snapshot - everything that another process needs to go on exactly where this one stands, as safetensors.
 *
 *  One format for three uses: checkpoint files, the state a joining learner fetches, and resuming. Layout:
 *
 *    actor.0.weight, ... critic.4.bias   F32  the weights now, as PyTorch shapes them: weight [out][in], bias [out]
 *    tutti.update, tutti.step            I64  position: update in hand, optimiser steps of it that are done
 *    tutti.steps, tutti.optimizer.step   I64  optimiser steps of the whole run; of the optimiser
 *    tutti.optimizer.state               F32  flat, see nn.h (Adam: m then v, in the order of the parameters)
 *    tutti.trained                       I64  transitions that were trained on, as counted batch by batch
 *    tutti.lag_max, tutti.solved         I64  for the summary
 *    tutti.best                          F64  best mean return so far, NAN = none
 *    tutti.version.<v>.params            F32  versions update-lag .. update, flat in the order of nn.h ([in][out])
 *    tutti.version.<v>.norm              F64  block of the observations' normaliser (common/rl/norm.h)
 *    tutti.version.<v>.reward            F64  block of the rewards' normaliser
 *    tutti.env_states                    U8   [envs][bytes]: states at the start of batch `update`; absent: envs are reset
 *    tutti.sum, tutti.sum.step           F32, I64  only for a joiner: the kept sum of an optimiser step (allreduce.h)
 *    tutti.episodes, tutti.returns       F64  statistics before batch `update` (common/rl/episodes.h, norm.h)
 *
 *  Metadata: format ("tutti-1"), config (resolved YAML), env, algorithm, update, return_mean, weights_sha256.
 *  A file is at a boundary between updates (step 0): its weights are version `update`.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/nn/nn.h"
#include "common/nn/safetensors.h"

enum { SNAPSHOT_VERSIONS_MAX = 72 };

typedef struct {
    uint64_t version;
    const float *params;
    const double *norm, *reward;
} snapshot_version_t;

/*  Pointers are borrowed: from the writer, or from `file` after reading. */
typedef struct {
    const char *config, *env, *algorithm;
    double return_mean;
    uint64_t update, steps, opt_step, trained, lag_max;
    uint32_t step;
    uint64_t solved; /* env steps when it was; 0 = not yet */
    double best;
    const float *params; /* now, flat */
    const tt_tensor_t *tensor;
    size_t tensors, param_count;
    const float *opt_state;
    size_t opt_count;
    snapshot_version_t version[SNAPSHOT_VERSIONS_MAX]; /* ascending */
    size_t versions, norm_count, reward_count;
    const uint8_t *env_states; /* NULL = none */
    size_t envs, env_bytes;
    const float *sum; /* of the last finished step, NULL = none */
    uint64_t sum_step;
    size_t sum_count;
    const double *episodes, *returns;
    size_t episodes_count;
    tt_st_t *file; /* owned, after reading */
    float *owned;  /* params, after reading */
} snapshot_t;

/*  Append the bytes to `out` / write `path` (renamed into place, synced to disk). */
tt_status_t snapshot_encode(const snapshot_t *self, tt_buf_t *out);
tt_status_t snapshot_write(const snapshot_t *self, const char *path);

/*  Read bytes / a file. On entry *self says what is expected: tensor(s), param_count, opt_count, norm_count,
 *  reward_count, sum_count, envs, env_bytes, episodes_count; on TT_OK the rest is filled in and snapshot_close is due.
 *  TT_DATA: damaged, foreign, or of another network, algorithm or number of envs (the text says what). */
tt_status_t snapshot_decode(snapshot_t *self, const void *bytes, size_t size);
tt_status_t snapshot_read(snapshot_t *self, const char *path);
void snapshot_close(snapshot_t *self);

/*  SHA-256 of flat parameters as 64 hex digits: what "the same weights" means. */
void snapshot_sha256(const float *params, size_t count, char out[65]);
