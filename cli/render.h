/*  render - episodes as an animation, or as a folder of frames: what `tutti eval --render FILE` looks with, and writes.
 *
 *  Environments of Gymnasium show themselves (collector/gym/frames.h); others are drawn from what they observe (collector/scene.h).
 *  Threads: one. */
#pragma once
#include "collector/env.h"
#include "collector/eval.h"
#include "common/rl/columns.h"

typedef struct render render_t; /* opaque */

/*  Before the env of that id is looked for: one of Gymnasium's says then already that it makes no pictures. TT_EXISTS: there is a file at
 *  path, and not force, or a folder. TT_USAGE: its name says neither a GIF (.gif) nor a folder (/). */
tt_status_t render_new(render_t **self_p, const char *path, bool force, const char *id);
/*  The env. TT_UNSUPPORTED: nobody knows how it looks. */
tt_status_t render_env(render_t *self, const tt_env_ops_t *env, const tt_columns_t *columns);
/*  NULL inside is fine. Nothing is written that was not finished. */
void render_destroy(render_t **self_p);
/*  What eval calls: look of eval_cfg_t, with the instance as ctx. */
tt_status_t render_look(void *ctx, const void *const *obs, bool last);
/*  Write the file, or give the folder its name. TT_IO, TT_DENIED, TT_EXISTS, with nothing left behind. */
tt_status_t render_finish(render_t *self);

typedef struct {
    const char *path;
    uint64_t pictures, bytes;
    uint32_t width, height;
    double fps;
} render_about_t;

render_about_t render_about(const render_t *self);
