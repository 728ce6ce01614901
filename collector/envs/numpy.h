/*  numpy - what some of NumPy's scalar operators compute, where C's nearest expression has other last bits.
 *
 *  `x ** 2` of a NumPy scalar is libm's pow, which is not always x * x rounded; a compiler that sees the exponent turns
 *  pow(x, 2) into x * x, so it is hidden from it. `x % m` is fmod moved into the sign of m. */
#pragma once
#include <math.h>

static inline double np_square(double x)
{
    double two = 2.0;
    __asm__("" : "+m"(two)); /* the compiler no longer knows its value */
    return pow(x, two);
}

static inline float np_squaref(float x)
{
    float two = 2.0f;
    __asm__("" : "+m"(two));
    return powf(x, two);
}

/*  For m > 0. */
static inline double np_mod(double x, double m)
{
    const double rest = fmod(x, m);
    return rest < 0 ? rest + m : rest;
}
