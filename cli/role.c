#include "cli/role.h"
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/signals.h"

static tt_status_t s_take_seat(tt_seat_t *seat, tt_peer_role_t role, const tt_args_t *args)
{
    uint64_t index = UINT64_MAX;
    TT_TRY(tt_arg_u64(args, "index", &index, 0, 65535));
    const tt_seat_args_t from = {.run = tt_arg(args, "run"),
        .coordinator = tt_arg(args, "coordinator"),
        .key = tt_arg(args, "key"),
        .bind = tt_arg(args, "bind")};
    tt_log_init(tt_peer_role_name(role), index == UINT64_MAX ? -1 : (int)index);
    return tt_seat_take(seat, role, index == UINT64_MAX ? -1 : (int)index, &from);
}

int tt_cli_role(const char *command, tt_peer_role_t role, int argc, char **argv,
    tt_status_t (*run)(const tt_seat_t *seat, int signals_fd))
{
    int code, signals = -1;
    TT_AUTO(tt_args) args = tt_args_new(&code, command, argc, argv);
    if (!args)
        return code;
    tt_seat_t seat;
    tt_status_t status = s_take_seat(&seat, role, args);
    if (status == TT_OK)
        status = tt_signals_open(&signals);
    if (status == TT_OK)
        status = run(&seat, signals);
    if (signals >= 0)
        close(signals);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
