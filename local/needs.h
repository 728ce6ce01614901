/*  needs - what the containers of a job want of this machine that is not on it: said before the job starts.
 *
 *  A cluster has images; here a container's programs are this machine's. A word of a script that is no program may still come to be
 *  one (an earlier line installs it), so these are notes and not errors.
 *
 *  Pure but for looking into the PATH. Threads: any. */
#pragma once
#include <jansson.h>
#include "k8s/front/front.h"
#include "local/place.h"

/*  One line for each program that is missing, with who wants it and which image has it, and for each container whose image alone
 *  knows what to run; how many lines. job: as local_read gives it. */
size_t needs_say(const front_t *front, const json_t *job, local_say_fn say, void *ctx);

/*  The commands that a script of a POSIX shell or bash begins its lines with, without those of the shell itself: an array of strings,
 *  each once. Substitutions, here-documents, quoted words and everything behind a `case` are left out. A new reference. */
json_t *needs_of_script(const char *script);
