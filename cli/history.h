/*  history - RUN_DIR/history.jsonl: the lives of a run, one `tutti run` and any number of `tutti resume`.
 *
 *    {"event": "began", "life": 2, "at": "2026-11-22T02:57:00Z", "changed": [{"key", "from", "to"}], "config": "<YAML>"
 *     , "upgraded": "algorithm.entropy is algorithm.entropy_coef now"}      (the first that a newer version began)
 *    {"event": "ended", "life": 2, "at": ..., "summary": {...}}
 *
 *  `config` is the resolved config that the life was begun with; a later one is compared with it. Lines are only added, so
 *  no summary is lost. One that a crash tore, or that is not ours, is skipped.
 *
 *  Threads: the holder of the run's lock writes, anybody reads. */
#pragma once
#include <jansson.h>
#include <stdint.h>
#include "controller/rundir.h"

/*  All lines, [] when there are none; new reference. TT_IO. */
tt_status_t tt_history_read(const tt_rundir_t *run, json_t **out);
/*  The newest line of that kind ("began", "ended"); borrowed, NULL = none. */
const json_t *tt_history_last(const json_t *history, const char *event);

/*  A life begins: what the life before left as its summary is kept here and taken away there. resumed: there was one before,
 *  though the history may not know. changed and upgraded may be NULL. *life: its number, from 1. TT_IO. */
tt_status_t tt_history_begin(const tt_rundir_t *run, bool resumed, const json_t *changed, const char *upgraded,
    const char *config, uint32_t *life);
/*  It ended. TT_IO. */
tt_status_t tt_history_end(const tt_rundir_t *run, uint32_t life, json_t *summary);

/*  How the life before ended: summary.json, or what its coordinator said (result.json). NULL: neither; new reference. */
json_t *tt_history_summary(const tt_rundir_t *run);
