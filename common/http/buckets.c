#include "common/http/buckets.h"

/*  By repeated multiplication, as they are made there: 10e-9 * 10 * 10 * 10 is not 1e-05, and a bound is a label. */
#define T1 10e-9
#define T2 (T1 * 10)
#define T3 (T2 * 10)
#define T4 (T3 * 10)
#define T5 (T4 * 10)
#define T6 (T5 * 10)
#define T7 (T6 * 10)
#define T8 (T7 * 10)
#define T9 (T8 * 10)

const tt_buckets_t tt_buckets_queue = {10, {T1, T2, T3, T4, T5, T6, T7, T8, T9, T9 * 10}};
const tt_buckets_t tt_buckets_request = {12, {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}};
