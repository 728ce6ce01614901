/*  atoms - the values over which a head spreads a return: n of them, evenly from low to high.
 *
 *  Source:  Bellemare et al. 2017, "A Distributional Perspective on Reinforcement Learning", arXiv:1707.06887, section 4.
 *  Threads: pure; the same bits on a card. */
#pragma once
#include <stdint.h>
#include "common/base/portable_fn.h"

/*  How far apart they are; n >= 2. */
TT_MATH_FN float tt_atoms_apart(float low, float high, uint32_t n)
{
    return (high - low) / (float)(n - 1);
}

TT_MATH_FN float tt_atom(float low, float apart, uint32_t i)
{
    return low + (float)i * apart;
}
