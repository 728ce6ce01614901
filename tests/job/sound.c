#include "tests/job/world.h"
#include <string.h>

static tt_status_t s_check_link(const tt_rules_t *self, size_t at, int other, const char *what)
{
    if (other != TT_GROUP_NONE && (other < 0 || (size_t)other >= self->group_count || (size_t)other == at))
        return tt_err(TT_CONFIG, "group '%s' %s group %d, which is none or itself", self->groups[at].name, what, other);
    return TT_OK;
}

static tt_status_t s_check(const tt_rules_t *self, size_t at)
{
    const tt_group_t *group = &self->groups[at];
    const bool ordinal = group->identity == TT_ID_ORDINAL, step = group->on_failure == TT_FAILURE_RESTART_JOB;
    for (size_t i = 0; i < at; i++) {
        if (strcmp(self->groups[i].name, group->name) == 0)
            return tt_err(TT_CONFIG, "two groups are named '%s'", group->name);
        if (group->decides == TT_DECIDES_FIRST && self->groups[i].decides == TT_DECIDES_FIRST)
            return tt_err(
                TT_CONFIG, "the first of '%s' and that of '%s' cannot both decide", self->groups[i].name, group->name);
    }
    if (group->decides == TT_DECIDES_FIRST && (!ordinal || step || group->want < 1))
        return tt_err(TT_CONFIG,
            "group '%s': who decides first needs a place 0 (ordinal, at least one) that does not restart the job",
            group->name);
    if (group->decides == TT_DECIDES_FIRST && (group->deciding < 0 || group->deciding >= group->want))
        return tt_err(TT_CONFIG, "group '%s': place %d decides, of %lld", group->name, (int)group->deciding,
            (long long)group->want);
    if ((ordinal || step) && group->want < 0)
        return tt_err(TT_CONFIG, "group '%s' has places, or restarts the job: it needs a number", group->name);
    if (group->once && !ordinal)
        return tt_err(TT_CONFIG, "group '%s': who ended well keeps its place, and it has none (random)", group->name);
    if (group->want >= 0 && group->min > group->want)
        return tt_err(
            TT_CONFIG, "group '%s': %lld of at least %lld", group->name, (long long)group->want, (long long)group->min);
    TT_TRY(s_check_link(self, at, group->after, "comes after"));
    if (group->after != TT_GROUP_NONE && self->groups[group->after].identity != TT_ID_ORDINAL)
        return tt_err(TT_CONFIG, "group '%s' comes after '%s', which has no place 0: it is not ordinal", group->name,
            self->groups[group->after].name);
    return s_check_link(self, at, group->owner, "belongs to");
}

tt_status_t rules_check(const tt_rules_t *self)
{
    for (size_t i = 0; i < self->group_count; i++)
        TT_TRY(s_check(self, i));
    return TT_OK;
}
