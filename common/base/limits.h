/*  limits - how large things may be, where more than one module has to agree on it.
 *
 *  Each stands here once: the table of config keys, the messages, the network, segments, snapshots and the roles all use
 *  these names, so that what a config may say is what the rest can do (docs/internals/config.md, "Limits"). */
#pragma once
#include <stddef.h>

enum {
    /* a batch */
    TT_ENVS_MAX = 65536,
    TT_STEPS_MAX = 65536,
    TT_BATCH_ROWS_MAX = 1 << 26,  /* envs x steps: row numbers fit in 32 bits with room to spare    */
    TT_EVAL_EPISODES_MAX = 10000, /* of an evaluation beside training                               */
    TT_SEGMENTS_MAX = 64,         /* of a batch, as large as they may be                            */
    TT_LAG_MAX = 64,              /* updates                                                        */

    /* who takes part */
    TT_LEARNERS_MAX = 256, /* a learner needs a shard                                              */
    TT_SHARDS_OF_JOB_MAX = TT_LEARNERS_MAX,
    TT_THREADS_MAX = 256, /* of one learner                                                        */
    TT_AGGREGATORS_MAX = 64,
    TT_MEMBERS_MAX = 4096, /* of a roster, all roles together; segments that a batch is made of    */
    TT_COLLECTORS_MAX = TT_MEMBERS_MAX - TT_LEARNERS_MAX - TT_AGGREGATORS_MAX,

    /* a network */
    TT_LAYERS_MAX = 8,      /* hidden ones                                                              */
    TT_UNITS_MAX = 1 << 16, /* of a layer; elements of an observation, actions                     */
    TT_PARAMS_MAX = 1 << 28,
    TT_SEQUENCES_MAX_MIB = 16384, /* of a learner's sequences, on the way through them, in all of its threads        */
    TT_EPSILON_POWER_MAX = 100,   /* of epsilons by env (common/rl/schedule.h)                                   */
    TT_QUANTILES_MAX = 200,       /* of a choice's return                                                        */
    TT_ATOMS_MAX = 200,           /* the same                                                                    */
    TT_SIGMA_MAX = 10,            /* of noise beside numbers within -1 and 1 (common/rl/schedule.h)              */
    TT_NOISE_MAX = 100,           /* at first, of a noisy layer: its deviations are noise / sqrt(inputs)         */
    TT_TOWERS_MAX = 8,            /* groups too                                                                 */
    TT_PARTS_MAX = 64,            /* of an observation's row                                                    */
    TT_ENCODER_LAYERS_MAX = 128,  /* of all encoders of a network                                            */
    TT_ACTIVATIONS_MAX = 1 << 22, /* numbers of a row between an encoder's layers, its observation among them */
    TT_EMBEDDED_MAX = 256,        /* elements of choices that an encoder's layers embed, of all together       */
    TT_ENCODER_TEXT_MAX = 2048,   /* bytes of an encoder in words                                             */
    TT_SETS_MAX = 4,              /* copies of the parameters                                                   */
    TT_STAGES_MAX = 12,           /* forwards of an objective                                                   */
    TT_RIDE_MAX = 1 << 20,        /* floats behind the statistics                                              */
    TT_INPUTS_MAX = 80,           /* tables that a loss reads                                                   */
    TT_LOSS_PARAMS_MAX = 256,     /* bytes of its parameters                                                 */

    /* a row (common/rl/columns.h) */
    TT_COLUMNS_MAX = 64,         /* columns of one                                               */
    TT_ELEMENTS_MAX = 1 << 20,   /* of one leaf of a space                                       */
    TT_CHOICES_MAX = 1 << 16,    /* of one discrete element; of all of an action together        */
    TT_STACK_MAX = 64,           /* frames that an observation shows                             */
    TT_ROW_MAX = 1 << 23,        /* bytes of all columns of a row                                */
    TT_SPACE_TEXT_MAX = 1 << 12, /* bytes of a space in words                                    */
    TT_ENV_ARGS_MAX = 32,        /* arguments of an env in the config                            */

    /* time, ms */
    TT_BEAT_MS_MAX = 60000,
    TT_LEASE_MS_MAX = 600000,

    /* bytes */
    TT_CONFIG_TEXT_MAX = 1 << 18, /* of a resolved config: it travels in WELCOME                  */
    TT_SEGMENT_MAX = 1 << 29,     /* of one segment, without finals: they double it               */
    TT_FRAME_MAX = 1 << 30,       /* of a segment, weights, a snapshot that travels               */
    TT_FRAME_SLACK = 1 << 12,     /* what may stand beside that                                   */
    TT_GROUPS_TEXT_MAX = 256,     /* of the words that say what the groups of a network are        */
    TT_ENV_SAVES_MAX = 32,        /* of the words that say how an env is saved                    */
    TT_ENV_STATE_MAX = 1 << 24,   /* of one saved env, with what the vector keeps of it           */
};
