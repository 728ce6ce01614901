/*  checkpoint - the policy in a checkpoint file, ready to act: its job's settings, its network, its normaliser.
 *
 *  Reads what common/snapshot/snapshot.h describes: tensors as PyTorch shapes them, the job's resolved settings in the metadata
 *  ("config"), the observations' normaliser of the newest version. Only the actor is needed.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/config/train.h"
#include "common/nn/inference.h"
#include "common/rl/columns.h"
#include "common/rl/norm.h"

typedef struct {
    tt_train_cfg_t cfg;
    tt_columns_t *columns;
    uint64_t update; /* version of the weights               */
    tt_inference_t *net;
    tt_norm_t *norm; /* NULL = observations as they are      */
    bool critic;     /* its weights are there, too           */
} checkpoint_t;

/*  device: where it acts, in words, and its errors, as tt_device_open_wish. TT_NOT_FOUND, TT_IO: the file; TT_DATA: not one of ours, or
 *  damaged (the text says what). Close in every case. */
tt_status_t checkpoint_open(checkpoint_t *self, const char *path, const char *device);
void checkpoint_close(checkpoint_t *self);
