/*  cache - what was found out about an environment, kept for the next process that asks the same.
 *
 *  A file for each question in $XDG_CACHE_HOME/tutti/gym (~/.cache/tutti/gym), which holds the question, the answer, and what that was read from: an answer
 *  whose files have changed is none. A folder that is not ours alone, a file that is damaged: as if there were nothing. Nothing here
 *  fails; the folder may be removed at any time.
 *  Threads: pure but for the file system. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include "collector/gym/trial.h"

typedef struct {
    json_t *about;         /* what the probe said, with its "sources"           */
    gym_verdict_t verdict; /* of its state; "" = nobody has tried it            */
} gym_answer_t;

/*  All that the answer depends on but for files: what workers are told, the interpreter, our package, this host, and what of the environment
 *  Python and its libraries read. New. */
json_t *gym_cache_question(const json_t *asked, const char *python, const char *package);
/*  False: nothing is kept, or it is no longer true. out->about is new. */
bool gym_cache_get(gym_answer_t *out, const json_t *question);
/*  Nothing is kept of what has just been changed: a second change could not be told from that. */
void gym_cache_put(const gym_answer_t *answer, const json_t *question);
void gym_cache_forget(const json_t *question);
