/*  near - equality of numbers of any kind, in double. */
#pragma once
#include <math.h>

#define assert_near(a, b, eps) assert_true(fabs((double)(a) - (double)(b)) <= (double)(eps))
