/*  The zoo as a shared object: every kind of space, through a whole run. */
#include "tests/collector/zoo.h"

const tt_env_ops_t *tutti_env(void);

const tt_env_ops_t *tutti_env(void)
{
    return &zoo_env_many;
}
