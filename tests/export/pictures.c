/*  pictures - what `tutti eval --render` is made of, for pictures.py.
 *
 *      pictures scene ENV       observations (float32 rows) on stdin -> raw pictures, [height][width][3] bytes each, on stdout
 *      pictures gif W H FPS N   raw pictures on stdin, episodes of N -> an animated GIF on stdout */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/gif.h"
#include "collector/registry.h"
#include "collector/scene.h"
#include "common/base/mem.h"

static tt_status_t s_scenes(const char *id)
{
    const tt_env_ops_t *env = NULL;
    tt_columns_t *columns = NULL;
    scene_t scene;
    TT_TRY(tt_env_find(&env, id));
    TT_TRY(tt_columns_new(&columns, &env->obs, &env->action, env->mask, true));
    TT_TRY(scene_of(&scene, env, columns));
    const size_t bytes = (size_t)scene.width * scene.height * 3, row = columns->at[0].bytes;
    draw_canvas_t canvas = {scene.width, scene.height, tt_array0(bytes, 1)};
    void *obs = tt_aligned0(row);
    while (fread(obs, 1, row, stdin) == row) {
        scene_draw(&scene, &canvas, (const void *[]){obs});
        fwrite(canvas.rgb, 1, bytes, stdout);
    }
    free(obs);
    free(canvas.rgb);
    tt_columns_destroy(&columns);
    return TT_OK;
}

static tt_status_t s_gif(uint32_t width, uint32_t height, double fps, uint64_t length)
{
    const size_t bytes = (size_t)width * height * 3;
    uint8_t *rgb = tt_array0(bytes, 1);
    gif_t *gif = gif_new(width, height, fps);
    const tt_buf_t *out = NULL;
    tt_status_t status = TT_OK;
    for (uint64_t i = 1; status == TT_OK && fread(rgb, 1, bytes, stdin) == bytes; i++)
        status = gif_add(gif, rgb, i % length == 0);
    if (status == TT_OK)
        status = gif_finish(gif, &out);
    if (status == TT_OK)
        fwrite(out->data, 1, out->size, stdout);
    gif_destroy(&gif);
    free(rgb);
    return status;
}

int main(int argc, char **argv)
{
    tt_status_t status = tt_err(TT_USAGE, "pictures scene ENV | gif WIDTH HEIGHT FPS LENGTH");
    if (argc == 3 && strcmp(argv[1], "scene") == 0)
        status = s_scenes(argv[2]);
    if (argc == 6 && strcmp(argv[1], "gif") == 0)
        status = s_gif((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), atof(argv[4]), (uint64_t)atoi(argv[5]));
    if (status != TT_OK)
        fprintf(stderr, "%s\n", tt_err_text());
    return status == TT_OK ? 0 : 1;
}
