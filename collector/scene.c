#include "collector/scene.h"
#include <math.h>
#include <string.h>

enum { PICTURE = 400 /* pixels of a small picture's longer side, about */ };

static const draw_colour_t s_white = {255, 255, 255}, s_black = {0, 0, 0}, s_wheel = {128, 128, 128},
                           s_yellow = {204, 204, 0}, s_pole = {202, 152, 101}, s_axle = {129, 132, 203},
                           s_rod = {204, 77, 77}, s_link = {0, 204, 204};

/* ---- the classic ones: sizes and colours of gymnasium/envs/classic_control (1.4.0, MIT) ------------------------------ */

/*  Points beside an origin, turned by an angle (counter-clockwise, y up), on the canvas. */
static void s_turned(draw_canvas_t *canvas, draw_point_t origin, double angle, const draw_point_t *point,
    uint32_t points, draw_colour_t colour)
{
    draw_point_t out[DRAW_POINTS_MAX];
    for (uint32_t i = 0; i < points; i++) {
        out[i].x = origin.x + point[i].x * cos(angle) - point[i].y * sin(angle);
        out[i].y = origin.y - point[i].x * sin(angle) - point[i].y * cos(angle);
    }
    draw_polygon(canvas, out, points, colour);
}

/*  The box left .. right, bottom .. top beside an origin, turned. */
static void s_box(draw_canvas_t *canvas, draw_point_t origin, double angle, double left, double right, double bottom,
    double top, draw_colour_t colour)
{
    const draw_point_t corner[4] = {{left, bottom}, {left, top}, {right, top}, {right, bottom}};
    s_turned(canvas, origin, angle, corner, 4, colour);
}

static void s_cartpole(const scene_t *self, draw_canvas_t *canvas, const void *const *obs)
{
    enum { GROUND = 100, CART_WIDTH = 50, CART_HEIGHT = 30, POLE_WIDTH = 10, POLE_LENGTH = 125 };
    const float *state = obs[0];
    const double scale = self->width / 4.8, x = (double)state[0] * scale + self->width / 2.0;
    const double y = (double)self->height - GROUND;
    const draw_point_t cart = {x, y}, joint = {x, y - CART_HEIGHT / 4.0};
    draw_rectangle(canvas, 0, y, self->width, 1, s_black);
    s_box(canvas, cart, 0, -CART_WIDTH / 2.0, CART_WIDTH / 2.0, -CART_HEIGHT / 2.0, CART_HEIGHT / 2.0, s_black);
    s_box(canvas, joint, -(double)state[2], -POLE_WIDTH / 2.0, POLE_WIDTH / 2.0, -POLE_WIDTH / 2.0,
        POLE_LENGTH - POLE_WIDTH / 2.0, s_pole);
    draw_disc(canvas, joint.x, joint.y, POLE_WIDTH / 2.0, s_axle);
}

static double s_hill(double x)
{
    return sin(3 * x) * 0.45 + 0.55;
}

/*  goal: of the two cars it is not the same. */
static void s_mountain(const scene_t *self, draw_canvas_t *canvas, double position, double goal)
{
    enum { STEPS = 100, CLEARANCE = 10, CAR_WIDTH = 40, CAR_HEIGHT = 20, POLE = 50 };
    const double left = -1.2, scale = self->width / 1.8, height = self->height;
    draw_point_t before = {0, height - s_hill(left) * scale};
    for (uint32_t i = 1; i <= STEPS; i++) {
        const double x = 1.8 * i / STEPS;
        const draw_point_t at = {x * scale, height - s_hill(left + x) * scale};
        draw_line(canvas, before, at, 1.5, s_black);
        before = at;
    }
    const double x = (position - left) * scale, y = s_hill(position) * scale, angle = cos(3 * position);
    const draw_point_t car = {x, height - y - CLEARANCE};
    s_box(canvas, car, angle, -CAR_WIDTH / 2.0, CAR_WIDTH / 2.0, 0, CAR_HEIGHT, s_black);
    for (int side = -1; side <= 1; side += 2)
        draw_disc(canvas, car.x + side * CAR_WIDTH / 4.0 * cos(angle), car.y - side * CAR_WIDTH / 4.0 * sin(angle),
            CAR_HEIGHT / 2.5, s_wheel);
    const double flag = (goal - left) * scale, foot = height - s_hill(goal) * scale;
    const draw_point_t cloth[3] = {{flag, foot - POLE}, {flag, foot - POLE + 10}, {flag + 25, foot - POLE + 5}};
    draw_rectangle(canvas, flag, foot - POLE, 1, POLE, s_black);
    draw_polygon(canvas, cloth, 3, s_yellow);
}

