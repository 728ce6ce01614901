/*  main - tutti: finds the subcommand in one table (cli/commands.def) and calls it. */
#include "cli/cmd.h"
#include "cli/help.h"
#include "cli/leftovers.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "common/base/descriptors.h"
#include "common/base/text.h"
#include "common/base/thread_stack.h"

static int s_unknown(const char *name)
{
    const char *near = tt_command_nearest("", name);
    if (near)
        fprintf(stderr, "tutti: no command '%s'; did you mean 'tutti %s'?\n", tt_shown(name), near);
    else
        fprintf(stderr, "tutti: no command '%s'; 'tutti help' lists them\n", tt_shown(name));
    return tt_status_exit_code(TT_USAGE);
}

/*  Who redirects to a full disk must not think that he has it all. Of a write that failed earlier the reason is gone: errno
 *  has been others' since. */
static int s_flushed(int code)
{
    const int reason = fflush(stdout) == 0 ? 0 : errno;
    if (!reason && !ferror(stdout))
        return code;
    fprintf(stderr, "tutti: not all of the output could be written%s%s\n", reason ? ": " : "",
        reason ? strerror(reason) : "");
    return code ? code : tt_status_exit_code(TT_IO);
}

static int s_refused(void)
{
    fprintf(stderr, "tutti: %s\n", tt_err_text());
    return tt_status_exit_code(TT_OS);
}

/*  A chroot without it: the program does not find its own files there, nor itself, to start what a run consists of. */
static tt_status_t s_check_proc(const char *name)
{
    static const char *const without[] = {"help", "version", "completion"};
    for (size_t i = 0; i < TT_COUNT(without); i++)
        if (strcmp(name, without[i]) == 0)
            return TT_OK;
    if (access("/proc/self/exe", F_OK) == 0)
        return TT_OK;
    return tt_err(
        TT_OS, "there is no /proc here, where tutti finds its own files and processes: mount -t proc proc /proc");
}

/*  These play by themselves. */
static int s_run(const tt_command_t *command, int argc, char **argv)
{
    const char *name = command->name;
    if (strcmp(name, "bench") != 0 && strcmp(name, "envs") != 0 && strcmp(name, "eval") != 0)
        return command->run(argc, argv);
    leftovers_watch();
    const int code = command->run(argc, argv);
    leftovers_end();
    return code;
}

int main(int argc, char **argv)
{
    prctl(PR_SET_NAME, "tutti"); /* replicas are started through /proc/self/exe and would be called "exe" */
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); /* cuda:N is then card N of nvidia-smi, whatever is faster */
    tt_descriptors_fill();
    tt_descriptors_raise();
    if (tt_thread_stack_raise() != TT_OK)
        return s_refused();
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error with words, as a full disk is */
    if (argc < 2) {
        help_overview(stderr);
        return tt_status_exit_code(TT_USAGE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_overview(stdout);
        return 0;
    }
    const bool version = strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0;
    const char *name = version ? "version" : argv[1];
    const tt_command_t *command = strchr(name, ' ') ? NULL : tt_command_find(name);
    if (!command)
        return s_unknown(name);
    if (s_check_proc(name) != TT_OK)
        return s_refused();
    return s_flushed(s_run(command, argc - 1, argv + 1));
}
