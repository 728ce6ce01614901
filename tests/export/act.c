/*  act CHECKPOINT STEPS [MASKS] - what a checkpoint's policy makes of observations, as `tutti eval` does it: flattened, not yet normalised
 *  (float [rows][flat]), they come in on stdin. Out go, for each row, the head (float), the critic's value where there is one (float),
 *  what a recurrent policy carries on (float), and the most probable action as the env gets it, part by part: int32 for each choice, float for each number. To a recurrent policy rows
 *  are steps that follow one another, and an episode begins every STEPS of them. MASKS is a file of masks [rows][choices]. For
 *  policies.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/checkpoint.h"
#include "common/base/mem.h"
#include "common/nn/math/activation.h"
#include "common/rl/policy.h"
#include "common/rl/spaces.h"

typedef struct {
    checkpoint_t checkpoint;
    tt_policy_t policy;
    tt_space_t *space;                      /* of an action */
    const tt_space_t *leaf[TT_COLUMNS_MAX]; /* of it        */
    void *action[TT_COLUMNS_MAX];           /* one row      */
    float *in, *scaled, *head, value;
    uint8_t *obs;              /* the frames of one row, as the network reads them */
    size_t frame;              /* bytes from one to the next */
    float *carry;              /* of a recurrent policy: from row to row */
    unsigned long steps, done; /* rows of an episode, and of all */
    FILE *masks;               /* NULL = everything is allowed */
    uint8_t *mask;             /* one row                      */
} act_t;

static tt_status_t s_open(act_t *self, const char *path, const char *steps, const char *masks)
{
    TT_TRY(checkpoint_open(&self->checkpoint, path, "cpu"));
    self->steps = strtoul(steps, NULL, 10);
    if (self->steps == 0)
        return tt_err(TT_INVALID, "%s steps are no episode", steps);
    self->masks = masks ? fopen(masks, "rb") : NULL;
    if (masks && !self->masks)
        return tt_err_errno(TT_IO, "%s", masks);
    const tt_columns_t *columns = self->checkpoint.columns;
    tt_policy_of(&self->policy, columns);
    TT_TRY(tt_space_parse(&self->space, self->checkpoint.cfg.space.action));
    TT_CHECK(tt_space_leaves(self->space, self->leaf, TT_COLUMNS_MAX) == columns->action_count);
    self->in = tt_array0(columns->flat, sizeof *self->in);
    self->frame = (columns->frame + 63) / 64 * 64;
    self->obs = tt_aligned0(columns->stack.frames * self->frame);
    self->scaled = tt_array0(columns->scaled + 1, sizeof *self->scaled);
    self->head = tt_array0(self->policy.out, sizeof *self->head);
    self->mask = tt_array0(self->policy.mask_bits + 1, sizeof *self->mask);
    self->carry = tt_array0(columns->carry + 1, sizeof *self->carry);
    for (uint32_t k = 0; k < columns->action_count; k++)
        self->action[k] = tt_aligned0(columns->at[columns->action + k].bytes);
    return TT_OK;
}

static void s_close(act_t *self)
{
    for (size_t k = 0; k < TT_COUNT(self->action); k++)
        free(self->action[k]);
    free(self->in);
    free(self->obs);
    free(self->scaled);
    free(self->head);
    free(self->mask);
    free(self->carry);
    if (self->masks)
        fclose(self->masks);
    tt_space_free(&self->space);
    checkpoint_close(&self->checkpoint);
}

/*  Numbers of a leaf that all its frames have. */
static uint32_t s_numbers(const tt_columns_t *columns, uint32_t c)
{
    return columns->stack.frames * columns->at[c].flat;
}

/*  What was read, as frames of the network's row: a leaf has one frame after the other. */
static void s_lay(act_t *self, uint32_t frame)
{
    const tt_columns_t *columns = self->checkpoint.columns;
    const float *flat = self->in;
    for (uint32_t c = 0; c < columns->obs_count; flat += s_numbers(columns, c++)) {
        const float *own = flat + frame * columns->at[c].flat;
        uint8_t *to = self->obs + frame * self->frame + columns->at[c].at;
        for (uint32_t i = 0; tt_column_is_bytes(&columns->at[c]) && i < columns->at[c].flat; i++)
            to[i] = (uint8_t)own[i];
        if (!tt_column_is_bytes(&columns->at[c]))
            memcpy(to, own, columns->at[c].flat * sizeof *own);
    }
}

