/*  scalar - a YAML scalar as the JSON value that kubectl makes of it (manifest.h says which; seen with kubectl 1.32). Pure. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

/*  tag NULL = none; plain: without quotes, not a block. NULL: no JSON value (infinities, NaN), or a tag that we do not know
 *  or that does not fit. A new reference. */
json_t *tt_scalar_value(const char *text, const char *tag, bool plain);
