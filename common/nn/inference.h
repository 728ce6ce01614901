/*  inference - a network for who acts, evaluates or looks: on a device of its own, rows in and heads out on the host, in one
 *  call that waits.
 *
 *  Threads: one, as device.h. */
#pragma once
#include "common/nn/nn.h"

typedef struct tt_inference tt_inference_t; /* opaque */

/*  All parameters are 0; one lane. device and place, and errors: as tt_device_open_wish. TT_INVALID: the spec. */
tt_status_t tt_inference_new(tt_inference_t **self_p, const char *device, uint32_t place, const tt_net_spec_t *spec);
void tt_inference_destroy(tt_inference_t **self_p);
/*  "cpu/avx512" and the like. */
const char *tt_inference_device(const tt_inference_t *self);
/*  Borrowed; for putting parameters. */
tt_net_t *tt_inference_net(const tt_inference_t *self);
tt_stream_t *tt_inference_stream(const tt_inference_t *self);

/*  Take these as the parameters of set 0. */
tt_status_t tt_inference_put(tt_inference_t *self, const float *params);
/*  As tt_net_noise, of set 0. */
tt_status_t tt_inference_noise(tt_inference_t *self, const tt_noise_t *noise);
/*  obs[k] -> a row of tt_net_row_bytes, k < rows, through set 0; carry and out as tt_net_forward. Where the spec has a stack: obs[rows][frames],
 *  oldest first. TT_DEVICE: the device is lost, or has no memory for so many rows. */
tt_status_t tt_inference_run(
    tt_inference_t *self, const void *const *obs, size_t rows, const tt_carry_t *carry, float *const *out);
/*  log_std[L] of a tower; nothing when it has none. */
tt_status_t tt_inference_log_std(const tt_inference_t *self, uint32_t tower, float *log_std);
