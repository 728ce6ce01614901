#include "common/nn/atoms.h"
#include <string.h>
#include "common/base/vmath.h"
#include "common/nn/cpu/cpu.h"

/*  The largest of n columns, of each row. */
static inline void s_most(const float *part, size_t n, float *most)
{
    memcpy(most, part, TT_BLOCK * sizeof *most);
    for (size_t i = 1; i < n; i++)
        for (size_t r = 0; r < TT_BLOCK; r++)
            most[r] = part[i * TT_BLOCK + r] > most[r] ? part[i * TT_BLOCK + r] : most[r];
}

TT_CLONES void cpu_atoms_forward(const float *head, size_t outs, size_t n, float low, float high, float *q)
{
    const float apart = tt_atoms_apart(low, high, (uint32_t)n);
    for (size_t a = 0; a < outs; a++) {
        const float *part = head + a * n * TT_BLOCK;
        float most[TT_BLOCK], sum[TT_BLOCK] = {0}, all[TT_BLOCK] = {0};
        s_most(part, n, most);
        for (size_t i = 0; i < n; i++) {
            const float atom = tt_atom(low, apart, (uint32_t)i);
            for (size_t r = 0; r < TT_BLOCK; r++) {
                const float share = tt_expf(part[i * TT_BLOCK + r] - most[r]);
                sum[r] += share;
                all[r] += atom * share;
            }
        }
        for (size_t r = 0; r < TT_BLOCK; r++)
            q[a * TT_BLOCK + r] = all[r] / sum[r];
    }
}
