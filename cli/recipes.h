/*  recipes - which config is meant by what stands on a command line: a file, a bundled config, or an environment.
 *
 *  Bundled configs lie in PREFIX/share/tutti/configs of the binary in PREFIX/bin; in a build tree that is a link to
 *  configs/. The best one of an environment: recipes.def.
 *
 *  Threads: pure but for the file system. */
#pragma once
#include <stdio.h>
#include "common/base/status.h"

typedef struct {
    char path[4096]; /* the config's file; "" = none: every setting at its default */
    char env[512];   /* the environment, where path is "", or is for another one of its family */
    char note[1024]; /* what was chosen, for a person; "" = nothing to say          */
    bool by_env;     /* the operand is an environment                               */
    bool hides;      /* path is a file that hides an environment of the same name  */
} recipe_t;

/*  A file of that name wins, then a bundled config, then an environment: its best bundled config, that of the first of its family
 *  ("MinAtar/"), or none at all.
 *  TT_NOT_FOUND: neither; the text names the nearest. TT_USAGE: a folder of manifests. Whether the file can be read is not looked at. */
tt_status_t recipe_find(recipe_t *out, const char *operand);

/*  The bundled config of the same task by another algorithm, as cartpole-dqn beside cartpole-ppo, in out[256]; false: there is none. */
bool recipe_beside(const recipe_t *self, const char *algorithm, char *out);

/*  Is it the path of a shared object? */
bool recipe_is_object(const char *text);

/*  The bundled configs, a name a line. */
void recipe_print_names(FILE *out);
