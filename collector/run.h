/*  run - envs side by side that are at the same step of a batch: those of a share, or of several. */
#pragma once
#include <stdint.h>

typedef struct {
    uint32_t first, E; /* of the range                              */
    uint32_t t;        /* steps of the batch in hand that they made */
} run_t;
