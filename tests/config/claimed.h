/*  claimed - a config of a test's text that one table has claimed. */
#pragma once
#include <string.h>
#include "common/config/config.h"
#include "tests/test.h"

/*  Parse "f.yaml", set what `sets` says (NULL: nothing; ends with NULL), claim, finish. The caller owns *out; it is there on success only. */
static inline tt_status_t claimed(
    tt_config_t **out, const tt_cfg_field_t *fields, void *thing, const char *yaml, const char *const *sets)
{
    tt_config_t *config = NULL;
    TT_TRY(tt_config_parse(&config, yaml, strlen(yaml), "f.yaml"));
    tt_status_t status = TT_OK;
    for (; sets && *sets && status == TT_OK; sets++)
        status = tt_config_set(config, *sets);
    if (status == TT_OK)
        status = tt_config_claim(config, fields, thing);
    if (status == TT_OK)
        status = tt_config_finish(config);
    if (status == TT_OK)
        *out = config;
    else
        tt_config_destroy(&config);
    return status;
}
