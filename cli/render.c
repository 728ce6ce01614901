#include "cli/render.h"
#include <stdlib.h>
#include <string.h>
#include "cli/frames.h"
#include "cli/gif.h"
#include "collector/gym/frames.h"
#include "collector/scene.h"
#include "common/base/file.h"
#include "common/base/mem.h"

/*  What pictures become: by what the path ends in. */
typedef struct {
    const char *ending;
    tt_status_t (*begin)(render_t *self, const gym_frame_t *frame); /* with the first picture, when its size is known */
    tt_status_t (*add)(render_t *self, const uint8_t *rgb, bool last);
    tt_status_t (*finish)(render_t *self);
} writer_t;

struct render {
    render_about_t about;
    bool force;
    scene_t scene;
    draw_canvas_t canvas; /* of the scene                       */
    gym_frames_t *frames; /* NULL: it is drawn                   */
    const writer_t *writer;
    gif_t *gif;       /* of its writer, from the first picture on */
    frames_t *folder; /* of its writer                            */
};

/* ---- an animation ----------------------------------------------------------------------------------------------------- */

static tt_status_t s_gif_begin(render_t *self, const gym_frame_t *frame)
{
    self->gif = gif_new(frame->width, frame->height, frame->fps);
    return TT_OK;
}

static tt_status_t s_gif_add(render_t *self, const uint8_t *rgb, bool last)
{
    return gif_add(self->gif, rgb, last);
}

static tt_status_t s_gif_finish(render_t *self)
{
    const tt_buf_t *bytes;
    TT_TRY(gif_finish(self->gif, &bytes));
    self->about.bytes = bytes->size;
    return tt_file_save(self->about.path, bytes->data, bytes->size, self->force);
}

/* ---- a folder of frames ----------------------------------------------------------------------------------------------- */

static tt_status_t s_folder_begin(render_t *self, const gym_frame_t *frame)
{
    return frames_new(&self->folder, self->about.path, frame->width, frame->height);
}

static tt_status_t s_folder_add(render_t *self, const uint8_t *rgb, bool last)
{
    (void)last;
    return frames_add(self->folder, rgb);
}

static tt_status_t s_folder_finish(render_t *self)
{
    return frames_finish(self->folder, &self->about.bytes);
}

static const writer_t s_writers[] = {
    {".gif", s_gif_begin, s_gif_add, s_gif_finish},
    {"/", s_folder_begin, s_folder_add, s_folder_finish},
};

/* ---- whatever it becomes ----------------------------------------------------------------------------------------------- */

static bool s_ends(const char *path, const char *ending)
{
    const size_t size = strlen(path), length = strlen(ending);
    return size > length && strcmp(path + size - length, ending) == 0;
}

static const writer_t *s_writer(const char *path)
{
    for (size_t i = 0; i < TT_COUNT(s_writers); i++)
        if (s_ends(path, s_writers[i].ending))
            return &s_writers[i];
    return NULL;
}

static tt_status_t s_check_path(const char *path, bool force)
{
    if (!s_writer(path))
        return tt_err(TT_USAGE,
            "--render writes an animated GIF or a folder of PNG files: %s ends neither in .gif nor in /", path);
    const bool folder = s_ends(path, "/");
    const tt_status_t there = force && !folder ? TT_OK : tt_file_is_free(path);
    return there == TT_OK ? TT_OK
                          : tt_err(there, "%s is there already: another name%s", path, folder ? "" : ", or --force");
}

tt_status_t render_new(render_t **self_p, const char *path, bool force, const char *id)
{
    TT_TRY(s_check_path(path, force));
    TT_AUTO(render) self = tt_new0(sizeof *self);
    self->about.path = path;
    self->writer = s_writer(path);
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
    frames_destroy(&self->folder);
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
    if (!about->pictures) {
        about->width = frame.width;
        about->height = frame.height;
        about->fps = frame.fps;
        TT_TRY(self->writer->begin(self, &frame));
    }
    if (frame.width != about->width || frame.height != about->height)
        return tt_err(TT_INTERNAL, "the environment's picture was %u x %u, and is %u x %u now", about->width,
            about->height, frame.width, frame.height);
    about->pictures++;
    return self->writer->add(self, frame.rgb, last);
}

tt_status_t render_finish(render_t *self)
{
    return self->writer->finish(self);
}

render_about_t render_about(const render_t *self)
{
    return self->about;
}
