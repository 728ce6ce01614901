/*  restore - from which snapshot a run goes on, or goes back to: the newest of its folder that is whole.
 *
 *  The folder decides, not the journal, which may be lost, empty, or without its log: a snapshot that it does not know is
 *  adopted, and said so. One that is damaged is passed over for the one before it, and said so: in the log, to watchers
 *  (EVENT warning), and in the summary. So is one whose replay is (EVENT damaged): rank 0 reads it, not the coordinator, which must not be
 *  silent for as long as that may take. Where there are snapshots and none is whole, or the journal names some and none is
 *  there, the run does not begin again with version 0: it is refused; so it is where the folder cannot be read. A run that has had a life and
 *  has no snapshot, as far as anybody knows, begins anew, and says so in the same places.
 *
 *  Threads: the coordinator's. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include "common/base/status.h"

typedef struct coordinator coordinator_t;

typedef struct {
    bool chosen;        /* before the first roster: what that will say                                          */
    tt_status_t status; /* of the newest choice                                                                 */
    char path[4608];    /* absolute; "" = version 0                                                             */
    json_t *
        story; /* {"snapshot", "updates", "adopted", "passed_over": [{"snapshot", "reason"}]}; NULL = a run begins; snapshot null: anew */
    bool untold;   /* the story is new                                                                     */
    bool lived;    /* the run has had a life before this one                                               */
    json_t *known; /* {"00000123.safetensors": why it cannot be gone on from}, though it is whole; NULL = none    */
} restore_t;

/*  Choose now. coordinator->snapshot is it, .path "" = version 0. TT_DATA, TT_NOT_FOUND, TT_DENIED, TT_IO: refused, as above. */
tt_status_t restore_choose(coordinator_t *self);
/*  Rank 0 cannot go on from what it was told to, says `text`: "NAME: why". That is not chosen again in this life of the coordinator. false:
 *  it is about another snapshot than the one that was chosen last. */
bool restore_refuse(coordinator_t *self, const char *text);
/*  Is it the run's last word: the final snapshot, with nothing passed over? */
bool restore_is_final(const coordinator_t *self);
/*  roster_publish's: the path, chosen now unless it has been already. ctx is the coordinator; look at restore.status. */
const char *restore_path(void *ctx);
/*  A roster with it went out: tell whoever watches. */
tt_status_t restore_tell(coordinator_t *self);
/*  As the journal has it, for a coordinator that was restarted. path: what the newest roster, if it is fresh, says to
 *  begin from; NULL or "" = none. */
void restore_recall(coordinator_t *self, const char *story, const char *path);
void restore_free(coordinator_t *self);
