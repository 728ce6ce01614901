/*  act - the most probable actions of a checkpoint's policy, as `tutti eval` takes them: float observations [rows][n] come in on
 *  stdin, actions go out on stdout, int32 [rows] or float [rows][m]. For load_actor.py. */
#include <stdio.h>
#include <stdlib.h>
#include "collector/checkpoint.h"
#include "common/base/mem.h"
#include "common/rl/dist.h"

static tt_status_t s_act(const checkpoint_t *self, const float *in)
{
    const tt_net_spec_t *spec = tt_net_spec(self->net);
    float *obs = tt_array0(spec->obs, sizeof *obs), *head = tt_array0(spec->out, sizeof *head);
    const float *row = self->norm ? obs : in;
    int32_t choice;
    if (self->norm)
        tt_norm_scale(self->norm, in, 1, self->cfg.normalize.clip_obs, obs);
    const tt_status_t status = tt_net_forward(self->net, 0, &row, 1, head, NULL);
    if (status == TT_OK && spec->continuous) {
        fwrite(head, sizeof *head, spec->out, stdout);
    } else if (status == TT_OK) {
        tt_cat_greedy(head, 1, spec->out, &choice);
        fwrite(&choice, sizeof choice, 1, stdout);
    }
    free(obs);
    free(head);
    return status;
}

int main(int argc, char **argv)
{
    checkpoint_t checkpoint;
    tt_status_t status = argc == 2 ? checkpoint_open(&checkpoint, argv[1]) : tt_err(TT_INVALID, "act CHECKPOINT");
    if (status == TT_OK) {
        const size_t n = tt_net_spec(checkpoint.net)->obs;
        float *obs = tt_array0(n, sizeof *obs);
        while (status == TT_OK && fread(obs, sizeof *obs, n, stdin) == n)
            status = s_act(&checkpoint, obs);
        free(obs);
        checkpoint_close(&checkpoint);
    }
    if (status != TT_OK)
        fprintf(stderr, "%s\n", tt_err_text());
    return status == TT_OK ? 0 : 1;
}
