#include "common/rl/episodes.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

struct tt_episodes {
    uint32_t envs;
    double *block;                                 /* the layout of episodes.h, in place                     */
    double *ret, *length, *last_ret, *last_length; /* where they lie in it   */
    uint8_t *broken;                               /* [envs]                  */
};

size_t tt_episodes_block_count(uint32_t envs)
{
    return 2 + 2 * (size_t)envs + 2 * TT_EPISODES_LAST;
}

tt_episodes_t *tt_episodes_new(uint32_t envs)
{
    tt_episodes_t *self = tt_new0(sizeof *self);
    self->envs = envs;
    self->block = tt_array0(tt_episodes_block_count(envs), sizeof(double));
    self->ret = self->block + 2;
    self->length = self->ret + envs;
    self->last_ret = self->length + envs;
    self->last_length = self->last_ret + TT_EPISODES_LAST;
    self->broken = tt_array0(envs, sizeof *self->broken);
    return self;
}

void tt_episodes_destroy(tt_episodes_t **self_p)
{
    if (*self_p) {
        free((*self_p)->block);
        free((*self_p)->broken);
    }
    free(*self_p);
    *self_p = NULL;
}

uint32_t tt_episodes_join(tt_episodes_t *self, const uint32_t *age)
{
    uint32_t count = 0;
    for (uint32_t env = 0; env < self->envs; env++) {
        self->broken[env] = fabs(self->length[env]) != (double)age[env];
        if (!self->broken[env])
            continue;
        self->ret[env] = 0;
        self->length[env] = age[env] ? -(double)age[env] : 0;
        count++;
    }
    return count;
}

const uint8_t *tt_episodes_broken(const tt_episodes_t *self)
{
    return self->broken;
}

static void s_end(tt_episodes_t *self, uint32_t env)
{
    const size_t slot = (size_t)tt_episodes_count(self) % TT_EPISODES_LAST;
    self->last_ret[slot] = self->ret[env];
    self->last_length[slot] = self->length[env];
    self->block[0] += 1;
}

void tt_episodes_feed(tt_episodes_t *self, uint32_t T, const float *reward, const uint8_t *terminated,
    const uint8_t *truncated, tt_episode_fn ended, void *ctx)
{
    for (uint32_t t = 0; t < T; t++)
        for (uint32_t env = 0; env < self->envs; env++) {
            const size_t i = (size_t)t * self->envs + env;
            self->ret[env] += (double)reward[i];
            self->length[env] += self->length[env] < 0 ? -1 : 1;
            if (!terminated[i] && !truncated[i])
                continue;
            if (ended && self->length[env] > 0)
                ended(ctx, t, env, self->ret[env], self->length[env]);
            if (self->length[env] > 0)
                s_end(self, env);
            self->ret[env] = 0;
            self->length[env] = 0;
        }
    self->block[1] += (double)T * self->envs;
}

uint64_t tt_episodes_count(const tt_episodes_t *self)
{
    return (uint64_t)self->block[0];
}

/*  In ring order, not oldest first: fixed all the same. */
static double s_mean(const tt_episodes_t *self, const double *ring)
{
    const uint64_t ended = tt_episodes_count(self);
    const size_t count = ended < TT_EPISODES_LAST ? (size_t)ended : TT_EPISODES_LAST;
    double sum = 0;
    for (size_t k = 0; k < count; k++)
        sum += ring[k];
    return count ? sum / (double)count : NAN;
}

double tt_episodes_return_mean(const tt_episodes_t *self)
{
    return s_mean(self, self->last_ret);
}

double tt_episodes_length_mean(const tt_episodes_t *self)
{
    return s_mean(self, self->last_length);
}

void tt_episodes_save(const tt_episodes_t *self, double *block)
{
    memcpy(block, self->block, tt_episodes_block_count(self->envs) * sizeof(double));
}

tt_status_t tt_episodes_load(tt_episodes_t *self, const double *block, size_t count)
{
    if (count != tt_episodes_block_count(self->envs))
        return tt_err(TT_DATA, "episodes: %zu numbers where %zu belong to %u envs", count,
            tt_episodes_block_count(self->envs), self->envs);
    for (size_t k = 0; k < count; k++)
        if (!isfinite(block[k]))
            return tt_err(TT_DATA, "episodes: number %zu is not finite", k);
    if (!(block[0] >= 0 && block[0] < 0x1p53 && block[0] == floor(block[0])))
        return tt_err(TT_DATA, "episodes: %g is no count of episodes", block[0]);
    memcpy(self->block, block, count * sizeof(double));
    return TT_OK;
}
