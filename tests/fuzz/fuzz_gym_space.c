/*  What a Python worker says of its environment, whatever that is: refused, or spaces that pass their checks and make columns. */
#include <jansson.h>
#include <stdint.h>
#include "collector/gym/describe.h"
#include "common/rl/columns.h"
#include "common/rl/spaces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_env_ops_t ops = {0};
    tt_columns_t *columns = NULL;
    json_t *about = json_loadb((const char *)data, size, 0, NULL);
    if (about && gym_describe(&ops, about) == TT_OK) {
        const bool sound =
            tt_space_check(&ops.obs, "obs", false) == TT_OK && tt_space_check(&ops.action, "action", true) == TT_OK;
        TT_CHECK(sound && gym_same_spaces(about, about));
        const tt_status_t status = tt_columns_new(&columns, &ops.obs, &ops.action, false, true);
        TT_CHECK(status == TT_OK);
        tt_columns_destroy(&columns);
    }
    gym_describe_free(&ops);
    json_decref(about);
    return 0;
}
