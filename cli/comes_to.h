/*  comes_to - what a config comes to: spaces, columns, networks, parameters, FLOPs, bytes. Said by `tutti check`.
 *
 *  FLOPs are of matrix products alone, two for each multiply-add, as docs/performance.md counts them: forward through both
 *  networks to act, and three times that for a row that is trained on once (the backward pass is two forward ones).
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include <stdio.h>
#include "cli/setup.h"

/*  Lines that begin with '#', so that what stands before them stays a config. */
void comes_to_print(FILE *out, const tt_setup_t *setup);
/*  {"observation", "action", "mask", "flat", "columns", "columns_hash", "row_bytes", "parameters", "flop_act", "flop_train",
 *  "batch_rows", "batch_bytes"}, and of an encoder its layers by its name (cli/graph.h); new reference. */
json_t *comes_to_json(const tt_setup_t *setup);
