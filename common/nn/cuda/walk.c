/*  walk - a recurrent network through steps of a table. Sequences go side by side as those of a pass do (recurrent.c): what a step reads goes
 *  through the towers with all the others, and only what is carried step by step. It stays on the card until the last one. */
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"

enum { ROWS_AT_ONCE = 8192 }; /* as of forward.c: so that a walk of any length needs room for so many, or for a step */

/*  So many steps from `at` on, which lie side by side on the card, a step's rows after the other's. */
typedef struct {
    cuda_stream_t *stream;
    const tt_work_t *work;
    const tt_walk_t *of;
    cuda_net_t *net;
    cuda_device_t *device;
    size_t floats; /* C */
    uint32_t at, steps;
    uint32_t keep, keeps; /* the first of those that are kept in these steps, and how many */
    cuda_flow_t flow;
} part_t;

/*  What a card is told of the part. */
typedef struct {
    uint32_t *first; /* [rows]                            */
    uint32_t *apart; /* [rows]                            */
    uint32_t *row;   /* [steps rows] numbers in the table */
    uint32_t *keep;  /* [keeps] rows of the part          */
    uint8_t *begins; /* [steps rows]                      */
} lists_t;

/*  What a walk takes beside the flow, in impl->walked. */
typedef struct {
    float *carry[2]; /* [rows][C] into a part and out of it, which change places with the next */
    float *kept;     /* [keeps][C] of all parts                                                */
    char *lists;
    size_t bytes; /* before the lists */
} room_t;

static size_t s_rows(const part_t *self)
{
    return (size_t)self->steps * self->of->rows;
}

/*  How many bytes they take. */
static size_t s_carve_lists(const part_t *self, char *memory, lists_t *out)
{
    uint32_t **const list[] = {&out->first, &out->apart, &out->row, &out->keep};
    const size_t count[] = {self->of->rows, self->of->rows, s_rows(self), self->keeps};
    size_t at = 0;
    for (size_t i = 0; i < TT_COUNT(list); i++) {
        *list[i] = memory ? (uint32_t *)(void *)(memory + at) : NULL;
        at += count[i] * sizeof **list;
    }
    out->begins = memory ? (uint8_t *)memory + at : NULL;
    return at + s_rows(self);
}

/*  Without memory it is only counted. */
static void s_carve(const part_t *self, char *memory, room_t *out)
{
    out->bytes = 0;
    for (int i = 0; i < 2; i++)
        out->carry[i] = cuda_carve(memory, &out->bytes, self->of->rows, self->floats);
    out->kept = cuda_carve(memory, &out->bytes, self->of->keeps, self->floats);
    out->lists = memory ? memory + out->bytes : NULL;
}

/*  Where a row of the table is in the part. */
static uint32_t s_place(const part_t *self, uint32_t number)
{
    const size_t at = number - self->of->first;
    return (uint32_t)((at / self->of->apart - self->at) * self->of->rows + at % self->of->apart);
}

static void s_fill(const part_t *self, const lists_t *list)
{
    const tt_walk_t *of = self->of;
    for (uint32_t r = 0; r < of->rows; r++) {
        list->first[r] = r;
        list->apart[r] = of->rows;
    }
    for (uint32_t k = 0; k < self->steps; k++) {
        const size_t from = (self->at + k) * of->apart, to = (size_t)k * of->rows;
        memcpy(list->begins + to, of->begins + from, of->rows);
        for (uint32_t r = 0; r < of->rows; r++)
            list->row[to + r] = (uint32_t)(of->first + from + r);
    }
    for (uint32_t i = 0; i < self->keeps; i++)
        list->keep[i] = s_place(self, of->keep[self->keep + i]);
}

/*  list: where they are on the card. */
static tt_status_t s_send_lists(const part_t *self, const room_t *room, lists_t *list)
{
    const size_t bytes = s_carve_lists(self, room->lists, list);
    void *stage = NULL;
    lists_t here;
    TT_TRY(cuda_stage(self->device, bytes, &stage));
    s_carve_lists(self, stage, &here);
    s_fill(self, &here);
    return cuda_said(self->device,
        cudaMemcpyAsync(room->lists, stage, bytes, cudaMemcpyHostToDevice, self->device->work), "a copy to the card");
}

