/*  dqn_atoms_loss - Q-learning of the probabilities of a return's atoms, and its derivatives, for blocks of units.
 *
 *  Source:  Bellemare et al. 2017, "A Distributional Perspective on Reinforcement Learning", arXiv:1707.06887, algorithm 1. For a unit with
 *           action a, atoms z_0 .. z_{N-1} evenly from low to high, logits x of q(at, a), and p' = softmax q_target(next, b), b the choice of
 *           which most is expected (double: by q(next)):
 *             m = the sum over j of p'_j, shared out between the two atoms around R + g z_j, held within low and high
 *             w / units * - sum over i of m_i log softmax(x)_i
 *           With double, a dueling network, n steps, priorities and noise that is Hessel et al. 2018, "Rainbow", arXiv:1710.02298, which
 *           takes as a unit's priority what the loss is of it.
 *  Sums:    of i and of j chains in their order.
 *  The rest, stages, choices, threads, is dqn_loss.h's; what rides is the loss of a unit. */
#include "common/base/limits.h"
#include "common/base/vmath.h"
#include "common/nn/atoms.h"
#include "learner/algorithms/dqn_block.h"

/*  What is expected of choice a, as a network's tower of atoms has it. */
BLOCK_FN void s_expected(const dqn_given_t *self, const float *head, size_t a, col_out value)
{
    const uint32_t n = self->p.atoms;
    const float apart = tt_atoms_apart(self->p.low, self->p.high, n);
    const float *part = head + a * n * TT_BLOCK;
    col_t x, most, sum, all;
    block_load(part, most);
    for (uint32_t i = 1; i < n; i++) {
        block_load(part + (size_t)i * TT_BLOCK, x);
        EACH_ROW(r)
        {
            most[r] = x[r] > most[r] ? x[r] : most[r];
        }
    }
    block_zero(sum);
    block_zero(all);
    for (uint32_t i = 0; i < n; i++) {
        const float atom = tt_atom(self->p.low, apart, i);
        block_load(part + (size_t)i * TT_BLOCK, x);
        EACH_ROW(r)
        {
            const float share = tt_expf(x[r] - most[r]);
            sum[r] = sum[r] + share;
            all[r] = all[r] + atom * share;
        }
    }
    EACH_ROW(r)
    {
        value[r] = tt_divf(all[r], sum[r]);
    }
}

/*  The allowed choice of which most is expected; -1 where none is more than -inf, as with numbers that are none. */
BLOCK_FN void s_best(const dqn_given_t *self, const tt_loss_block_t *block, const float *chooser, choices_out best)
{
    col_t most, value;
    EACH_ROW(r)
    {
        most[r] = -__builtin_inff();
        best[r] = -1;
    }
    for (size_t a = 0; a < self->p.choices; a++) {
        s_expected(self, chooser, a, value);
        dqn_forbid(self, block, a, value);
        EACH_ROW(r)
        {
            best[r] = value[r] > most[r] ? (int32_t)a : best[r];
            most[r] = value[r] > most[r] ? value[r] : most[r];
        }
    }
}

/*  Probabilities of each unit's choice, and what the logits have to lose to be their logarithms. */
BLOCK_FN void s_softmax(const dqn_given_t *self, const float *head, choices_out choice, col_t *p, col_out less)
{
    const uint32_t n = self->p.atoms;
    col_t most, sum;
    dqn_pick(head, choice, n, 0, most);
    for (uint32_t i = 1; i < n; i++) {
        col_t x;
        dqn_pick(head, choice, n, i, x);
        EACH_ROW(r)
        {
            most[r] = x[r] > most[r] ? x[r] : most[r];
        }
    }
    block_zero(sum);
    for (uint32_t i = 0; i < n; i++) {
        dqn_pick(head, choice, n, i, p[i]);
        EACH_ROW(r)
        {
            p[i][r] = tt_expf(p[i][r] - most[r]);
            sum[r] = sum[r] + p[i][r];
        }
    }
    for (uint32_t i = 0; i < n; i++)
        EACH_ROW(r)
        {
            p[i][r] = tt_divf(p[i][r], sum[r]);
        }
    EACH_ROW(r)
    {
        less[r] = most[r] + tt_logf(sum[r]);
    }
}

/*  Where R + g z lies: behind atom `below`, `above` of the way to the next, 0 .. 1. What is no number is behind the first. */
typedef struct {
    int32_t below;
    float above;
} place_t;

BLOCK_FN place_t s_place(const dqn_given_t *self, float apart, float wanted)
{
    const float low = self->p.low, high = self->p.high;
    const float held = wanted < low ? low : wanted > high ? high : wanted;
    const float place = tt_divf(held - low, apart);
    const int32_t last = (int32_t)self->p.atoms - 2, at = place > 0 ? (int32_t)place : 0, below = at < last ? at : last;
    const float above = place - (float)below; /* over 1 by an ulp where the distance of atoms was rounded down */
    return (place_t){below, above > 1 ? 1 : above};
}

