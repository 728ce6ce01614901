/*  stop - end a running job with a snapshot. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include "cli/client.h"
#include "cli/cmd.h"
#include "common/base/clock.h"

const tt_option_t tt_opt_stop[] = {{
                                       "timeout",
                                       't',
                                       "S",
                                       "wait so long for the end, seconds (60); then the run is killed",
                                   },
    {"now", 0, NULL, "kill it at once, without a snapshot"}, {0}};

enum { ASK_NOW_MS = 5000, END_S = 15 };

static int s_pid(const tt_rundir_t *run)
{
    tt_buf_t text;
    tt_buf_init(&text, 4096);
    int pid = 0;
    if (tt_rundir_read(run, "run.json", &text) == TT_OK) {
        json_t *who = json_loads(tt_buf_text(&text), 0, NULL);
        pid = (int)json_integer_value(json_object_get(who, "pid"));
        json_decref(who);
    }
    tt_buf_free(&text);
    return pid;
}

static bool s_await_end(const tt_rundir_t *run, double seconds)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + (int64_t)(seconds * 1000);
    while (tt_rundir_live(run)) {
        if (tt_now_ms(tt_clock_real()) >= deadline)
            return false;
        poll(NULL, 0, 10);
    }
    return true;
}

/*  The process of which run.json speaks is not this run's, as seen from here: the run has its own numbers (a PID namespace, that is a
 *  container), or the file is wrong. Nothing is signalled. The coordinator can be asked wherever it runs. */
static tt_status_t s_ask_now(const tt_rundir_t *run, int pid)
{
    const tt_status_t asked =
        tt_client_ask(run, "stop", "{\"reason\": \"tutti stop --now\", \"now\": true}", ASK_NOW_MS, NULL);
    if (!tt_rundir_live(run) || (asked == TT_OK && s_await_end(run, END_S)))
        return TT_OK;
    return tt_err(TT_UNAVAILABLE,
        "run %s cannot be killed from here: process %d, of which its run.json speaks, is not its here (it runs in a "
        "container, or another PID namespace, mostly), and its coordinator %s; 'tutti stop --now' in there does it, or "
        "end the container",
        run->name, pid, asked == TT_OK ? "has not ended it" : "does not answer");
}

/*  Two signals to the controller: the second one kills whatever the first one asked to end. Closer together than 0.2 s
 *  they would count as one (controller/guard.h). */
static tt_status_t s_kill(const tt_rundir_t *run)
{
    const int pid = s_pid(run);
    if (!tt_rundir_live(run))
        return TT_OK;
    TT_TRY(tt_rundir_may_ask(run));
    if (pid <= 1 || !tt_rundir_held_by(run, pid))
        return s_ask_now(run, pid);
    if (kill(pid, SIGTERM) != 0 || (s_await_end(run, 0.3), kill(pid, SIGTERM) != 0 && tt_rundir_live(run)))
        return tt_err_errno(TT_DENIED, "process %d", pid);
    return s_await_end(run, END_S) ? TT_OK : tt_err(TT_TIMEOUT, "process %d does not end", pid);
}

int tt_cmd_stop(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "stop", argc, argv);
    if (!args)
        return code;
    tt_rundir_t run;
    double timeout = 60;
    tt_status_t status = tt_arg_f64(args, "timeout", &timeout, 0, 1e6);
    if (status == TT_OK)
        status = tt_rundir_find(&run, tt_operand(args, 0));
    if (status == TT_OK && !tt_arg_given(args, "now")) {
        const bool live = tt_rundir_live(&run);
        status = tt_client_ask(&run, "stop", "{\"reason\": \"tutti stop\"}", 10000, NULL);
        if (status == TT_UNAVAILABLE && s_pid(&run) > 1 &&
            tt_rundir_held_by(&run, s_pid(&run))) /* no coordinator: the controller does it */
            status = kill(s_pid(&run), SIGTERM) == 0 ? TT_OK : tt_err_errno(TT_OS, "stopping process");
        if (status == TT_UNAVAILABLE && live && !tt_rundir_live(&run))
            return 0; /* it ended while it was asked to: somebody else had, or it did by itself */
        if (status == TT_OK && s_await_end(&run, timeout))
            return 0;
    }
    if (status == TT_OK)
        status = s_kill(&run);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
