/*  comes_to - what a config comes to: spaces, networks, parameters, FLOPs, bytes. Said by `tutti check`.
 *
 *  FLOPs are of matrix products alone, two for each multiply-add, as docs/performance.md counts them: forward through both
 *  networks to act, and three times that for a row that is trained on once (the backward pass is two forward ones).
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include <stdio.h>
#include "cli/setup.h"
#include "common/rl/space.h"

/*  "Box(4)", "Discrete(2)", as Gymnasium has it. */
void space_text(char *out, size_t size, const tt_space_t *space);

/*  Lines that begin with '#', so that what stands before them stays a config. */
void comes_to_print(FILE *out, const tt_setup_t *setup);
/*  {"observation", "action", "parameters", "flop_act", "flop_train", "batch_rows", "batch_bytes"}, new reference. */
json_t *comes_to_json(const tt_setup_t *setup);
