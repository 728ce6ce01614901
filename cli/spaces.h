/*  spaces - an env's spaces, and the columns that come of them, for a person or a program.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include <stdio.h>
#include "common/rl/columns.h"

/*  "float32[4]", "{image: uint8[8, 8], speed: float32}"; one that is too long to say ends in "...". The caller frees. */
char *space_words(const tt_space_t *space);
/*  One line, "  observation: float32[4]: [-4.8, 4.8], ...", and one for each part of a dict or tuple. */
void space_print(FILE *out, const char *what, const tt_space_t *space);
/*  {"text", "kind", ...}: box "dtype", "shape", "low", "high" (a number for all, an array, null = none); discrete "n", "start";
 *  multi_discrete "shape", "n", "start"; multi_binary "shape"; dict and tuple "parts". New reference. */
json_t *space_json(const tt_space_t *space);

/*  What a row consists of: a line for each column that begins with '#'. */
/*  "uint8[4, 84, 84]": of each observation column, what a network sees where observations are stacked. */
void columns_print_stacked(FILE *out, const tt_columns_t *columns);
void columns_print(FILE *out, const tt_columns_t *columns);
/*  [{"name", "dtype", "shape", "bytes"}], new reference. */
json_t *columns_json(const tt_columns_t *columns);
/*  Bytes of all columns of a row. */
uint32_t columns_bytes(const tt_columns_t *columns);
