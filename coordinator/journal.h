/*  journal - what a coordinator must still know after it died: RUN_DIR/journal.db, SQLite in WAL mode.
 *
 *  Rosters, generations, era, replicas asked for, snapshots and the end; never a row per batch. A roster is written
 *  before it is sent, so nothing that anybody was told is ever forgotten. synchronous=NORMAL: a killed process loses
 *  nothing; a power failure may lose the last rows, but then every process that knew them is gone too.
 *
 *  Errors: TT_IO (disk full and the like), TT_DATA (damaged, or not our journal), always with the path and what to do.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "coordinator/roster.h"

typedef struct journal journal_t; /* opaque */

typedef struct {
    bool found;       /* an earlier coordinator had this run                                    */
    int64_t start_ns; /* process start of the `tutti run` it belonged to                        */
    char *boot;       /* owned; whose CLOCK_MONOTONIC its times are of, NULL or "" = not known  */
    roster_past_t roster;
    roster_past_member_t *members;    /* owned; roster.members points here                               */
    char *restore;                    /* owned; roster.restore points here                               */
    int64_t desired[ROSTER_ROLES];    /* replicas asked for by scaling; -1 = never                       */
    int64_t configured[ROSTER_ROLES]; /* what the config said when the session began; -1 = not known  */
    int64_t first_step_ns, solved_ns;
    uint64_t solved_steps, first_steps;
    char *restored;    /* owned; JSON of journal_restored, NULL = the session began with version 0 */
    char *end;         /* owned; the end's JSON, NULL = not ended                                */
    uint32_t end_code; /* exit code of the end                                                   */
} journal_past_t;

typedef struct {
    char path[4096];
    uint32_t era;
    uint64_t update, env_steps;
    double return_mean;
} journal_snapshot_t;

/*  Open or make. TT_DATA: damaged or foreign. */
tt_status_t journal_open(journal_t **self_p, const char *path);
void journal_close(journal_t **self_p);

tt_status_t journal_load(journal_t *self, journal_past_t *out);
void journal_past_free(journal_past_t *self);

/*  A session (one `tutti run` or `tutti resume`) begins: forgets the end of the one before, and its times.
 *  boot: of the host, "" = not known. first_steps: env steps that are trained already. */
tt_status_t journal_session(journal_t *self, int64_t start_ns, const char *boot, uint64_t first_steps);
/*  The session goes on by the clock of another boot: its times begin anew. */
tt_status_t journal_clock(journal_t *self, int64_t start_ns, const char *boot);
tt_status_t journal_roster(journal_t *self, const tt_msg_ROSTER_t *roster, uint32_t rolled_back);
/*  The newest roster's era cannot begin: it is not fresh any more. */
tt_status_t journal_not_fresh(journal_t *self);
tt_status_t journal_desired(journal_t *self, tt_peer_role_t role, uint32_t count);
tt_status_t journal_configured(journal_t *self, tt_peer_role_t role, uint32_t count);
tt_status_t journal_snapshot(journal_t *self, const journal_snapshot_t *snapshot);
tt_status_t journal_first_step(journal_t *self, int64_t time_ns);
/*  The run was another coordinator's until then (progress_count_from). */
tt_status_t journal_count_from(journal_t *self, uint64_t env_steps, int64_t time_ns);
tt_status_t journal_solved(journal_t *self, int64_t time_ns, uint64_t env_steps);
/*  A roll-back took the solution away. */
tt_status_t journal_unsolved(journal_t *self);
/*  From which snapshot the session goes on (restore.h). */
tt_status_t journal_restored(journal_t *self, const char *json);
tt_status_t journal_end(journal_t *self, const char *json, uint32_t code);

/*  The snapshot of this path (relative to the run directory). TT_NOT_FOUND: there is none. */
tt_status_t journal_find_snapshot(journal_t *self, const char *path, journal_snapshot_t *out);
/*  Calls back for each snapshot, newest first, until it returns false. */
tt_status_t journal_snapshots(journal_t *self, bool (*each)(void *ctx, const journal_snapshot_t *snapshot), void *ctx);
