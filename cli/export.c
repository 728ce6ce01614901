/*  export - a checkpoint's policy as a file that other programs run. */
#include "cli/export.h"
#include <stdio.h>
#include "cli/cmd.h"
#include "cli/weights.h"
#include "common/base/file.h"
#include "common/base/text.h"

const tt_option_t tt_opt_export[] = {
    {"onnx", 0, "FILE", "as an ONNX model (operator set 17): onnxruntime and many others run it"},
    {"best", 0, NULL, "of a run, the checkpoint with the best mean return in place of the last one"},
    {"force", 'f', NULL, "put the file in the place of one that is there"},
    {0},
};

/*  Each has an option of its name, whose argument is the file. */
static const struct {
    const char *name;
    tt_status_t (*make)(const checkpoint_t *checkpoint, tt_buf_t *out);
} s_formats[] = {
    {"onnx", export_onnx},
};

static tt_status_t s_write(const checkpoint_t *checkpoint, size_t format, const char *path, bool force)
{
    tt_buf_t bytes;
    tt_buf_init(&bytes, (size_t)1 << 32);
    tt_status_t status = s_formats[format].make(checkpoint, &bytes);
    if (status == TT_OK)
        status = tt_file_save(path, tt_buf_text(&bytes), bytes.size, force);
    if (status == TT_OK)
        printf("%s  %s, %zu bytes: %s, version %llu\n", tt_shown(path), s_formats[format].name, bytes.size,
            checkpoint->cfg.env, (unsigned long long)checkpoint->update);
    tt_buf_free(&bytes);
    return status;
}

static tt_status_t s_export(const tt_args_t *args, checkpoint_t *checkpoint, size_t format)
{
    char from[4300];
    const char *path = tt_arg(args, s_formats[format].name);
    const bool force = tt_arg_given(args, "force");
    const tt_status_t free_name = force ? TT_OK : tt_file_is_free(path);
    if (free_name != TT_OK)
        return tt_err(free_name, "%s is there already: another name, or --force", path);
    TT_TRY(weights_of(from, sizeof from, tt_operand(args, 0), tt_arg_given(args, "best")));
    TT_TRY(checkpoint_open(checkpoint, from, "cpu"));
    return s_write(checkpoint, format, path, force);
}

/*  The one that is asked for. */
static tt_status_t s_format(const tt_args_t *args, size_t *out)
{
    size_t given = 0;
    for (size_t i = 0; i < TT_COUNT(s_formats); i++)
        if (tt_arg_given(args, s_formats[i].name)) {
            *out = i;
            given++;
        }
    return given == 1 ? TT_OK : tt_err(TT_USAGE, "%s format: --onnx FILE", given ? "one" : "name a");
}

int tt_cmd_export(int argc, char **argv)
{
    int code;
    size_t format = 0;
    checkpoint_t checkpoint = {0};
    TT_AUTO(tt_args) args = tt_args_new(&code, "export", argc, argv);
    if (!args)
        return code;
    tt_status_t status = s_format(args, &format);
    if (status == TT_OK)
        status = s_export(args, &checkpoint, format);
    checkpoint_close(&checkpoint);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