static void s_mountain_car(const scene_t *self, draw_canvas_t *canvas, const void *const *obs)
{
    s_mountain(self, canvas, (double)*(const float *)obs[0], 0.5);
}

static void s_continuous_mountain_car(const scene_t *self, draw_canvas_t *canvas, const void *const *obs)
{
    s_mountain(self, canvas, (double)*(const float *)obs[0], 0.45);
}

static void s_pendulum(const scene_t *self, draw_canvas_t *canvas, const void *const *obs)
{
    const float *state = obs[0];
    const double scale = self->width / 4.4, angle = atan2((double)state[1], (double)state[0]) + M_PI / 2;
    const draw_point_t middle = {self->width / 2.0, self->height / 2.0};
    const double x = middle.x + scale * cos(angle), y = middle.y - scale * sin(angle), half = 0.1 * scale;
    s_box(canvas, middle, angle, 0, scale, -half, half, s_rod);
    draw_disc(canvas, middle.x, middle.y, half, s_rod);
    draw_disc(canvas, x, y, half, s_rod);
    draw_disc(canvas, middle.x, middle.y, 0.05 * scale, s_black);
}

static void s_acrobot(const scene_t *self, draw_canvas_t *canvas, const void *const *obs)
{
    const float *state = obs[0];
    const double scale = self->width / 4.4, half = 0.1 * scale;
    const double first = atan2((double)state[1], (double)state[0]),
                 second = first + atan2((double)state[3], (double)state[2]);
    const double angle[2] = {first - M_PI / 2, second - M_PI / 2};
    draw_point_t joint = {self->width / 2.0, self->height / 2.0};
    draw_rectangle(canvas, 0, joint.y - scale, self->width, 1, s_black);
    for (int i = 0; i < 2; i++) {
        s_box(canvas, joint, angle[i], 0, scale, -half, half, s_link);
        draw_disc(canvas, joint.x, joint.y, half, s_yellow);
        joint = (draw_point_t){joint.x + scale * cos(angle[i]), joint.y - scale * sin(angle[i])};
    }
}

/* ---- pictures -------------------------------------------------------------------------------------------------------- */

static uint8_t s_level(double share)
{
    return (uint8_t)lround(fmin(fmax(share, 0), 1) * 255);
}

/*  Number `channel` of `channels` colours, spread over Green's cubehelix (2011, arXiv:1108.5083; start 0.5, rotations -1.5), as
 *  MinAtar shows its boards. */
static draw_colour_t s_channel_colour(uint32_t channel, uint32_t channels)
{
    const double x = (channel + 1.0) / (channels + 1), amplitude = x * (1 - x) / 2,
                 phi = 2 * M_PI * (0.5 / 3 - 1.5 * x);
    return (draw_colour_t){s_level(x + amplitude * (-0.14861 * cos(phi) + 1.78277 * sin(phi))),
        s_level(x + amplitude * (-0.29227 * cos(phi) - 0.90649 * sin(phi))),
        s_level(x + amplitude * 1.97294 * cos(phi))};
}

/*  The highest channel that is set shows. */
static draw_colour_t s_colour(const scene_t *self, const uint8_t *value, uint64_t stride)
{
    draw_colour_t colour = s_black;
    if (self->channels == 1)
        return (draw_colour_t){*value, *value, *value};
    if (self->channels == 3)
        return (draw_colour_t){value[0], value[stride], value[2 * stride]};
    for (uint32_t c = 0; c < self->channels; c++)
        if (value[c * stride])
            colour = s_channel_colour(c, self->channels);
    return colour;
}

