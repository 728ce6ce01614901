/*  panel - the block that `tutti run` shows: what is known of a run, laid out for a screen of any size. Sections that do not
 *  fit its height are left out, the least important first; items of a section flow over as many lines as they need.
 *
 *  The numbers of the algorithm come as it reports them ("losses/entropy"): no name is known here.
 *  Threads: pure. */
#pragma once
#include <stdint.h>
#include "cli/canvas.h"

enum { PANEL_ROLES = 8, PANEL_METRICS = 160, PANEL_NAME = 64 };

typedef struct {
    char name[PANEL_NAME];
    double value;
} panel_metric_t;

typedef struct {
    char name[32];
    uint32_t desired, ready;
} panel_role_t;

/*  NAN, 0 and "" are unknown. */
typedef struct {
    const char *run, *env, *algorithm; /* borrowed */
    uint64_t seed;
    double elapsed_s;
    double done; /* of what the stop rules allow, 0 .. 1; NAN = there is no limit   */
    double left_s;
    uint64_t env_steps, step_limit, updates, episodes, lag;
    double sps, return_mean, length_mean, goal;
    size_t role_count, metric_count;
    panel_role_t role[PANEL_ROLES];
    panel_metric_t
        metric[PANEL_METRICS]; /* "<group>/<name>"; "time/<role>/<stage>" are parts of the time, "time/..._us" is
                                             left out */
    char bottleneck[256];
} panel_t;

/*  At most screen->height - 1 lines, so that the cursor has one below them. */
void panel_draw(const panel_t *self, canvas_t *out);
