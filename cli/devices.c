#include "cli/devices.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/nn/device.h"

static void s_add(json_t *notes, const char *key)
{
    char *text = tt_sprintf("%s: not on this machine: %s", key, tt_err_text());
    json_array_append_new(notes, tt_json_text(text));
    free(text);
}

/*  The processor's own is known to be there (variables_check). */
static void s_look(json_t *notes, const char *key, const char *wish, tt_precision_t precision)
{
    tt_device_t *device = NULL;
    if (precision == TT_EXACT && (strcmp(wish, "cpu") == 0 || strcmp(wish, "auto") == 0))
        return;
    if (tt_device_open_wish(&device, wish, 0, 1) != TT_OK)
        s_add(notes, key);
    else if (tt_device_precision(device, precision) != TT_OK)
        s_add(notes, "learner.precision");
    tt_device_close(&device);
}

json_t *devices_lacking(const tt_train_cfg_t *train)
{
    json_t *notes = json_array();
    s_look(notes, "learner.device", train->learner.device, (tt_precision_t)train->learner.precision);
    s_look(notes, "collector.device", train->collector.device, TT_EXACT);
    return notes;
}
