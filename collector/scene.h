/*  scene - what an environment looks like, drawn from its observation.
 *
 *  The native ones by functions of their own (one line each in the table of scene.c), of the sizes and in the colours in which Gymnasium
 *  and MinAtar show them. Of any other that shows a picture of bytes it is that picture: grey, red-green-blue, or a colour for each
 *  channel as MinAtar has it.
 *  Threads: pure. */
#pragma once
#include "collector/draw.h"
#include "collector/env.h"
#include "common/base/status.h"
#include "common/rl/columns.h"

typedef struct scene scene_t;
struct scene {
    const char *id; /* NULL: the picture of a column                    */
    uint32_t width, height;
    double fps; /* pictures a second                                */
    void (*draw)(const scene_t *self, draw_canvas_t *canvas, const void *const *obs);

    uint32_t column, rows, columns, channels; /* of a picture                    */
    bool channels_first;
};

/*  TT_UNSUPPORTED: nobody knows how it looks. */
tt_status_t scene_of(scene_t *out, const tt_env_ops_t *env, const tt_columns_t *columns);
/*  All of the canvas, which is of the scene's size. obs[k]: a row of the observation's column k, as it is stored. */
void scene_draw(const scene_t *self, draw_canvas_t *canvas, const void *const *obs);
