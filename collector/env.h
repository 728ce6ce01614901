/*  env - what an environment must offer. Native envs (collector/envs/, one a file) and shared objects
 *  (`env: ./my_env.so`) come through this one table.
 *
 *  An env is plain state of state_size bytes, moved by reset and step. What a shared object needs beyond that it
 *  allocates in init and frees in fini, and it then says how to save and load.
 *
 *  Threads: the calls for one state come from one thread at a time; different states may be moved by different threads.
 *  A call must not block, print or exit. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/rl/space.h"

#define TT_ENV_ABI 1

/*  Limits of a table; the registry refuses what is outside. State and observation fit the wire's limit together. */
#define TT_ENV_MAX_OBS    (1024u * 1024)     /* elements of an observation         */
#define TT_ENV_MAX_ACTION 65536u             /* choices, or elements of an action  */
#define TT_ENV_MAX_STATE  (8u * 1024 * 1024) /* bytes of state_size, of save_size  */

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

typedef struct tt_env_ops {
    uint32_t abi;               /* TT_ENV_ABI                                                        */
    const char *id;             /* Gymnasium's id where there is one: "CartPole-v1"                  */
    const char *summary;        /* one line for `tutti envs`                                         */
    tt_space_t obs;             /* a box                                                             */
    tt_space_t action;          /* discrete, or a box                                                */
    double reward_threshold;    /* mean return at which it counts as solved; NAN = none              */
    uint32_t max_episode_steps; /* truncated there by the caller; 0 = never                          */
    size_t state_size;          /* bytes of one env's state; the caller allocates, 16-byte aligned   */

    /*  (optional) Prepare / release what the state points to. init is called once before the first reset;
     *  0 = ok, anything else fails the run. */
    int (*init)(void *state);
    void (*fini)(void *state);

    /*  Begin an episode; write obs[obs.n]. */
    void (*reset)(void *state, tt_env_rng_t *rng, float *obs);

    /*  One step. action: const int32_t * (discrete) or const float * (box, already clipped to its bounds).
     *  Writes obs and *reward; returns true when the episode has terminated (never for a time limit). */
    bool (*step)(void *state, const void *action, tt_env_rng_t *rng, float *obs, double *reward);

    /*  (optional) `count` states that lie state_size apart (a multiple of 16 then), one step each, without randomness:
     *  action[count][...], obs[count][obs.n], reward[count], terminated[count] (0 or 1). Same results as step. */
    void (*step_many)(void *states, uint32_t count, const void *action, float *obs, float *reward, uint8_t *terminated);

    /*  (optional) Bytes that restore the state elsewhere. NULL save = the state itself is plain data that may be
     *  copied when init is NULL too, and cannot be saved otherwise (the env is reset when it moves).
     *  save writes at most save_size bytes; load returns 0 = ok. */
    size_t save_size;
    void (*save)(const void *state, void *bytes);
    int (*load)(void *state, const void *bytes);
} tt_env_ops_t;

/*  What a shared object exports. The table lives as long as the object is loaded. */
#define TT_ENV_ENTRY "tutti_env"
typedef const tt_env_ops_t *(*tt_env_entry_t)(void);
