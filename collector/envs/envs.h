/*  envs - the tables of the native environments, declared from envs.def. */
#pragma once
#include "collector/env.h"

#define TT_ENV(name) extern const tt_env_ops_t tt_env_##name;
#include "collector/envs/envs.def"
#undef TT_ENV
