/*  env_batch - the other kind of environment: many at a time behind one handle, which may wait for them: for processes of
 *  their own, a simulator that steps a thousand worlds in one call, a device.
 *
 *  The table begins with an ordinary one, of which only what describes the env is filled in (id to max_episode_steps, and
 *  save_size); its abi says TT_ENV_BATCH_ABI, and the same function hands it out: `return &my_table.env;`.
 *
 *  A range of envs is `count` slots. Slots are anonymous: whoever moves into one loads a state, or begins an episode.
 *  Numbers change hands in arrays that the env owns, so that they can lie where it needs them (shared memory, say), in the
 *  form that collector/env.h gives a leaf. Between two calls of send they belong to the host once recv has named
 *  the row; from send on to the env.
 *
 *      open -> { send -> recv, until every row was named -> ... } -> close
 *
 *  Where an env has shares (rows.shares), each goes its round by itself: some play while the host acts for others.
 *
 *      open -> { send_share of each -> recv, until every row of a share was named -> send_share of that -> ... } -> close
 *
 *  Threads: the calls for one handle come from one thread at a time. A call may wait; it must not print or exit. */
#pragma once
#include "collector/env.h"

#define TT_ENV_BATCH_ABI (TT_ENV_ABI | 0x100)

/*  What a slot does from send to recv. */
enum {
    TT_ENV_STEP,  /* a step with its action                                            */
    TT_ENV_BEGIN, /* an episode with its seed; reward and flags are not looked at      */
    TT_ENV_REST   /* nothing; its row stays as it is                                   */
};

/*  Where numbers change hands: rows [count][...], for each leaf of a space a pointer. The arrays stay where they are. */
typedef struct {
    /* the host writes, before send */
    uint8_t *todo;       /* [count]                                                                     */
    uint32_t *seed;      /* [count] of the episode that the slot begins next: (seed, env, episode) say it   */
    void *const *action; /* as `step` of an ordinary table gets them                                    */

    /* the env writes, before recv */
    void *const *obs; /* what is seen now                                                            */
    uint8_t *mask;    /* which choices are allowed now; NULL unless the table says `mask`             */
    float *reward;
    uint8_t *terminated, *truncated;

    /* (optional) For an env that begins the next episode by itself in the step in which one ended: 1 = so it did, with
     * `seed`; obs and mask are the new episode's, these the old one's last. NULL: the host asks for it, by TT_ENV_BEGIN. */
    uint8_t *begun;
    void *const *final;
    uint8_t *final_mask;

    /* (optional) Shares of the slots, which are sent apart (send_share): share k ends before slot share_end[k], and begins where the one
     * before it ends; the last one ends with the slots. 0: all are sent together. */
    uint32_t shares;
    const uint32_t *share_end; /* [shares] */

    /* (optional) load only notes what a slot is to become, and `loaded` sees to it, for all of them at once. */
    bool loads_later;
} tt_env_rows_t;

struct tt_env_batch_ops;

typedef struct {
    const struct tt_env_batch_ops *ops;
    const tt_env_arg_t *args; /* of the config; ends with key NULL        */
    uint32_t count;           /* slots, >= 1                              */
    uint32_t first;           /* number of slot 0's env in the job, for messages and nothing else */

    /* Another handle of this table and these arguments, which is closed as soon as open is back; NULL = there is none. Open may take out
     * of it what it has use for, processes that are up, say, and what they hold: a state is loaded into each slot before anything
     * else is done with it, or an episode begun where there is none. */
    void *from;
} tt_env_open_t;

/*  Why it failed. lost: by a mishap (something was killed), so that starting again may help; else the env is at fault. */
typedef struct {
    bool lost;
    char text[1024];
} tt_env_why_t;

typedef struct tt_env_batch_ops {
    tt_env_ops_t env;
    bool outside;  /* it plays in processes of its own, with deadlines of its own: nobody need watch over the calls  */
    bool any_args; /* it takes whatever stands in env.args, and says itself what will do; else env.options lists them */

    /*  Each returns true, or false and *why; after that only close is called (after open not even that). */
    bool (*open)(void **self, const tt_env_open_t *how, tt_env_rows_t *rows, tt_env_why_t *why);
    bool (*send)(void *self, tt_env_why_t *why);
    /*  Waits for rows: *first and *count say which have come. Every row is named once for each send, in any order; rows of two shares not
     *  by one call. */
    bool (*recv)(void *self, uint32_t *first, uint32_t *count, tt_env_why_t *why);
    /*  May come while rows are under way, after a failure. */
    void (*close)(void *self);

    /*  (optional) env.save_size bytes that restore a slot elsewhere; not while any row is under way. All of them 0: this state
     *  could not be saved, and load is not called for it; the slot begins an episode instead. */
    bool (*save)(void *self, uint32_t slot, void *bytes, tt_env_why_t *why);
    bool (*load)(void *self, uint32_t slot, const void *bytes, tt_env_why_t *why);

    /*  (where open has set rows.shares, else they are not looked at) In the place of send: the slots of share `which`. Others may be under
     *  way. ready (NULL = nobody knows): recv would return rows at once. */
    bool (*send_share)(void *self, uint32_t which, tt_env_why_t *why);
    bool (*ready)(void *self);

    /*  (where open has set rows.loads_later, else it is not looked at) After load of some slots, again and again until *all of them are what they
     *  are to become, and before any is sent: waits for that, a second at most. *moves grows while they get on. */
    bool (*loaded)(void *self, bool *all, uint64_t *moves, tt_env_why_t *why);
} tt_env_batch_ops_t;

/*  The batch that a table is of; NULL: it is an ordinary one. */
static inline const tt_env_batch_ops_t *tt_env_batch(const tt_env_ops_t *ops)
{
    return ops->abi == TT_ENV_BATCH_ABI ? (const tt_env_batch_ops_t *)(const void *)ops : NULL;
}
