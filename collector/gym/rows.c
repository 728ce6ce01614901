#include "collector/gym/rows.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/rl/spaces.h"

enum { LINE = 64 };

/*  Bytes of a leaf's row in the env's form (env.h). */
static size_t s_row(const tt_space_t *leaf)
{
    static const size_t sizes[TT_DTYPE_COUNT] = {
        [TT_F32] = 4, [TT_F64] = 8, [TT_U8] = 1, [TT_I32] = 4, [TT_I64] = 8, [TT_BOOL] = 1};
    const size_t elements = tt_space_elements(leaf);
    if (leaf->kind == TT_SPACE_BOX)
        return elements * sizes[leaf->dtype];
    return leaf->kind == TT_SPACE_MULTI_BINARY ? elements : elements * sizeof(int32_t);
}

/*  Of all elements together: the bits of a mask. */
static size_t s_choices(const tt_space_t *space)
{
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    const uint32_t leaves = tt_space_leaves(space, leaf, TT_COLUMNS_MAX);
    size_t bits = 0;
    for (uint32_t k = 0; k < leaves; k++)
        for (size_t i = 0; leaf[k]->n && i < tt_space_elements(leaf[k]); i++)
            bits += (size_t)leaf[k]->n[i];
    return bits;
}

/*  The next array: its place from the start. */
static size_t s_place(gym_rows_t *self, size_t count, size_t bytes)
{
    const size_t at = self->size;
    self->size = tt_add(at, tt_align(tt_mul(count, bytes), LINE));
    return at;
}

static size_t s_plain(gym_rows_t *self, const char *name, size_t count, size_t bytes)
{
    const size_t at = s_place(self, count, bytes);
    json_object_set_new(self->layout, name, json_integer((json_int_t)at));
    return at;
}

/*  An array for each leaf; offsets first, addresses when there is memory. */
static uint32_t s_leaves(gym_rows_t *self, const char *name, size_t count, const tt_space_t *space, size_t *at)
{
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    const uint32_t leaves = tt_space_leaves(space, leaf, TT_COLUMNS_MAX);
    json_t *list = json_array();
    for (uint32_t k = 0; k < leaves; k++) {
        at[k] = s_place(self, count, s_row(leaf[k]));
        json_array_append_new(list, json_integer((json_int_t)at[k]));
    }
    json_object_set_new(self->layout, name, list);
    return leaves;
}

static tt_status_t s_map(gym_rows_t *self)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    self->fd = memfd_create("tutti-rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (self->fd < 0 || ftruncate(self->fd, (off_t)self->size) != 0 || fcntl(self->fd, F_ADD_SEALS, seals) != 0)
        return tt_err_errno(TT_OS, "%zu bytes of memory for workers", self->size);
    void *at = mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
    if (at == MAP_FAILED)
        return tt_err_errno(TT_OS, "%zu bytes of memory for workers", self->size);
    self->at = at;
    return TT_OK;
}

static void s_point(const gym_rows_t *self, void **to, const size_t *at, uint32_t leaves)
{
    for (uint32_t k = 0; k < leaves; k++)
        to[k] = self->at + at[k];
}

/* ---- screens ------------------------------------------------------------------------------------------------------------ */

static area_size_t s_size(const tt_space_t *picture)
{
    return (area_size_t){.width = picture->shape[1], .height = picture->shape[0]};
}

static void s_screens(gym_rows_t *self, const tt_space_t *shown, const tt_space_t *obs, uint32_t count)
{
    self->screen.area = area_new(s_size(shown), s_size(obs));
    self->screen.whole = s_row(shown);
    self->screen.shrunk = s_row(obs);
    void **seen[] = {self->obs, self->final};
    for (size_t k = 0; k < TT_COUNT(seen); k++) {
        self->screen.large[k] = seen[k][0];
        seen[k][0] = self->screen.small[k] = tt_aligned0(tt_mul(count, self->screen.shrunk));
    }
}

static void s_shrink(gym_rows_t *self, size_t k, uint32_t slot)
{
    area_shrink(self->screen.area, self->screen.large[k] + slot * self->screen.whole,
        self->screen.small[k] + slot * self->screen.shrunk);
}

