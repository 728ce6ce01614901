/*  leftovers - what an environment of Gymnasium's started in a session of its own, and did not end.
 *
 *  In a run the controller ends it. A command that plays by itself is told to: between the two calls what its workers leave behind comes
 *  to this process, which has no other children then.
 *
 *  Threads: one thread; uses waitpid(-1). */
#pragma once

void leftovers_watch(void);
void leftovers_end(void);