static tt_status_t s_launch(part_t *self, const room_t *room, const lists_t *list, int now)
{
    const tt_net_t *net = self->work->walk.net;
    const tt_table_t *obs = self->work->walk.obs;
    const uint32_t rows = (uint32_t)s_rows(self);
    cuda_forward_t job = {
        .set = self->work->walk.set, .from = {.count = rows, .rows = obs->copy, .bytes = obs->bytes, .row = list->row}};
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (self->work->walk.out[t] || tt_tower_recurs(self->net->tower[t].kind))
            job.towers |= self->net->tower[t].chain;
    TT_TRY(cuda_cells(&self->flow, net,
        &(cuda_sequences_t){.count = self->of->rows,
            .length = self->steps,
            .first = list->first,
            .apart = list->apart,
            .begins = list->begins,
            .carry = room->carry[now],
            .carry_floats = (uint32_t)self->floats},
        false));
    for (uint32_t t = 0; t < net->spec.towers; t++)
        self->flow.cells[t].carry_out = room->carry[!now];
    cuda_gather_rows(&self->flow, &job.from);
    cuda_towers_forward(&self->flow, net, &job);
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (tt_tower_recurs(self->net->tower[t].kind))
            cuda_cells_keep(self->device->work, &self->flow.cells[t],
                &(cuda_keep_t){
                    self->keeps, list->keep, room->kept + self->keep * self->floats, (uint32_t)self->floats});
    return cuda_launched(self->device, "steps of a recurrent network");
}

/*  A step's go where its rows are. */
static tt_status_t s_hand_out(const part_t *self)
{
    return cuda_hand_out(&self->flow, &(cuda_heads_t){.to = self->work->walk.out,
                                          .at = self->at * (size_t)self->of->apart,
                                          .rows = self->of->rows,
                                          .steps = self->steps,
                                          .apart = self->of->apart});
}

/*  The steps from `at` on that are done at once, and what is kept of them. */
static void s_next(part_t *self)
{
    const tt_walk_t *of = self->of;
    const uint32_t most = of->rows < ROWS_AT_ONCE ? ROWS_AT_ONCE / of->rows : 1, left = of->steps - self->at;
    self->steps = left < most ? left : most;
    self->keep += self->keeps;
    self->keeps = 0;
    const size_t end = of->first + ((size_t)self->at + self->steps) * of->apart;
    while (self->keep + self->keeps < of->keeps && of->keep[self->keep + self->keeps] < end)
        self->keeps++;
}

static tt_status_t s_part(part_t *self, int now)
{
    room_t room;
    lists_t list;
    TT_TRY(cuda_flow(&self->flow, self->work->walk.net, (uint32_t)s_rows(self), false));
    s_carve(self, self->net->walked.memory, &room);
    if (self->at == 0)
        TT_TRY(cuda_up(self->device, room.carry[now], self->of->in, self->of->rows * self->floats * sizeof(float)));
    TT_TRY(s_send_lists(self, &room, &list));
    TT_TRY(s_launch(self, &room, &list, now));
    TT_TRY(s_hand_out(self));
    TT_TRY(cuda_down(self->stream, self->of->kept + self->keep * self->floats, room.kept + self->keep * self->floats,
        self->keeps * self->floats * sizeof(float)));
    if (self->at + self->steps < self->of->steps)
        return TT_OK;
    return cuda_down(self->stream, self->of->left, room.carry[!now], self->of->rows * self->floats * sizeof(float));
}

/*  As for a part with all that is kept: none needs more. */
static tt_status_t s_make_room(const part_t *self)
{
    part_t most = *self;
    room_t room;
    lists_t list;
    s_next(&most);
    most.keeps = self->of->keeps;
    s_carve(&most, NULL, &room);
    return cuda_reserve(self->device, &self->net->walked, room.bytes + s_carve_lists(&most, NULL, &list));
}

tt_status_t cuda_walk(cuda_stream_t *stream, const tt_work_t *work)
{
    cuda_net_t *net = work->walk.net->impl;
    part_t part = {.stream = stream,
        .work = work,
        .of = &work->walk.of,
        .net = net,
        .device = (cuda_device_t *)work->walk.net->device,
        .floats = net->carry};
    TT_TRY(s_make_room(&part));
    for (int now = 0; part.at < part.of->steps; part.at += part.steps, now = !now) {
        s_next(&part);
        TT_TRY(s_part(&part, now));
    }
    return TT_OK;
}
