/*  past - the batches that a replay holds: storage, ends of episodes, eviction.
 *
 *  A batch is one block of memory, its columns [T][N] as they came; finals are records of the kept columns, ordered by row.
 *  What came after the newest row (`tip`) is held once: the next batch's first row says the same, or it becomes the final
 *  of an env that broke.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "learner/replay/replay.h"

/*  Of a row. */
enum {
    ROW_TERMINATED = 1,
    ROW_CUT = 2, /* has a final: truncated, or its env broke after it           */
    ROW_ENDS = ROW_TERMINATED | ROW_CUT,
    ROW_WHOLE = 4, /* the frames that its stack shows were inserted               */
    ROW_ALIVE = 8, /* a unit that can be drawn                                    */
    SINCE_MAX = 255
};

typedef struct {
    uint64_t batch;
    uint64_t place;                  /* in the ring of frames: where its rows begin, places.h */
    void *block;                     /* owned: all arrays but the finals              */
    uint8_t *column[TT_COLUMNS_MAX]; /* [T][N] rows; NULL = not stored                */
    uint32_t *age;                   /* [N]                                           */
    float *carry;                    /* [N][carry] into its first rows                */
    uint8_t *broken;                 /* [N] its first row does not go on from the one before */
    uint8_t *mark;                   /* [T][N] ROW_...                                */
    uint8_t *since;                  /* [T][N] rows of its episode before it, SINCE_MAX at most */
    uint32_t finals, finals_room;
    uint32_t *final_row; /* [finals] t * N + env, ascending               */
    uint8_t *final;      /* [finals][record]                              */
} past_batch_t;

typedef struct {
    replay_cfg_t cfg;
    size_t record;                    /* bytes of a final                                         */
    size_t record_at[TT_COLUMNS_MAX]; /* of each stored, kept column in it                        */
    uint64_t row_bytes, final_bytes;  /* logical                                                  */
    uint64_t batch_bytes;             /* logical, without finals: rows, and what is carried       */
    uint64_t block_bytes;
    uint64_t room;          /* batches at most                                          */
    uint64_t places;        /* frames of the ring, places.h                             */
    past_batch_t **ring;    /* [mask + 1] by batch & mask                               */
    uint64_t mask;          /* a power of two, of `room` at least, less 1               */
    past_batch_t *spare;    /* evicted last, to be used again                           */
    uint64_t first, next;   /* living batches: first .. next - 1                        */
    uint8_t *tip;           /* [N][record] after the newest row                         */
    uint8_t *held, *age;    /* [N] scratch of past_mark; held goes on from batch to batch  */
    uint64_t bytes, finals; /* logical, living                                          */
    uint64_t finals_room;   /* of all batches, the spare one too                        */
} past_t;

/*  Sizes and limits; nothing is allocated. */
tt_status_t past_measure(past_t *self, const replay_cfg_t *cfg);
tt_status_t past_init(past_t *self, const replay_cfg_t *cfg);
void past_free(past_t *self);

/*  May this batch follow, and is it whole? TT_INVALID. */
tt_status_t past_check(const past_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts);
/*  Logical bytes of a batch that passed. */
uint64_t past_bytes(const past_t *self, const replay_part_t *part, uint32_t parts);
/*  End the episodes of envs that broke. */
void past_cut(past_t *self, const uint8_t *broken);
/*  Copy it in; there is room. */
void past_add(past_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts, const uint8_t *broken);
/*  Is this what the newest batch, and what came after it, was made of? */
bool past_has(const past_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts, const uint8_t *broken);
/*  The oldest one goes. */
void past_evict(past_t *self);

/*  For loading: an empty batch with room for finals; mark it once its arrays are filled, in order. */
past_batch_t *past_push(past_t *self, uint64_t batch, uint32_t finals);
void past_mark(past_t *self, past_batch_t *batch);

static inline bool past_stores(const past_t *self, uint32_t column)
{
    return self->cfg.store >> column & 1;
}
static inline bool past_keeps(const past_t *self, uint32_t column)
{
    return past_stores(self, column) && self->cfg.columns->at[column].keep;
}
static inline past_batch_t *past_batch(const past_t *self, uint64_t batch)
{
    return self->ring[batch & self->mask];
}
/*  Batches in which the rows of a sequence lie that must be there, with those ahead of it; the last frame may be the tip. 0: units
 *  are rows. */
static inline uint64_t past_span(const replay_cfg_t *cfg)
{
    return cfg->length ? ((uint64_t)cfg->burn + cfg->length + cfg->ahead - 1 + cfg->T - 1) / cfg->T : 0;
}
/*  First clock that is held, and the one to come. */
static inline uint64_t past_oldest(const past_t *self)
{
    return self->first * self->cfg.T;
}
static inline uint64_t past_end(const past_t *self)
{
    return self->next * self->cfg.T;
}

/*  A row: its batch, and its number there. */
typedef struct {
    const past_batch_t *in;
    size_t at; /* t * N + env */
} past_place_t;

static inline past_place_t past_place(const past_t *self, uint64_t clock, uint32_t env)
{
    const uint64_t batch = clock / self->cfg.T;
    return (past_place_t){past_batch(self, batch), (clock - batch * self->cfg.T) * self->cfg.N + env};
}
/*  The row of that env a clock later, a clock earlier: it is held. */
static inline past_place_t past_after(const past_t *self, past_place_t place)
{
    const size_t rows = (size_t)self->cfg.T * self->cfg.N, at = place.at + self->cfg.N;
    return at < rows ? (past_place_t){place.in, at} : (past_place_t){past_batch(self, place.in->batch + 1), at - rows};
}
static inline past_place_t past_before(const past_t *self, past_place_t place)
{
    const size_t rows = (size_t)self->cfg.T * self->cfg.N, at = place.at + rows - self->cfg.N;
    return at >= rows ? (past_place_t){place.in, at - rows} : (past_place_t){past_batch(self, place.in->batch - 1), at};
}
/*  Is there no row after it yet? */
static inline bool past_is_newest(const past_t *self, past_place_t place)
{
    return place.in->batch + 1 == self->next && place.at + self->cfg.N >= (size_t)self->cfg.T * self->cfg.N;
}
static inline const uint8_t *past_value(const past_t *self, past_place_t place, uint32_t column)
{
    return place.in->column[column] + place.at * self->cfg.columns->at[column].bytes;
}
/*  The final of a row that is cut: its number among those of its batch, and its record. */
uint32_t past_final_number(const past_batch_t *batch, size_t at);
static inline const uint8_t *past_final(const past_t *self, const past_batch_t *batch, uint32_t number)
{
    return batch->final + number * self->record;
}
