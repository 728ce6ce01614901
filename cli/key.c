/*  key - print a new key pair for a job, for who keeps it elsewhere than in a run directory (a Secret). */
#include <stdio.h>
#include <string.h>
#include "cli/cmd.h"
#include "common/net/net.h"

const tt_option_t tt_opt_key[] = {{0}};

int tt_cmd_key(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "key", argc, argv);
    if (!args)
        return code;
    tt_keys_t keys;
    char text[TT_KEYS_TEXT];
    const tt_status_t status = tt_keys_make(&keys);
    if (status != TT_OK)
        return tt_args_fail(args, status);
    tt_keys_text(&keys, text);
    fputs(text, stdout);
    explicit_bzero(text, sizeof text);
    explicit_bzero(&keys, sizeof keys);
    return 0;
}
