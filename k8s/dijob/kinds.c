#include <string.h>
#include "k8s/dijob/dijob.h"

typedef struct {
    const char *label, *title, *port_env;
    int port;
} role_row_t;

static const role_row_t s_roles[DIJOB_ROLES] = {
#define X(name, label, title, env, port) [DIJOB_##name] = {label, title, env, port},
    DIJOB_ROLE_MAP(X)
#undef X
};

static const char *const s_phases[DIJOB_PHASES] = {
#define X(name, text) [DIJOB_PHASE_##name] = text,
    DIJOB_PHASE_MAP(X)
#undef X
};

/*  A role from outside the table is a mistake of ours. */
static const role_row_t *s_role(dijob_role_t role)
{
    TT_CHECK((unsigned)role < DIJOB_ROLES);
    return &s_roles[role];
}

const char *dijob_role_label(dijob_role_t role)
{
    return s_role(role)->label;
}

const char *dijob_role_title(dijob_role_t role)
{
    return s_role(role)->title;
}

const char *dijob_role_port_env(dijob_role_t role)
{
    return s_role(role)->port_env;
}

int dijob_role_port(dijob_role_t role)
{
    return s_role(role)->port;
}

dijob_role_t dijob_role_find(const char *label)
{
    int role = 0;
    while (role < DIJOB_ROLES && (!label || strcmp(s_roles[role].label, label) != 0))
        role++;
    return (dijob_role_t)role;
}

const char *dijob_phase_name(dijob_phase_t phase)
{
    TT_CHECK((unsigned)phase < DIJOB_PHASES);
    return s_phases[phase];
}

bool dijob_phase_final(dijob_phase_t phase)
{
    return phase == DIJOB_PHASE_SUCCEEDED || phase == DIJOB_PHASE_FAILED;
}

int dijob_group(dijob_role_t role, int task)
{
    return role == DIJOB_TASK ? DIJOB_ROLES + task : (int)role;
}
