/*  orphans - finding and ending processes below us that nobody else answers for.
 *
 *  Threads: one thread; uses waitpid(-1), so the caller's other children are reaped too. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/*  Has a process no environment, and not only none just now, in the middle of exec(2)? So has one that is gone. */
bool tt_orphans_is_bare(pid_t pid);
/*  Send `signal` to every direct child of this process whose environment holds `mark` ("NAME=value"; NULL = any child)
 *  and that `spare` (may be NULL) does not want kept. Returns how many got it. */
int tt_orphans_signal(int signal, const char *mark, bool (*spare)(void *ctx, pid_t pid), void *ctx);

/*  Kill all descendants and reap them until none is left; as a child subreaper that reaches what they leave behind too.
 *  Returns false when something survived wait_ms. */
bool tt_orphans_end(int wait_ms);