/*  What p' has of atom j. Where nothing follows all is at R, and no p' is read; where there is no best choice it is no number: an update must
 *  not go on from there. */
BLOCK_FN float s_share(const dqn_cols_t *in, size_t r, uint32_t j, int32_t best, float p)
{
    if (in->discount[r] > 0)
        return best < 0 ? __builtin_nanf("") : p;
    return j == 0 ? 1 : 0;
}

/*  m; p is room for p'. */
BLOCK_FN void s_targets(const dqn_given_t *self, const tt_loss_block_t *block, const dqn_cols_t *in,
    const float *chooser, col_t *p, col_t *m)
{
    const uint32_t n = self->p.atoms;
    const float apart = tt_atoms_apart(self->p.low, self->p.high, n);
    choices_t best, read;
    col_t less;
    s_best(self, block, chooser, best);
    EACH_ROW(r)
    {
        read[r] = best[r] < 0 ? 0 : best[r];
    }
    s_softmax(self, block->head[DQN_TARGET_NEXT], read, p, less);
    for (uint32_t i = 0; i < n; i++)
        block_zero(m[i]);
    for (uint32_t j = 0; j < n; j++) {
        const float atom = tt_atom(self->p.low, apart, j);
        EACH_ROW(r)
        {
            const place_t place = s_place(self, apart, dqn_wanted(self, in, r, atom));
            const float share = s_share(in, r, j, best[r], p[j][r]);
            m[place.below][r] = m[place.below][r] + share * (1 - place.above);
            m[place.below + 1][r] = m[place.below + 1][r] + share * place.above;
        }
    }
}

/*  What atoms of such probabilities come to. */
BLOCK_FN void s_mean(const dqn_given_t *self, col_t *p, col_out mean)
{
    const float apart = tt_atoms_apart(self->p.low, self->p.high, self->p.atoms);
    block_zero(mean);
    for (uint32_t i = 0; i < self->p.atoms; i++) {
        const float atom = tt_atom(self->p.low, apart, i);
        EACH_ROW(r)
        {
            mean[r] = mean[r] + atom * p[i][r];
        }
    }
}

/*  d loss / d logit i of the choice that was made. */
BLOCK_FN void s_put_slope(
    const dqn_given_t *self, const tt_loss_block_t *block, const dqn_cols_t *in, uint32_t i, col_in slope)
{
    float *d_head = block->d_head[DQN_Q_AT];
    for (size_t a = 0; a < self->p.choices; a++)
        EACH_ROW(r)
        {
            d_head[(a * self->p.atoms + i) * TT_BLOCK + r] = in->action[r] == (int32_t)a ? slope[r] : 0;
        }
}

BLOCK_FN void s_loss(const dqn_given_t *self, const tt_loss_block_t *block, const float *chooser)
{
    const uint32_t n = self->p.atoms;
    dqn_cols_t in;
    col_t p[TT_ATOMS_MAX], m[TT_ATOMS_MAX], less, total, own, loss, mean, target_mean, size;
    dqn_gather(self, block, &in);
    s_targets(self, block, &in, chooser, p, m);
    s_mean(self, m, target_mean);
    s_softmax(self, block->head[DQN_Q_AT], in.action, p, less);
    s_mean(self, p, mean);
    block_zero(total);
    block_zero(own);
    for (uint32_t i = 0; i < n; i++) {
        col_t x;
        dqn_pick(block->head[DQN_Q_AT], in.action, n, i, x);
        EACH_ROW(r)
        {
            total[r] = total[r] + m[i][r];
            own[r] = own[r] + m[i][r] * (less[r] - x[r]);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        col_t slope;
        EACH_ROW(r)
        {
            slope[r] = in.weight[r] * (p[i][r] * total[r] - m[i][r]);
        }
        s_put_slope(self, block, &in, i, slope);
    }
    EACH_ROW(r)
    {
        loss[r] = in.weight[r] * own[r];
    }
    dqn_error(mean, target_mean, size);
    dqn_report(block, &in, loss, mean, target_mean, size);
    dqn_ride(block, own);
}

BLOCK_CLONES void dqn_atoms_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const dqn_given_t given = dqn_given(params, input);
    s_loss(&given, block, block->head[DQN_TARGET_NEXT]);
}

BLOCK_CLONES void dqn_atoms_double_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const dqn_given_t given = dqn_given(params, input);
    s_loss(&given, block, block->head[DQN_Q_NEXT]);
}

BLOCK_CUDA(dqn_atoms, dqn_atoms_loss)
BLOCK_CUDA(dqn_atoms_double, dqn_atoms_double_loss)