/*  The float32 parts of a frame, normalised in place. */
static void s_normalise(act_t *self, uint32_t frame)
{
    const tt_columns_t *columns = self->checkpoint.columns;
    float *scaled = self->scaled;
    const float *flat = self->in;
    for (uint32_t c = 0; c < columns->obs_count; flat += s_numbers(columns, c++))
        for (uint32_t i = 0; columns->at[c].dtype == TT_F32 && i < columns->at[c].elements; i++)
            *scaled++ = flat[frame * columns->at[c].flat + i];
    tt_norm_scale(self->checkpoint.norm, self->scaled, 1, self->checkpoint.cfg.normalize.clip_obs, self->scaled);
    tt_columns_put_scaled(columns, self->scaled, self->obs + frame * self->frame);
}

/*  Where it is squashed, -1 .. 1 stand for the bounds. */
static void s_write_number(const act_t *self, float x)
{
    const float out = self->checkpoint.cfg.actor.squash ? tt_tanhf(x) : x;
    fwrite(&out, sizeof out, 1, stdout);
}

static void s_write_part(const act_t *self, uint32_t k)
{
    const tt_columns_t *columns = self->checkpoint.columns;
    const tt_column_t *column = &columns->at[columns->action + k];
    const int64_t *start = self->leaf[k]->start;
    for (uint32_t i = 0; i < column->elements; i++) {
        const int32_t choice =
            column->dtype == TT_U8 ? ((const uint8_t *)self->action[k])[i] : ((const int32_t *)self->action[k])[i];
        const int32_t moved = choice + (int32_t)(start ? start[i] : 0);
        if (column->choice)
            fwrite(&moved, sizeof moved, 1, stdout);
        else
            s_write_number(self, ((const float *)self->action[k])[i]);
    }
}

static tt_status_t s_run(act_t *self, const void *const *row, float *const *out)
{
    const tt_carry_t carry = {.in = self->carry, .out = self->carry};
    const uint32_t floats = self->checkpoint.columns->carry;
    if (self->done++ % self->steps == 0)
        memset(self->carry, 0, floats * sizeof *self->carry);
    return tt_inference_run(self->checkpoint.net, row, 1, floats ? &carry : NULL, out);
}

static tt_status_t s_act(act_t *self)
{
    const void *row[TT_STACK_MAX];
    for (uint32_t f = 0; f < self->checkpoint.columns->stack.frames; f++) {
        s_lay(self, f);
        if (self->checkpoint.norm)
            s_normalise(self, f);
        row[f] = self->obs + f * self->frame;
    }
    float *out[TT_TOWERS_MAX] = {NULL};
    const tt_net_spec_t *spec = tt_net_spec(tt_inference_net(self->checkpoint.net));
    const uint32_t actor = tt_net_tower(spec, "actor");
    const uint32_t critic = tt_net_tower(spec, "critic");
    out[actor < spec->towers ? actor : tt_net_tower(spec, "q")] = self->head;
    if (critic < spec->towers)
        out[critic] = &self->value;
    TT_TRY(s_run(self, row, out));
    fwrite(self->head, sizeof *self->head, self->policy.out, stdout);
    fwrite(&self->value, sizeof self->value, critic < spec->towers, stdout);
    fwrite(self->carry, sizeof *self->carry, self->checkpoint.columns->carry, stdout);
    const uint32_t bits = self->policy.mask_bits;
    if (self->masks && fread(self->mask, 1, bits, self->masks) != bits)
        return tt_err(TT_DATA, "the file of masks has fewer rows");
    tt_policy_greedy(&self->policy, self->head, self->masks ? self->mask : NULL, 1, self->action);
    for (uint32_t k = 0; k < self->checkpoint.columns->action_count; k++)
        s_write_part(self, k);
    return TT_OK;
}

int main(int argc, char **argv)
{
    act_t self = {0};
    tt_status_t status = argc == 3 || argc == 4 ? s_open(&self, argv[1], argv[2], argv[3])
                                                : tt_err(TT_INVALID, "act CHECKPOINT STEPS [MASKS]");
    while (status == TT_OK &&
           fread(self.in, sizeof *self.in, self.checkpoint.columns->flat, stdin) == self.checkpoint.columns->flat)
        status = s_act(&self);
    s_close(&self);
    if (status != TT_OK)
        fprintf(stderr, "%s\n", tt_err_text());
    return status == TT_OK ? 0 : 1;
}
