/*  vec_self - what vec.c (moving envs) and vec_save.c (one env as bytes) share; for nobody else. */
#pragma once
#include "collector/leaf.h"
#include "collector/vec.h"

struct tt_vec {
    const tt_env_ops_t *ops; /* borrowed; lives as long as the process */
    const tt_columns_t *columns;
    uint64_t seed;
    uint32_t lo, count;
    uint32_t ready;        /* envs whose init has run             */
    uint32_t identity;     /* of the env and its arguments        */
    size_t stride;         /* bytes from one state to the next    */
    unsigned char *states; /* [count][stride]                     */
    leaf_t *obs_leaf;      /* [obs_count]                         */
    leaf_t *action_leaf;   /* [action_count]                      */
    uint8_t *mask;         /* [count][mask_bits], NULL = no mask  */
    uint64_t *clock;       /* [count] steps since the run began   */
    uint64_t *episode;     /* [count] number of this episode      */
    uint32_t *steps;       /* [count] steps into this episode     */

    void *obs[TT_COLUMNS_MAX];         /* of each leaf, as stored [count][elements]               */
    void *raw[TT_COLUMNS_MAX];         /* where the env writes it: the same, or the leaf's scratch */
    void *final[TT_COLUMNS_MAX];       /* by number of the column, [count][elements]              */
    const void *given[TT_COLUMNS_MAX]; /* of each leaf, the actions in the env's form              */
};

static inline void *vec_state(const tt_vec_t *self, uint32_t i)
{
    return self->states + i * self->stride;
}

/*  Of env i; NULL when there is none. */
static inline uint8_t *vec_mask(const tt_vec_t *self, uint32_t i)
{
    return self->mask ? self->mask + (size_t)i * self->columns->mask_bits : NULL;
}
