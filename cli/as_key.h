/*  as_key - a word that is no option, as the setting that it is in a config: --clip_range of Stable-Baselines3, --num-envs of ours.
 *
 *  Threads: constant. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/*  What to write for `--name` where there is --set: "here it is '--set algorithm.clip=VALUE'", or why there is nothing to be set. '-' counts
 *  as '_'. False: no key of ours is called that, or several sections have it, and no other trainer's word is it. */
bool as_key(char *out, size_t size, const char *name);
