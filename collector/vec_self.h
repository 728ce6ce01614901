/*  vec_self - what vec.c (a range of envs), vec_each.c and vec_batch.c (the two kinds of table that move them) and vec_save.c
 *  (one env as bytes) share; for nobody else. */
#pragma once
#include "collector/env_batch.h"
#include "collector/leaf.h"
#include "collector/vec.h"
#include "common/base/rng.h"

/*  Envs that are sent together: all of them, or some. */
typedef struct {
    uint32_t first, count;
    uint32_t left;  /* rows that are under way                                                     */
    bool sent;      /* a step, which tt_vec_recv has not named yet                                 */
    bool steps;     /* what was sent last is a step; else some begin an episode                    */
    uint64_t moves; /* steps since the vec was made: frames of move m are in slot m % (frames - 1) */
    struct {        /* of the step under way: the caller's, of all envs                            */
        float *reward;
        uint8_t *terminated, *truncated;
    } out;
} vec_share_t;

/*  What moves the envs of a range: the one inner interface of both kinds of table. */
typedef struct {
    tt_status_t (*open)(tt_vec_t *self, const tt_env_arg_t *args, const tt_vec_t *from); /* from: tt_vec_cfg_t */
    void (*close)(tt_vec_t *self);
    /*  Begin an episode in each of self->ending, whose shares are not under way; raw and mask hold what they begin with as soon as none
     *  of them is any more. */
    tt_status_t (*begin)(tt_vec_t *self);
    /*  A step each with self->given, into raw, mask and share->out; recv names rows of one share that have come, each once. ready: it would
     *  not wait. */
    tt_status_t (*send)(tt_vec_t *self, vec_share_t *share);
    tt_status_t (*recv)(tt_vec_t *self, uint32_t *first, uint32_t *count);
    bool (*ready)(const tt_vec_t *self);
    tt_status_t (*save)(const tt_vec_t *self, uint32_t i, void *bytes);
    tt_status_t (*load)(tt_vec_t *self, uint32_t i, const void *bytes);
    tt_status_t (*loaded)(tt_vec_t *self, bool *all, uint64_t *moves); /* tt_vec_loaded */
} vec_mover_t;

extern const vec_mover_t vec_each, vec_batch;

struct tt_vec {
    const tt_env_ops_t *ops; /* borrowed; lives as long as the process */
    const vec_mover_t *mover;
    const tt_columns_t *columns;
    bool squash; /* boxes of actions are, and not clipped  */
    uint64_t seed;
    uint32_t lo, count;
    vec_share_t *share;  /* [shares]                            */
    uint32_t shares;     /* >= 1                                */
    uint32_t *share_of;  /* [count] which one an env is in      */
    uint32_t turn;       /* where tt_vec_recv looks first       */
    uint32_t identity;   /* of the env and its arguments        */
    leaf_t *obs_leaf;    /* [obs_count]                         */
    leaf_t *action_leaf; /* [action_count]                      */
    uint8_t *mask;       /* [count][mask_bits], NULL = no mask  */
    uint64_t *clock;     /* [count] steps since the run began   */
    uint64_t *episode;   /* [count] number of this episode      */
    uint32_t *steps;     /* [count] steps into this episode     */
    uint32_t *ending;    /* [endings] whose episode is over, and the next one is to be begun */
    uint32_t endings;

    /* an ordinary table's */
    uint32_t ready;        /* envs whose init has run             */
    size_t stride;         /* bytes from one state to the next    */
    unsigned char *states; /* [count][stride]                     */

    /* a batch's */
    const tt_env_batch_ops_t *batch;
    void *handle;
    bool lent;          /* rows are there                                    */
    tt_env_rows_t rows; /* where the arrays below lie that are not ours      */
    uint64_t *seeded;   /* [count] 1 + the episode that rows.seed is of      */

    void *past[TT_COLUMNS_MAX];        /* of each leaf, [frames - 1][count][elements]; NULL without stacks */
    void *obs[TT_COLUMNS_MAX];         /* of each leaf, as stored [count][elements]               */
    void *raw[TT_COLUMNS_MAX];         /* where the env writes it: the same, or the leaf's scratch */
    void *final[TT_COLUMNS_MAX];       /* by number of the column, [count][elements]              */
    const void *given[TT_COLUMNS_MAX]; /* of each leaf, the actions in the env's form              */
};

static inline void *vec_state(const tt_vec_t *self, uint32_t i)
{
    return self->states + i * self->stride;
}

/*  The draws of a stream for env i. */
tt_env_rng_t vec_rng(const tt_vec_t *self, uint32_t i, tt_rng_stream_t stream, uint64_t counter);

/*  One line of a text that is not ours, without bytes that a terminal would act on. */
void vec_one_line(char *to, size_t room, const char *text);

/*  An episode for env i alone, numbered by its clock: one that has been begun by nobody. */
tt_status_t vec_begin_anew(tt_vec_t *self, uint32_t i, uint64_t clock);

static inline vec_share_t *vec_share_of(const tt_vec_t *self, uint32_t i)
{
    return &self->share[self->share_of[i]];
}

/*  The observation of a column of env i k steps ago; those of the others of its share lie around it. */
static inline char *vec_past(const tt_vec_t *self, uint32_t i, uint32_t k, uint32_t column)
{
    const uint32_t slots = self->columns->stack.frames - 1;
    const size_t slot = (vec_share_of(self, i)->moves + slots - k) % slots;
    return (char *)self->past[column] + (slot * self->count + i) * self->columns->at[column].bytes;
}

/*  Of env i; NULL when there is none. */
static inline uint8_t *vec_mask(const tt_vec_t *self, uint32_t i)
{
    return self->mask ? self->mask + (size_t)i * self->columns->mask_bits : NULL;
}
