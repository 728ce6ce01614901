/*  parts - what the files of a replay share. */
#pragma once
#include "learner/replay/units.h"

/*  A minibatch whose priorities are not seen yet. */
typedef struct {
    uint64_t total;
    uint32_t units; /* 0: none here                       */
    bool given;
    uint64_t *unit; /* [units]                            */
    float *p;       /* [units], once given                */
    uint32_t room;
} replay_late_t;

struct replay {
    past_t past;
    units_t units;
    float max_priority;
    replay_late_t *late; /* [lates] by total % lates            */
    uint32_t lates;      /* priority_delay + 2; 0: uniform      */
    uint64_t total;      /* of the newest step that was drawn   */
    /* of the newest minibatch */
    uint64_t *unit; /* [room] */
    double *aim;    /* [room] scratch: where in their stripe's sum they lie */
    float *weight;
    float *ret, *discount; /* [room] or [length][room], */
    uint32_t *next;        /* of sequences alone        */
    uint32_t room;
};

static inline bool replay_uniform(const replay_t *self)
{
    return self->past.cfg.alpha == 0;
}
/*  A place among the late ones for a minibatch of so many units. */
replay_late_t *replay_late(replay_t *self, uint64_t total, uint32_t units);
