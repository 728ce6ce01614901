#include "cli/environment.h"
#include <stdlib.h>
#include "collector/guard.h"
#include "common/base/log.h"
#include "common/nn/device.h"

/*  Who opens no device in this process finds out all the same. */
static tt_status_t s_check_cpu(void)
{
    tt_device_t *device = NULL;
    const tt_status_t status = tt_device_open(&device, "cpu", 0, 1);
    tt_device_close(&device);
    return status;
}

static tt_status_t s_check_device(void)
{
    const char *wish = getenv("TT_DEVICE");
    const tt_status_t status = wish && *wish ? tt_device_check_wish(wish) : TT_OK;
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "TT_DEVICE=%s", wish);
}

tt_status_t environment_check(void)
{
    static tt_status_t (*const checks[])(void) = {tt_log_check, guard_check, s_check_cpu, s_check_device};
    for (size_t i = 0; i < TT_COUNT(checks); i++)
        if (checks[i]() != TT_OK)
            return TT_CONFIG;
    return TT_OK;
}
