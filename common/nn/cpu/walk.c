/*  walk - a recurrent network through steps: a forward of each, and what it leaves goes into the next. */
#include <string.h>
#include "common/nn/cpu/cpu.h"

/*  A walk in hand: what is carried is at `left` from the first step on. */
typedef struct {
    const tt_work_t *work;
    size_t floats; /* C */
    uint32_t kept; /* so many of those that are kept are behind it */
} walk_t;

/*  Where an episode begins nothing is carried into it. */
static void s_forget(const walk_t *self, uint32_t k)
{
    const tt_walk_t *of = &self->work->walk.of;
    for (uint32_t r = 0; r < of->rows; r++)
        if (of->begins[k * of->apart + r])
            memset(of->left + r * self->floats, 0, self->floats * sizeof *of->left);
}

static tt_status_t s_step(const walk_t *self, uint32_t k)
{
    const tt_work_t *work = self->work;
    const tt_walk_t *of = &work->walk.of;
    const tt_net_t *net = work->walk.net;
    const size_t at = k * of->apart;
    tt_work_t step = {.kind = TT_WORK_FORWARD,
        .forward = {.net = work->walk.net,
            .set = work->walk.set,
            .obs = work->walk.obs,
            .first = of->first + at,
            .rows = of->rows,
            .carry = {of->left, of->left}}};
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (work->walk.out[t])
            step.forward.out[t] = work->walk.out[t] + at * net->spec.tower[t].out;
    return cpu_forward(&step);
}

static void s_keep(walk_t *self, uint32_t k)
{
    const tt_walk_t *of = &self->work->walk.of;
    const size_t first = of->first + k * of->apart;
    for (; self->kept < of->keeps && of->keep[self->kept] < first + of->rows; self->kept++)
        memcpy(of->kept + self->kept * self->floats, of->left + (of->keep[self->kept] - first) * self->floats,
            self->floats * sizeof *of->left);
}

tt_status_t cpu_walk(const tt_work_t *work)
{
    const tt_walk_t *of = &work->walk.of;
    walk_t walk = {.work = work, .floats = ((const cpu_net_t *)work->walk.net->impl)->carry};
    if (of->left != of->in)
        memcpy(of->left, of->in, of->rows * walk.floats * sizeof *of->left);
    for (uint32_t k = 0; k < of->steps; k++) {
        s_forget(&walk, k);
        TT_TRY(s_step(&walk, k));
        s_keep(&walk, k);
    }
    return TT_OK;
}