void gym_rows_shrink(gym_rows_t *self, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; self->screen.area && i < first + count; i++) {
        const uint8_t todo = self->rows.todo[i];
        if (todo != TT_ENV_STEP && todo != TT_ENV_BEGIN)
            continue;
        s_shrink(self, 0, i);
        if (self->rows.terminated[i] || self->rows.truncated[i])
            s_shrink(self, 1, i);
    }
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------- */

tt_status_t gym_rows_init(
    gym_rows_t *self, const tt_env_ops_t *env, const tt_space_t *shown, uint32_t count, uint32_t workers)
{
    size_t obs[TT_COLUMNS_MAX], final[TT_COLUMNS_MAX], action[TT_COLUMNS_MAX];
    *self = (gym_rows_t){.fd = -1, .layout = json_object()};
    self->progress = s_place(self, workers, LINE);
    self->post = s_place(self, workers, LINE);
    self->bell = s_place(self, 1, LINE);
    const size_t todo = s_plain(self, "todo", count, 1), seed = s_plain(self, "seed", count, sizeof(uint32_t));
    const uint32_t actions = s_leaves(self, "action", count, &env->action, action);
    const uint32_t seen = s_leaves(self, "obs", count, shown, obs);
    s_leaves(self, "final", count, shown, final);
    const size_t reward = s_plain(self, "reward", count, sizeof(float));
    const size_t terminated = s_plain(self, "terminated", count, 1);
    const size_t truncated = s_plain(self, "truncated", count, 1), begun = s_plain(self, "begun", count, 1);
    const size_t bits = env->mask ? s_choices(&env->action) : 0;
    const size_t mask = s_plain(self, "mask", count, bits), final_mask = s_plain(self, "final_mask", count, bits);
    self->room = env->save_size;
    const size_t states = s_plain(self, "state", count, self->room);
    json_object_set_new(self->layout, "size", json_integer((json_int_t)self->size));
    TT_TRY(s_map(self));
    s_point(self, self->obs, obs, seen);
    s_point(self, self->final, final, seen);
    s_point(self, self->action, action, actions);
    if (shown != &env->obs)
        s_screens(self, shown, &env->obs, count);
    self->states = self->at + states;
    self->rows = (tt_env_rows_t){.todo = self->at + todo,
        .seed = (uint32_t *)(void *)(self->at + seed),
        .action = self->action,
        .obs = self->obs,
        .mask = env->mask ? self->at + mask : NULL,
        .final_mask = env->mask ? self->at + final_mask : NULL,
        .reward = (float *)(void *)(self->at + reward),
        .terminated = self->at + terminated,
        .truncated = self->at + truncated,
        .begun = self->at + begun,
        .final = self->final};
    return TT_OK;
}

void gym_rows_free(gym_rows_t *self)
{
    if (self->at)
        munmap(self->at, self->size);
    if (self->fd >= 0)
        close(self->fd);
    json_decref(self->layout);
    area_destroy(self->screen.area);
    free(self->screen.small[0]);
    free(self->screen.small[1]);
    *self = (gym_rows_t){.fd = -1};
}

void gym_rows_state(const gym_rows_t *self, uint32_t slot, void *bytes)
{
    memcpy(bytes, self->states + slot * self->room, self->room);
}

void gym_rows_put_state(gym_rows_t *self, uint32_t slot, const void *bytes)
{
    memcpy(self->states + slot * self->room, bytes, self->room);
}

size_t gym_rows_progress_at(const gym_rows_t *self, uint32_t worker)
{
    return self->progress + (size_t)worker * LINE;
}

const gym_progress_t *gym_rows_progress(const gym_rows_t *self, uint32_t worker)
{
    return (const gym_progress_t *)(const void *)(self->at + gym_rows_progress_at(self, worker));
}

size_t gym_rows_post_at(const gym_rows_t *self, uint32_t worker)
{
    return self->post + (size_t)worker * LINE;
}

gym_post_t *gym_rows_post(const gym_rows_t *self, uint32_t worker)
{
    return (gym_post_t *)(void *)(self->at + gym_rows_post_at(self, worker));
}

gym_bell_t *gym_rows_bell(const gym_rows_t *self)
{
    return (gym_bell_t *)(void *)(self->at + self->bell);
}
