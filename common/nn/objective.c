#include "common/nn/spec.h"

static bool s_alike(const tt_objective_stage_t *a, const tt_objective_stage_t *b)
{
    return a->tower == b->tower && a->set == b->set && a->frame == b->frame;
}

/*  One is made of the other's head, or of one that is made of that. */
static bool s_reads(const tt_net_spec_t *spec, uint32_t t, uint32_t head)
{
    do
        head = tt_spec_made_of(spec, head);
    while (head < spec->towers && head != t);
    return head == t && t < spec->towers;
}

/*  A head that the loss trains, and that a tower made of it trains too, would have two sources of gradient. */
static tt_status_t s_check_sources(const tt_objective_t *objective, const tt_net_spec_t *spec)
{
    for (uint32_t s = 0; s < objective->stages; s++)
        for (uint32_t h = 0; h < objective->stages; h++) {
            const uint32_t t = objective->stage[s].tower, head = objective->stage[h].tower;
            if (objective->stage[s].grad && objective->stage[h].grad && s_reads(spec, t, head))
                return tt_err(TT_INVALID, "objective %s: stages %u and %u both train the head of %s, which %s reads",
                    objective->name, s, h, spec->tower[head].name, spec->tower[t].name);
        }
    return TT_OK;
}

static bool s_is_trained_view(const tt_objective_stage_t *stage)
{
    return stage->set == 0 && stage->frame == TT_AT;
}

/*  What a stage's tower reads beside the observation. */
static tt_status_t s_check_action(const tt_objective_t *objective, uint32_t s, const tt_net_spec_t *spec)
{
    const tt_objective_stage_t *stage = &objective->stage[s];
    const char *tower = spec->tower[stage->tower].name;
    if ((stage->action != TT_ACTION_NONE) != spec->tower[stage->tower].action)
        return tt_err(TT_INVALID, "objective %s: stage %u: %s reads %s action", objective->name, s, tower,
            spec->tower[stage->tower].action ? "an" : "no");
    if (stage->action == TT_ACTION_DRAWN && !objective->draw)
        return tt_err(TT_INVALID, "objective %s: stage %u reads what is drawn, and nothing is", objective->name, s);
    if (stage->action == TT_ACTION_GIVEN && objective->given >= TT_INPUTS_MAX)
        return tt_err(TT_INVALID, "objective %s: stage %u reads the actions of input %u; at most %d are possible",
            objective->name, s, objective->given, TT_INPUTS_MAX);
    if (stage->through && (stage->grad || stage->action != TT_ACTION_DRAWN || !objective->d_draw ||
                              !s_is_trained_view(stage) || !objective->stage[objective->source].grad))
        return tt_err(TT_INVALID,
            "objective %s: stage %u: a gradient goes through %s only to what was drawn from a stage that is trained, "
            "of set 0 and the row's own frame",
            objective->name, s, tower);
    for (uint32_t before = 0; before < s; before++) {
        const tt_objective_stage_t *other = &objective->stage[before];
        if (stage->action && other->action && stage->action != other->action && stage->set == other->set &&
            stage->frame == other->frame)
            return tt_err(TT_INVALID, "objective %s: stages %u and %u see one set and frame with two actions",
                objective->name, before, s);
    }
    return TT_OK;
}

/*  The way back through what is drawn from finds its forward as it was. Somebody reads what is drawn: so there is room for it. */
static tt_status_t s_check_draw(const tt_objective_t *objective, const tt_net_spec_t *spec)
{
    if (!objective->draw)
        return TT_OK;
    if (tt_net_carry(spec))
        return tt_err(TT_INVALID, "objective %s: nothing is drawn from a network that recurs", objective->name);
    bool read = false;
    for (uint32_t s = 0; s < objective->stages; s++)
        read |= objective->stage[s].action == TT_ACTION_DRAWN;
    if (!read)
        return tt_err(TT_INVALID, "objective %s: it draws, and no stage reads that", objective->name);
    if (objective->source >= objective->stages || objective->stage[objective->source].action)
        return tt_err(TT_INVALID, "objective %s: it draws from stage %u of %u, which must read no action",
            objective->name, objective->source, objective->stages);
    if (objective->stage[objective->source].known)
        return tt_err(TT_INVALID, "objective %s: it draws from stage %u, which is known and not forwarded",
            objective->name, objective->source);
    for (uint32_t s = 0; objective->stage[objective->source].grad && s < objective->stages; s++)
        if (!objective->stage[s].known && !s_is_trained_view(&objective->stage[s]))
            return tt_err(TT_INVALID,
                "objective %s: stage %u is not of set 0 and the row's own frame, and what is drawn from is trained",
                objective->name, s);
    return TT_OK;
}

