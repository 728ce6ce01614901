/*  fields - a table of config keys for a person or a program: `tutti config`, `tutti algorithms NAME`. */
#pragma once
#include <jansson.h>
#include <stdio.h>
#include "common/config/config.h"

/*  One line a key: key, default, range, help. Keys that the program fills in (tt_train_fills_in) are left out. */
void fields_print(FILE *out, const tt_cfg_field_t *fields);
/*  The same as a JSON array; the caller owns it. */
json_t *fields_json(const tt_cfg_field_t *fields);
