/*  env - what an environment must offer. Native envs (collector/envs/, one a file) and shared objects
 *  (`env: ./my_env.so`) come through this one table.
 *
 *  An env is plain state of state_size bytes, moved by reset and step. What a shared object needs beyond that it
 *  allocates in init and frees in fini, and it then says how to save and load.
 *
 *  Threads: the calls for one state come from one thread at a time; different states may be moved by different threads.
 *  A call must not block, print or exit. */
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "common/rl/space.h"

#define TT_ENV_ABI 2

/*  Limit of a table; those of spaces are common/base/limits.h's. State and observation fit the wire's limit together. */
#define TT_ENV_MAX_STATE (8u * 1024 * 1024) /* bytes of state_size, of save_size  */

/*  Randomness handed to reset and step: counter-based, so that an episode can be played again anywhere.
 *  rng->next(rng) is the next 32-bit word; use the helpers below. */
typedef struct tt_env_rng tt_env_rng_t;
struct tt_env_rng {
    uint32_t (*next)(tt_env_rng_t *self);
    uint64_t seed, counter; /* private to the caller, as are the next three */
    uint32_t stream, who;
    uint32_t words[4], left;
};

static inline double tt_env_uniform(tt_env_rng_t *rng, double low, double high)
{
    const uint64_t a = rng->next(rng) >> 5, b = rng->next(rng) >> 6;
    return low + (high - low) * ((double)(a * 67108864 + b) * 0x1p-53);
}

/*  What the config says under env.args: YAML's scalars as text, nested keys joined by '.'; ends with key NULL. */
typedef struct {
    const char *key, *value;
} tt_env_arg_t;

/*  The value of an argument, `initial` where it is not given. */
static inline const char *tt_env_arg_text(const tt_env_arg_t *args, const char *key, const char *initial)
{
    for (; args && args->key; args++)
        if (strcmp(args->key, key) == 0)
            return args->value;
    return initial;
}

/*  As a number; NAN when it is not one. */
static inline double tt_env_arg_number(const tt_env_arg_t *args, const char *key, double initial)
{
    const char *text = tt_env_arg_text(args, key, NULL);
    char *end = NULL;
    const double number = text ? strtod(text, &end) : initial;
    return end && (end == text || *end) ? (double)NAN : number;
}

/*  An argument that the env takes; a list of them ends with name NULL. */
typedef struct {
    const char *name, *initial, *help;
} tt_env_option_t;

/*  What a reset or a step fills in. */
typedef struct {
    void *const *obs; /* [leaves of the observation space] obs[0] is all of it for a box: float * (F32), double * (F64),
                         uint8_t * (U8, BOOL, multi-binary), int32_t * (I32, choices), int64_t * (I64)                  */
    uint8_t *mask;    /* [choices of all discrete action elements, in order] 1 = allowed; all 1 before the call.
                         NULL unless the table says `mask`                                                              */
    double reward; /* of a step                                                                                      */
    bool
        terminated; /* the episode has ended; false before the call                                                   */
    bool truncated; /* it was cut for a reason of the env's own (not for max_episode_steps); false before the call    */
} tt_env_out_t;

/*  The same for many envs: arrays [count][...]. */
typedef struct {
    void *const *obs;
    uint8_t *mask;
    float *reward;
    uint8_t *terminated, *truncated;
} tt_env_many_t;

typedef struct tt_env_ops {
    uint32_t abi;                   /* TT_ENV_ABI                                                        */
    const char *id;                 /* Gymnasium's id where there is one: "CartPole-v1"                  */
    const char *summary;            /* one line for `tutti envs`                                         */
    tt_space_t obs;                 /* any space                                                         */
    tt_space_t action;              /* choices, boxes, and dicts and tuples of these                     */
    bool mask;                      /* reset and step say which choices are allowed next                 */
    const tt_env_option_t *options; /* (optional) what env.args may hold; needs init                     */
    double reward_threshold;        /* mean return at which it counts as solved; NAN = none              */
    uint32_t max_episode_steps;     /* truncated there by the caller; 0 = never                          */
    size_t state_size;              /* bytes of one env's state; the caller allocates, 16-byte aligned   */

    /*  (optional) Prepare / release what the state points to. init is called once before the first reset; it returns NULL
     *  = ok, or the reason why the run must fail (copied at once; fini is not called then). */
    const char *(*init)(void *state, const tt_env_arg_t *args);
    void (*fini)(void *state);
    bool plain; /* init makes nothing that the state points to: it may be copied all the same             */

    /*  Begin an episode: write obs, and mask. */
    void (*reset)(void *state, tt_env_rng_t *rng, tt_env_out_t *out);

    /*  One step. action: [leaves of the action space]: const int32_t * (choices, `start` included), const uint8_t *
     *  (multi-binary), const float * or const double * (box, already clipped to its bounds). */
    void (*step)(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out);

    /*  (optional) `count` states that lie state_size apart (a multiple of 16 then), one step each, without randomness.
     *  Flags are 0 before the call, masks 1. Same results as step. */
    void (*step_many)(void *states, uint32_t count, const void *const *action, const tt_env_many_t *out);

    /*  (optional) Bytes that restore the state elsewhere. NULL save = the state itself is plain data that may be
     *  copied when init is NULL or the table says `plain`, and cannot be saved otherwise (the env is reset when it moves).
     *  save writes at most save_size bytes; load returns 0 = ok. */
    size_t save_size;
    void (*save)(const void *state, void *bytes);
    int (*load)(void *state, const void *bytes);
} tt_env_ops_t;

/*  What a shared object exports. The table lives as long as the object is loaded. */
#define TT_ENV_ENTRY "tutti_env"
typedef const tt_env_ops_t *(*tt_env_entry_t)(void);
