/*  snapshot - everything that another process needs to go on exactly where this one stands, as safetensors.
 *
 *  One format for four uses: checkpoint files, the state a joining learner fetches, resuming, and evaluation. Whoever
 *  reads one, in whatever role, reads it here: the checksum (seal.h) is compared before anything else is believed.
 *  Layout:
 *
 *    actor.0.weight, ... critic.4.bias   F32  the weights now, as PyTorch shapes them: weight [out][in], bias [out]
 *    tutti.update, tutti.step            I64  position: update in hand, optimiser steps of it that are done
 *    tutti.steps, tutti.optimizer.step   I64  optimiser steps of the whole run; of the optimiser
 *    tutti.optimizer.state               F32  flat, see nn.h (Adam: m then v, in the order of the parameters); absent: it has none
 *    tutti.optimizer.<group>.step, .state     both, of each group, where there are several
 *    tutti.made                          I64  optimiser steps of the run that had a minibatch; absent, of tutti up to 0.2: as many as
 *                                             its one optimiser took
 *    tutti.trained                       I64  transitions that were trained on, as counted batch by batch
 *    tutti.lag_max, tutti.solved         I64  for the summary
 *    tutti.best                          F64  best mean return so far, NAN = none
 *    tutti.version.<v>.params            F32  versions update-lag .. update, flat in the order of nn.h ([in][out])
 *    tutti.version.<v>.norm              F64  block of the observations' normaliser (common/rl/norm.h)
 *    tutti.version.<v>.reward            F64  block of the rewards' normaliser
 *    tutti.env_states                    U8   [envs][bytes]: states at the start of batch `update`; absent: envs are reset
 *    tutti.sum, tutti.sum.step           F32, I64  only for a joiner: the kept sum of an optimiser step (allreduce.h)
 *    tutti.set.<k>                       F32  parameter sets that follow the trained one (target networks), flat
 *    tutti.replay                        U8   algorithms with a replay: all of it but what is in pieces, with the batch in hand once that
 *                                             is in; absent: it was not kept, and begins empty
 *    tutti.replay.pieces, .hashes        I64 [pieces][5], U8 [pieces][32]  older batches, in files beside this one (pieces.h): number of the
 *                                             file, offset, bytes, first batch, batch after the last; absent: there are none
 *    tutti.replay.files                  U8 [files][64]  their names, filled up with 0
 *    tutti.evaluate                      I64  with eval.every: versions still to be evaluated, at most two, ascending; absent: none
 *    tutti.evaluate.<v>.params, .norm    F32, F64  what they act with
 *    tutti.episodes, tutti.returns       F64  statistics before batch `update` (common/rl/episodes.h, norm.h)
 *
 *  Metadata: checksum, format ("tutti-2"), config (resolved YAML), env, algorithm, update, return_mean, weights_sha256.
 *  A bare file has the weights, tutti.update, and the normalisers of that version alone, and "holds: weights" in its metadata: a
 *  policy to act with, and nothing to go on from.
 *  A file is at a boundary between updates (step 0): its weights are version `update`.
 *
 *  "tutti-1" is the same without the checksum, as tutti 0.1 wrote it: read, with a warning in the log, and with its
 *  weights compared with their hash.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/nn/nn.h"
#include "common/nn/safetensors.h"
#include "common/snapshot/pieces.h"

enum { TT_SNAPSHOT_VERSIONS_MAX = TT_LAG_MAX + 8, TT_SNAPSHOT_WAITING_MAX = 2, TT_SNAPSHOT_OPT_NAME = 32 };
#define TT_SNAPSHOT_FILE_MAX ((size_t)8 << 30)      /* bytes of a file                              */
#define TT_SNAPSHOT_WIRE_MAX ((size_t)TT_FRAME_MAX) /* of one that travels: to a joiner, by STORE or LOAD */

typedef struct {
    uint64_t version;
    const float *params;
    const double *norm, *reward;
} tt_snapshot_version_t;

/*  The optimiser of a group. */
typedef struct {
    const char *name; /* "": the only one; else letters, digits and '_', at most TT_SNAPSHOT_OPT_NAME */
    size_t count;     /* floats of its state; 0: it has none                                          */
    const float *state;
    uint64_t step;
} tt_snapshot_opt_t;

