/*  worker - one Python process: started, told, listened to, ended.
 *
 *  It has descriptors 0 (/dev/null), 1 and 2 (a pipe to our log), 3 (a socket) and 4 (the rows' memory) and no others of ours,
 *  a process group of its own, in which what it forks is found, SIGINT ignored, and dies with the thread that started it.
 *  What goes wrong is said once, with the status that it means; then only end is to be called.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "collector/gym/rows.h"
#include "collector/gym/strays.h"
#include "collector/gym/turn.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/status.h"

enum {
    GYM_START_S = 60, /* to import, make and reset, unless TT_ENV_START_S says otherwise */
    GYM_SPIN_US = 300 /* how long whoever waits for the other looks before it sleeps     */
};

typedef struct {
    const char *id;                 /* of the env, for the log; borrowed                              */
    int number;                     /* for the log, -1 = the probe                                    */
    uint32_t first, lo;             /* a slot of its, and the number of slot 0's env                  */
    const gym_progress_t *progress; /* NULL = there are no rows; borrowed                             */
    int start_s, step_s;            /* deadlines: of making and reset, of a step                      */
    const tt_clock_t *clock;        /* of these; NULL = the real one                                  */
    pid_t pid;                      /* 0 = none */
    char mark[GYM_MARK];            /* what it starts has it, too; "" = it was not started */
    int pidfd, socket, log;         /* -1 = closed */
    tt_buf_t in;                    /* what has come over the socket */
    char line[1024];                /* what has come of a line for the log */
    size_t used;
    int traceback;    /* 0 = none, 1 = the next line is where it stood, 2 = `last` is that */
    char last[256];   /* the last line, for a message               */
    gym_turn_t turn;  /* rounds                                       */
    bool told;        /* it owes an answer to messages, however many   */
    bool heard[3];    /* since it was looked at: its socket, its end, its log */
    int unsent;       /* why something could not be sent although it lives, an errno; 0 = all was */
    int64_t heard_ms; /* when all of a list were listened to, in the first one */
    int64_t since_ms; /* since when it has not moved                */
    int32_t seen[3];  /* where it was then                          */
    uint64_t moves;   /* how often it was elsewhere when it was waited for */
} gym_worker_t;

/*  python: the interpreter; package: the folder to run; memory: -1 = none. The rest of self is the caller's to fill in before.
 *  TT_OS; TT_NOT_FOUND: the interpreter cannot be executed. */
tt_status_t gym_worker_start(gym_worker_t *self, const char *python, const char *package, int memory);

/*  A message, or a round of one half of its slots, 0 or 1, which is not under way; it owes an answer from then on. Both halves may be under way:
 *  they are played, and answered, one after the other. move: the message that it was told first,
 *  of another range, and the memory of that; it answers as it did then. One that is gone is found so by the wait for its answer, which reads its
 *  last words first. */
void gym_worker_tell(gym_worker_t *self, const json_t *message);
void gym_worker_move(gym_worker_t *self, const json_t *message, int memory);
void gym_worker_go(gym_worker_t *self, uint32_t half);

/*  Wait until one that owes an answer has given it. message: to a message, which is *out (new; the caller's to release); else to a round, and turn.came
 *  is the half that it has played. *which is its number in the list; that which it has before is looked at first, so that each comes to its turn.
 *  TT_INTERNAL, TT_NOT_FOUND, TT_INVALID: it says why it failed, or has died, or is not done in time;
 *  TT_UNAVAILABLE: it was killed, or this machine could not carry to it what was sent. */
tt_status_t gym_worker_wait(gym_worker_t *list, uint32_t count, bool message, uint32_t *which, json_t **out);

/*  The same of rounds, for a second at most: TT_AGAIN, nobody has answered. `moves` of those that get on may have grown. */
tt_status_t gym_worker_wait_a_moment(gym_worker_t *list, uint32_t count, uint32_t *which);

/*  Somebody in the list has been heard of who has not been looked at: gym_worker_wait need not wait. */
bool gym_worker_ready(const gym_worker_t *list, uint32_t count);

/*  Their range is over: each closes all but keep[i] of its envs, and lets go of the memory, within the time that an end takes. Who does not
 *  come back is ended (pid = 0), as it would be with its range. */
void gym_worker_shed(gym_worker_t *list, uint32_t count, const uint32_t *keep);

/*  End them all, and what they have started, also in sessions of its own: a moment for those that are idle to close their envs, none for the others. */
void gym_worker_end(gym_worker_t *list, uint32_t count);
