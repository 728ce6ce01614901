/*  train - the settings of a training job that every role reads (algorithm options have a table of their own).
 *
 *  The job's resolved YAML travels in WELCOME; each role parses it with tt_train_parse. */
#pragma once
#include "common/base/limits.h"
#include "common/base/stack.h"
#include "common/config/config.h"
#include "common/rl/schedule.h"

typedef enum { TT_ACT_TANH, TT_ACT_RELU } tt_activation_t;      /* order of network.activation's choices */
typedef enum { TT_RNN_NONE, TT_RNN_LSTM, TT_RNN_GRU } tt_rnn_t; /* order of network.rnn's choices   */
typedef enum { TT_INIT_ORTHOGONAL, TT_INIT_UNIFORM } tt_init_t; /* order of network.init's choices   */

typedef struct {
    char name[64]; /* of the run: letters, digits, '-', '_', '.'        */
    uint64_t seed;
    char env[512];               /* id, gym:ID, or path of a shared object            */
    tt_cfg_map_t env_args;       /* env.args: what the env is made with               */
    struct {                     /* what else Gymnasium's environments are made with  */
        char python[512];        /* interpreter; "" = found                           */
        char path[1024];         /* folders of modules of one's own, divided by ':'   */
        uint32_t workers;        /* of each collector; 0 = as many as cores           */
        tt_cfg_texts_t wrappers; /* "Name(key=value)"                                 */
        char mask[64];           /* where in `info` it says which choices are allowed; "" = nowhere */
    } gym;
    struct {             /* env.stack: what an observation shows              */
        uint32_t frames; /* 0 and 1: nothing is stacked                       */
        int pad;         /* tt_pad_t                                          */
    } stack;
    struct {                  /* env.frames: what a step of an Atari game is           */
        uint32_t screen_size; /* 0: as the environment has it, and the rest is not read */
        uint32_t frame_skip, noop_max;
        bool terminal_on_life_loss, clip_reward;
    } frames;
    uint32_t num_envs;  /* N                                                 */
    uint32_t num_steps; /* T: steps of every env in a batch                  */
    uint32_t lag;       /* 0 lock-step, 1 pipelined, k asynchronous          */
    struct {
        char name[32];
    } algorithm;
    struct {
        tt_cfg_list_t hidden;
        int activation;                    /* tt_activation_t                                   */
        bool shared;                       /* one trunk for policy and value function           */
        int init;                          /* tt_init_t                                         */
        char encoder[TT_ENCODER_TEXT_MAX]; /* "none", or layers in words (common/job/encoder.h) */
        int rnn;                           /* tt_rnn_t                                          */
        uint32_t rnn_size;                 /* its units                                         */
        char picture[64];                  /* which part of the observation it reads; "" = the only one */
    } network;
    struct {
        bool obs, reward;
        float clip_obs, clip_reward;
    } normalize;
    struct {
        uint32_t replicas;
        char device[32]; /* in words: tt_device_open_wish */
    } collector;
    struct {
        uint32_t replicas, shards, threads;
        char device[32]; /* in words: tt_device_open_wish */
        int precision;   /* tt_precision_t                */
    } learner;
    struct {
        uint32_t replicas; /* 0 = 1 when there can be more than one learner     */
    } aggregator;
    struct {
        uint64_t env_steps; /* 0 = off                                         */
        double return_mean; /* NAN = off                                       */
        double wall_s;      /* NAN = off                                       */
    } stop;
    struct {
        uint64_t every;    /* env steps from one evaluation to the next; 0 = off */
        uint32_t episodes; /* of each                                           */
        uint64_t seed;     /* of their environments                             */
    } eval;
    struct {
        double every_s; /* seconds between snapshots; NAN = only at the end */
        uint32_t keep;  /* newest K, besides best and final                */
    } checkpoint;
    struct {
        uint32_t beat_ms, lease_ms; /* heartbeat, and silence after which a peer counts as dead */
        uint32_t stall_s;           /* no progress for so long: the run fails and says who waits for what */
        bool shared_memory;         /* learners on one host keep partial sums in memory that they share   */
    } net;
    struct {
        char listen[128]; /* "" = this host only; "tcp://ADDRESS:PORT" lets other hosts join */
        char http[128];   /* "127.0.0.1:0"                                                  */
    } coordinator;
    struct {                            /* filled in from the env by `run` and `check`; never written by hand */
        char obs[TT_SPACE_TEXT_MAX];    /* "float32[4]", "{image: uint8[8, 8], speed: float32}" (common/rl/columns.h) */
        char action[TT_SPACE_TEXT_MAX]; /* "discrete(2)"                               */
        bool mask;                      /* it says which choices are allowed           */
        uint32_t env_state;             /* bytes of one saved env, 0 = cannot be saved */
        char env_saves
            [TT_ENV_SAVES_MAX]; /* how one of Gymnasium's is saved: "copy 3072", "replay 2048", "no"; "" = another kind */
        uint32_t divisor;       /* of the picture's bytes: 255, or 1           */
        double threshold;       /* solved at this mean return; NAN = none      */
    } space;
    bool replays;     /* no key: it has replay.*, so a learner that joins has more to fetch than weights */
    tt_actor_t actor; /* filled in from the algorithm, as `space` is from the env */
} tt_train_cfg_t;

extern const tt_cfg_field_t tt_train_fields[];

/*  Is it a key that the program fills in: space.*, actor.*? */
bool tt_train_fills_in(const char *key);

/*  Rules between keys: shards a power of two and a divisor of nothing but the minibatch's rows are the algorithm's
 *  business; here: learner.replicas <= learner.shards, collector.replicas <= num_envs, lease > beat, name's letters.
 *  TT_CONFIG with the origin of the key at fault. */
tt_status_t tt_train_check(const tt_config_t *config, const tt_train_cfg_t *cfg);

/*  No stop rule is set: the run goes on until somebody stops it. */
bool tt_train_endless(const tt_train_cfg_t *cfg);

/*  Does a collector that joins make its envs before it takes part? Those of Gymnasium's, which take seconds; if they could be saved, for else
 *  they begin anew, in processes that have played nothing. */
bool tt_train_collectors_warm(const tt_train_cfg_t *cfg);

/*  Parse a resolved job text: claims tt_train_fields, ignores "algorithm." and "replay.", checks; spaces may be an older
 *  version's. For roles, and for the text that a snapshot holds. */
tt_status_t tt_train_parse(tt_train_cfg_t *out, const char *text, size_t size);