/*  Pointers are borrowed: from the writer, or from `file` after reading. */
typedef struct {
    const char *config, *env, *algorithm;
    double return_mean;
    uint64_t update, steps, made, trained, lag_max;
    uint32_t step;
    uint64_t solved; /* env steps when it was; 0 = not yet */
    double best;
    const float *params; /* now, flat */
    const tt_tensor_t *tensor;
    size_t tensors, param_count;
    tt_snapshot_opt_t opt[TT_TOWERS_MAX];
    uint32_t opts;
    tt_snapshot_version_t version[TT_SNAPSHOT_VERSIONS_MAX]; /* ascending */
    size_t versions, norm_count, reward_count;
    const uint8_t *env_states; /* NULL = none */
    size_t envs, env_bytes;
    const float *sum; /* of the last finished step, NULL = none */
    uint64_t sum_step;
    size_t sum_count;
    const double *episodes, *returns;
    size_t episodes_count;
    const float *set[TT_SETS_MAX]; /* [1 .. sets - 1] parameter sets beside the trained one */
    uint32_t sets;
    bool replays;       /* the algorithm has a replay */
    const void *replay; /* the block (learner/replay/replay.h); NULL: it was not kept */
    size_t replay_bytes;
    const tt_piece_t *piece; /* in the order of their batches */
    size_t pieces;
    bool bare;                                              /* written without all but weights and normalisers */
    tt_snapshot_version_t waiting[TT_SNAPSHOT_WAITING_MAX]; /* still to be evaluated, ascending; without `reward` */
    size_t waitings;
    tt_st_t *file;           /* owned, after reading */
    float *owned;            /* params, after reading */
    tt_piece_t *owned_piece; /* after reading */
} tt_snapshot_t;

/*  Append the bytes to `out` / write `path` (renamed into place, synced to disk); gigabytes to a slow disk take minutes. */
tt_status_t tt_snapshot_encode(const tt_snapshot_t *self, tt_buf_t *out);
tt_status_t tt_snapshot_write(const tt_snapshot_t *self, const char *path, tt_progress_t progress);

/*  Read bytes / a file. On entry *self says what is expected: tensor(s), param_count, opts with their names and counts, norm_count,
 *  reward_count, sum_count, envs, env_bytes, episodes_count, sets, replays; on TT_OK the rest is filled in and tt_snapshot_close is due.
 *  TT_DATA: damaged, foreign, or of another network, algorithm or number of envs (the text says what). */
tt_status_t tt_snapshot_decode(tt_snapshot_t *self, const void *bytes, size_t size);
tt_status_t tt_snapshot_read(tt_snapshot_t *self, const char *path);
void tt_snapshot_close(tt_snapshot_t *self);

/*  Only the pieces that a file refers to, which has been opened; the caller frees *out. TT_DATA: what is said of them cannot be. */
tt_status_t tt_snapshot_pieces(const tt_st_t *file, tt_piece_t **out, size_t *count);

/*  A file as arrays, checksum and format checked. For whoever needs a part only. TT_DATA; tt_st_destroy is due. */
tt_status_t tt_snapshot_open_file(tt_st_t **file_p, const char *path);
/*  The weights now, flat into params. all: the critic's too, else they are left as they are when the file has none.
 *  TT_DATA: missing, of another shape, not finite. */
tt_status_t tt_snapshot_weights(const tt_st_t *file, const tt_tensor_t *tensor, size_t count, bool all, float *params);
/*  The observations' normaliser of a version, NULL when it is not there; and which version the weights are of. */
const tt_st_array_t *tt_snapshot_norm(const tt_st_t *file, uint64_t version);
tt_status_t tt_snapshot_update(const tt_st_t *file, uint64_t *out);
/*  Its job's resolved settings, borrowed, NULL = it has none; and whether it has the weights of a critic. */
const char *tt_snapshot_config(const tt_st_t *file);
bool tt_snapshot_has_critic(const tt_st_t *file);

/*  What a file says of itself, after all of it was read and compared with its checksum; memory does not grow with it.
 *  TT_NOT_FOUND, TT_IO, TT_DATA, with words that lack the path. */
typedef struct {
    uint64_t update;
    double return_mean;
    bool sealed;             /* false: of tutti 0.1, nothing to compare with */
    char *config;            /* owned                                        */
    char weights_sha256[65]; /* as it says, "" = it does not */
    bool bare;               /* weights and normalisers alone: nothing to go on from */
} tt_snapshot_info_t;

tt_status_t tt_snapshot_inspect(const char *path, tt_snapshot_info_t *out);
/*  The same for a file that is open; it is read from its beginning, and stays open. */
tt_status_t tt_snapshot_inspect_fd(int fd, tt_snapshot_info_t *out);
void tt_snapshot_info_free(tt_snapshot_info_t *self);

/*  SHA-256 of flat parameters as 64 hex digits: what "the same weights" means. */
void tt_weights_sha256(const float *params, size_t count, char out[65]);
