#include "cli/render.h"
#include <stdlib.h>
#include <string.h>
#include "cli/gif.h"
#include "collector/gym/frames.h"
#include "collector/scene.h"
#include "common/base/file.h"
#include "common/base/mem.h"

struct render {
    render_about_t about;
    bool force;
    scene_t scene;
    draw_canvas_t canvas; /* of the scene                       */
    gym_frames_t *frames; /* NULL: it is drawn                   */
    gif_t *gif;           /* from the first picture on, when its size is known */
};

static tt_status_t s_check_path(const char *path, bool force)
{
    const size_t size = strlen(path);
    if (size < 5 || strcmp(path + size - 4, ".gif") != 0)
        return tt_err(TT_USAGE, "--render writes an animated GIF: %s does not end in .gif", path);
    const tt_status_t there = force ? TT_OK : tt_file_is_free(path);
    return there == TT_OK ? TT_OK : tt_err(there, "%s is there already: another name, or --force", path);
}

tt_status_t render_new(render_t **self_p, const char *path, bool force, const char *id)
{
    TT_TRY(s_check_path(path, force));
    TT_AUTO(render) self = tt_new0(sizeof *self);
    self->about.path = path;
    self->force = force;
    if (strncmp(id, "gym:", 4) == 0)
        TT_TRY(gym_frames_open(&self->frames, GIF_SIDE_MAX));
    *self_p = self;
    self = NULL;
    return TT_OK;
}

tt_status_t render_env(render_t *self, const tt_env_ops_t *env, const tt_columns_t *columns)
{
    if (self->frames)
        return TT_OK;
    TT_TRY(scene_of(&self->scene, env, columns));
    self->canvas = (draw_canvas_t){.width = self->scene.width, .height = self->scene.height};
    if (self->canvas.width > GIF_SIDE_MAX || self->canvas.height > GIF_SIDE_MAX)
        return tt_err(TT_UNSUPPORTED, "%s shows pictures of %u x %u; %d x %d are possible", env->id, self->canvas.width,
            self->canvas.height, GIF_SIDE_MAX, GIF_SIDE_MAX);
    self->canvas.rgb = tt_array0((size_t)self->canvas.width * self->canvas.height, 3);
    return TT_OK;
}

void render_destroy(render_t **self_p)
{
    render_t *self = *self_p;
    if (!self)
        return;
    gym_frames_close(&self->frames);
    gif_destroy(&self->gif);
    free(self->canvas.rgb);
    free(self);
    *self_p = NULL;
}

/*  The picture of now. */
static tt_status_t s_frame(render_t *self, const void *const *obs, gym_frame_t *out)
{
    if (self->frames)
        return gym_frames_read(self->frames, out);
    scene_draw(&self->scene, &self->canvas, obs);
    *out = (gym_frame_t){self->scene.width, self->scene.height, self->scene.fps, self->canvas.rgb};
    return TT_OK;
}

tt_status_t render_look(void *ctx, const void *const *obs, bool last)
{
    render_t *self = ctx;
    render_about_t *about = &self->about;
    gym_frame_t frame;
    TT_TRY(s_frame(self, obs, &frame));
    if (!self->gif) {
        about->width = frame.width;
        about->height = frame.height;
        about->fps = frame.fps;
        self->gif = gif_new(frame.width, frame.height, frame.fps);
    }
    if (frame.width != about->width || frame.height != about->height)
        return tt_err(TT_INTERNAL, "the environment's picture was %u x %u, and is %u x %u now", about->width,
            about->height, frame.width, frame.height);
    return gif_add(self->gif, frame.rgb, last);
}

tt_status_t render_finish(render_t *self)
{
    const tt_buf_t *bytes;
    TT_TRY(gif_finish(self->gif, &bytes));
    TT_TRY(tt_file_save(self->about.path, bytes->data, bytes->size, self->force));
    self->about.pictures = gif_pictures(self->gif);
    self->about.bytes = bytes->size;
    return TT_OK;
}

render_about_t render_about(const render_t *self)
{
    return self->about;
}
