/*  columns - experience as a list of columns: what a step of an env consists of, made from its spaces.
 *
 *  Every leaf of a space is a column, in order; a row is one env at one step. Order of the list: the observation's
 *  leaves, the mask (if the env has one), the action's leaves, reward, terminated, truncated, and, where the one who acts
 *  estimates them, log_prob and value. The same list everywhere (collectors, wire, learners); `hash` tells whether two
 *  sides mean the same.
 *
 *  Names:    "obs" or "obs.<path>", "mask", "action" or "action.<path>"; path: dict keys and tuple numbers joined by '.'.
 *  Stored:   f32, u8, i32, i64 as they are; f64 as f32; bool as u8; a choice as i32 counted from 0, whatever the space's
 *            `start`; multi-binary as u8.
 *  Read:     an observation is a network's row: column after column, u8 that is no choice as it is, all else as floats (choices one-hot),
 *            in the order of Gymnasium's flatten. Each begins at a multiple of 4 bytes, and where there are several the row ends
 *            at one, too.
 *  Stacked:   where a job stacks observations, what is stored, sent and read column by column is a *frame*, and a network's row
 *            consists of so many (common/base/stack.h): of each column all frames, oldest first, as if every leaf had one more
 *            axis in front. Without stacks a row is a frame.
 *  Threads:  pure; a list is read-only once made. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/stack.h"
#include "common/rl/spaces.h"

enum { TT_COLUMN_NAME = 64 };

typedef struct {
    char name[TT_COLUMN_NAME];
    tt_dtype_t dtype; /* as stored: F32, U8, I32 or I64                                                   */
    uint32_t rank, shape[TT_RANK_MAX];
    uint32_t elements; /* of a row: product of shape                                                   */
    uint32_t bytes;    /* of a row                                                                     */
    bool keep;         /* has a value after the last step (last) and at each truncation (final), too   */
    bool choice;       /* each element is a choice of choices->choices[first .. first + elements - 1]  */
    uint32_t first;
    uint32_t flat; /* numbers of a row as a dense layer reads it: one-hot choices, else `elements` */
    uint32_t at;   /* of the observation: where these begin in a frame, in bytes                   */
} tt_column_t;

typedef struct {
    uint32_t count;
    tt_column_t at[TT_COLUMNS_MAX];
    uint32_t obs_count;            /* obs leaves: at[0 .. obs_count - 1]                                    */
    int mask;                      /* number of the mask's column, -1 = the env has none                    */
    uint32_t action, action_count; /* action leaves: at[action .. action + action_count - 1]                */
    uint32_t reward, terminated, truncated;
    int log_prob, value; /* -1 = acting does not estimate them                                   */
    tt_stack_t stack;    /* how frames make a network's row                                       */
    uint32_t
        before; /* frames of each env that a segment has before its first row: those that its stacks go back to, where
                            the batch before may be gone                                             */
    uint32_t carry;     /* floats that each env carries into a batch (tt_net_carry); 0: its policy remembers nothing */
    bool state_std;     /* heads end with the row's own log deviations: tt_actor_t; not in the hash */
    bool no_std;        /* numbers have no deviations at all: TT_ACT_MEAN; not in the hash      */
    uint32_t flat;      /* numbers of an observation as a dense layer reads it: of all its frames */
    uint32_t frame;     /* bytes of one as it is read                                            */
    uint32_t row;       /* bytes of a network's row                                              */
    uint32_t scaled;    /* numbers of a frame that the normaliser knows: elements of the f32 ones */
    void *zero;         /* a frame read of stored zeros, owned; NULL where nothing is padded by it */
    uint32_t mask_bits; /* elements of a mask: the choices of all discrete action elements       */
    uint32_t *choices;  /* of every element of every column with `choice`, owned                 */
    uint64_t hash;      /* of all that matters to a reader                                       */
} tt_columns_t;

/*  The list for an env with these spaces; estimates: with log_prob and value. Caller owns. TT_INVALID: more columns, elements or bytes than
 *  common/base/limits.h allows, or a name that does not fit (the text says which leaf). The spaces have passed
 *  tt_space_check. */
tt_status_t tt_columns_new(
    tt_columns_t **self_p, const tt_space_t *obs, const tt_space_t *action, bool mask, bool estimates);
/*  The same, its observations stacked: frames up to TT_STACK_MAX; 0 and 1: they are not. */
tt_status_t tt_columns_new_stacked(tt_columns_t **self_p, const tt_space_t *obs, const tt_space_t *action, bool mask,
    bool estimates, uint32_t frames, tt_pad_t pad);
void tt_columns_destroy(tt_columns_t **self_p);
/*  The policy carries so many floats: they are part of a segment, and of the hash. Once, before anybody reads the list. */
void tt_columns_put_carry(tt_columns_t *self, uint32_t floats);

/*  A column of the observation that stays bytes in a network's row. */
bool tt_column_is_bytes(const tt_column_t *column);
/*  One column of float32 or of bytes and nothing else: what is stored are frames as they are read, wherever they lie. */
bool tt_columns_plain(const tt_columns_t *self);

/*  One frame as a network reads it: out[self->frame], aligned for floats. column[i] -> the row of obs leaf i; it need not be
 *  aligned. */
void tt_columns_read(const tt_columns_t *self, const void *const *column, void *out);
/*  The floats of it that a normaliser works on, in order: out[self->scaled]. */
void tt_columns_scaled(const tt_columns_t *self, const void *const *column, float *out);
/*  Write scaled floats back to their places in a frame. */
void tt_columns_put_scaled(const tt_columns_t *self, const float *scaled, void *frame);
