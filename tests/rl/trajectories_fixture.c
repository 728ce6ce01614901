#include "tests/rl/trajectories_fixture.h"
#include <math.h>
#include <string.h>
#include "common/base/rng.h"

float trajectories_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 1, TT_STREAM_TEST, who, k);
    return tt_unit_f32(word[0]);
}

void trajectories_fill(trajectories_t *self, uint32_t T, uint32_t N, uint32_t seed)
{
    memset(self, 0, sizeof *self);
    uint32_t finals = 0;
    for (uint32_t i = 0; i < T * N; i++) {
        self->reward[i] = trajectories_random(seed, i) - 0.5f;
        self->value[i] = trajectories_random(seed + 1, i) * 4;
        self->terminated[i] = trajectories_random(seed + 2, i) < 0.15f;
        self->truncated[i] = trajectories_random(seed + 3, i) < 0.15f;
        if (self->truncated[i]) {
            self->final_row[finals] = i;
            self->final_value[finals++] = trajectories_random(seed + 4, i) * 4;
        }
    }
    for (uint32_t e = 0; e < N; e++)
        self->last[e] = trajectories_random(seed + 5, e) * 4;
    self->in = (tt_trajectories_t){T, N, self->reward, self->value, self->terminated, self->truncated, self->last,
        finals, self->final_row, self->final_value, 0.97f, false};
}

double trajectories_next_value(const trajectories_t *self, uint32_t t, uint32_t env)
{
    const uint32_t i = t * self->in.N + env;
    if (self->terminated[i] || (self->truncated[i] && self->in.or_flags))
        return 0;
    if (!self->truncated[i])
        return (double)(t + 1 == self->in.T ? self->last[env] : self->value[i + self->in.N]);
    for (uint32_t k = 0; k < self->in.finals; k++)
        if (self->final_row[k] == i)
            return (double)self->final_value[k];
    return NAN;
}
