/*  graph - an encoder layer by layer: what each is, gives, holds and costs. Said by `tutti check`.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include <stdio.h>
#include "common/nn/nn.h"
#include "common/rl/columns.h"

/*  Lines that begin with '#': what it reads, then a line for each layer; tower t is an encoder. */
void graph_print(FILE *out, const tt_net_spec_t *net, const tt_columns_t *columns, uint32_t t);
/*  [{"layer", "shape", "parameters", "flop"}], new reference. */
json_t *graph_json(const tt_net_spec_t *net, const tt_columns_t *columns, uint32_t t);
