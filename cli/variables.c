#include "cli/variables.h"
#include <stdlib.h>
#include <string.h>
#include "collector/guard.h"
#include "common/base/log.h"
#include "common/nn/device.h"
#include "controller/logfile.h"

/*  Opened and closed, so that a command that needs no device in its own process finds out all the same. */
static tt_status_t s_check_cpu(void)
{
    tt_device_t *device = NULL;
    const tt_status_t status = tt_device_open(&device, "cpu", 0, 1);
    tt_device_close(&device);
    return status;
}

/*  It names a backend, and stands for "cpu"; which card, or whichever there is, the keys of the config say. */
static tt_status_t s_check_device(void)
{
    const char *name = getenv("TT_DEVICE");
    if (!name || !*name)
        return TT_OK;
    if (strchr(name, ':') || strcmp(name, "auto") == 0)
        return tt_err(TT_CONFIG,
            "TT_DEVICE=%s: it is a backend's name alone; collector.device and learner.device say more", name);
    const tt_status_t status = tt_device_check_wish(name);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "TT_DEVICE=%s", name);
}

tt_status_t variables_check(void)
{
    static tt_status_t (*const checks[])(void) = {
        tt_log_check, tt_logfile_check, guard_check, s_check_cpu, s_check_device};
    for (size_t i = 0; i < TT_COUNT(checks); i++)
        if (checks[i]() != TT_OK)
            return TT_CONFIG;
    return TT_OK;
}