/*  Set and frame say whose head it is, and no more: of a network that recurs any will do. */
static tt_status_t s_check_known(const tt_objective_t *objective, uint32_t s, const tt_net_spec_t *spec)
{
    const tt_objective_stage_t *stage = &objective->stage[s];
    if (stage->grad || stage->through || stage->action)
        return tt_err(TT_INVALID,
            "objective %s: stage %u: %s is known: it is neither trained nor gone through, and reads no action",
            objective->name, s, spec->tower[stage->tower].name);
    return TT_OK;
}

static tt_status_t s_check_forward(const tt_objective_t *objective, uint32_t s, const tt_net_spec_t *spec)
{
    const tt_objective_stage_t *stage = &objective->stage[s];
    if (stage->grad && !s_is_trained_view(stage))
        return tt_err(TT_INVALID, "objective %s: stage %u trains %s: only set 0 and the row's own frame can be",
            objective->name, s, spec->tower[stage->tower].name);
    TT_TRY(s_check_action(objective, s, spec));
    if (tt_net_carry(spec) && !s_is_trained_view(stage))
        return tt_err(TT_INVALID,
            "objective %s: stage %u: a network that recurs is seen in set 0 and the row's own frame alone",
            objective->name, s);
    return TT_OK;
}

static tt_status_t s_check_stage(const tt_objective_t *objective, uint32_t s, const tt_net_spec_t *spec)
{
    const tt_objective_stage_t *stage = &objective->stage[s];
    const uint32_t sets = tt_spec_sets(spec);
    if (stage->tower >= spec->towers)
        return tt_err(TT_INVALID, "objective %s: stage %u: tower %u of a network of %u", objective->name, s,
            stage->tower, spec->towers);
    const char *tower = spec->tower[stage->tower].name;
    if (spec->tower[stage->tower].out == 0)
        return tt_err(TT_INVALID, "objective %s: stage %u: %s is a trunk and has no head", objective->name, s, tower);
    if (stage->grad && spec->tower[stage->tower].kind == TT_TOWER_ATOMS)
        return tt_err(TT_INVALID, "objective %s: stage %u: no gradient goes through %s: train %s, of which it is made",
            objective->name, s, tower, spec->tower[spec->tower[stage->tower].value].name);
    if (stage->set >= sets)
        return tt_err(TT_INVALID, "objective %s: stage %u: set %u of %u", objective->name, s, stage->set, sets);
    if (stage->frame >= TT_FRAMES)
        return tt_err(TT_INVALID, "objective %s: stage %u: frame %u is unknown", objective->name, s, stage->frame);
    TT_TRY(stage->known ? s_check_known(objective, s, spec) : s_check_forward(objective, s, spec));
    for (uint32_t before = 0; before < s; before++)
        if (s_alike(&objective->stage[before], stage))
            return tt_err(TT_INVALID, "objective %s: stages %u and %u are the same forward of %s", objective->name,
                before, s, tower);
    return TT_OK;
}

tt_status_t tt_objective_check(const tt_objective_t *objective, const tt_net_spec_t *spec)
{
    if (objective->stages < 1 || objective->stages > TT_STAGES_MAX)
        return tt_err(TT_INVALID, "objective %s: %u stages; 1 to %d are possible", objective->name, objective->stages,
            TT_STAGES_MAX);
    TT_TRY(s_check_draw(objective, spec));
    for (uint32_t s = 0; s < objective->stages; s++)
        TT_TRY(s_check_stage(objective, s, spec));
    return s_check_sources(objective, spec);
}