static void s_picture(const scene_t *self, draw_canvas_t *canvas, const void *const *obs)
{
    const uint8_t *at = obs[self->column];
    const uint32_t side = self->width / self->columns;
    const uint64_t cells = (uint64_t)self->rows * self->columns;
    const uint64_t step = self->channels_first ? 1 : self->channels, stride = self->channels_first ? cells : 1;
    for (uint64_t cell = 0; cell < cells; cell++)
        draw_rectangle(canvas, (double)(cell % self->columns * side), (double)(cell / self->columns * side), side, side,
            s_colour(self, at + cell * step, stride));
}

/*  A bit is on or off, not one of 256 levels. */
static void s_bits(const scene_t *self, draw_canvas_t *canvas, const void *const *obs)
{
    const uint8_t *at = obs[self->column];
    const uint32_t side = self->width / self->columns;
    for (uint32_t cell = 0; cell < self->rows * self->columns; cell++) {
        draw_colour_t colour = s_black;
        for (uint32_t c = 0; c < self->channels; c++)
            if (at[self->channels_first ? c * self->rows * self->columns + cell : cell * self->channels + c])
                colour = s_channel_colour(c, self->channels);
        draw_rectangle(canvas, cell % self->columns * side, cell / self->columns * side, side, side, colour);
    }
}

/* ---- which -------------------------------------------------------------------------------------------------------------- */

static const scene_t s_scenes[] = {
    {.id = "CartPole-v1", .width = 600, .height = 400, .fps = 50, .draw = s_cartpole},
    {.id = "CartPoleNoVel-v1", .width = 600, .height = 400, .fps = 50, .draw = s_cartpole},
    {.id = "MountainCar-v0", .width = 600, .height = 400, .fps = 30, .draw = s_mountain_car},
    {.id = "MountainCarContinuous-v0", .width = 600, .height = 400, .fps = 30, .draw = s_continuous_mountain_car},
    {.id = "Pendulum-v1", .width = 500, .height = 500, .fps = 30, .draw = s_pendulum},
    {.id = "PendulumNoVel-v1", .width = 500, .height = 500, .fps = 30, .draw = s_pendulum},
    {.id = "Acrobot-v1", .width = 500, .height = 500, .fps = 15, .draw = s_acrobot},
};

static void s_look(scene_t *out, const tt_column_t *column, uint32_t number, bool bits)
{
    const uint32_t *shape = column->shape;
    out->channels_first = column->rank == 3 && shape[0] < shape[2] && shape[0] <= shape[1];
    out->rows = shape[out->channels_first ? 1 : 0];
    out->columns = shape[out->channels_first ? 2 : 1];
    out->channels = column->rank == 2 ? 1 : shape[out->channels_first ? 0 : 2];
    const uint32_t longer = out->rows > out->columns ? out->rows : out->columns;
    const uint32_t side = longer < PICTURE ? PICTURE / longer : 1;
    out->column = number;
    out->width = out->columns * side;
    out->height = out->rows * side;
    out->fps = bits ? 10 : 30;
    out->draw = bits ? s_bits : s_picture;
}

tt_status_t scene_of(scene_t *out, const tt_env_ops_t *env, const tt_columns_t *columns)
{
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    const uint32_t count = tt_space_leaves(&env->obs, leaf, TT_COLUMNS_MAX);
    *out = (scene_t){.id = NULL};
    for (size_t i = 0; i < TT_COUNT(s_scenes); i++)
        if (strcmp(s_scenes[i].id, env->id) == 0) {
            *out = s_scenes[i];
            return TT_OK;
        }
    for (uint32_t c = 0; c < count; c++) {
        const tt_column_t *column = &columns->at[c];
        if (!tt_column_is_bytes(column) || (column->rank != 2 && column->rank != 3))
            continue;
        s_look(out, column, c, leaf[c]->kind != TT_SPACE_BOX || leaf[c]->dtype == TT_BOOL);
        return TT_OK;
    }
    return tt_err(TT_UNSUPPORTED,
        "%s cannot be shown: it is none of Tutti's own, and its observation has no picture of bytes; Gymnasium's "
        "environments (gym:ID) show themselves",
        env->id);
}

void scene_draw(const scene_t *self, draw_canvas_t *canvas, const void *const *obs)
{
    draw_rectangle(canvas, 0, 0, canvas->width, canvas->height, s_white);
    self->draw(self, canvas, obs);
}
