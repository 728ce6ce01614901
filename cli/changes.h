/*  changes - what a resumed run's config has become, against what it was, and whether that may be.
 *
 *  The tables say what may change (tt_cfg_field_t.resume): what decides a result may not, or only when it is given with
 *  --set, so that it is recorded; how the run is run may.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include "cli/setup.h"

/*  before: a resolved config, old: by an older version; whose: what it is of, for messages ("the run", "checkpoints/final.safetensors"). *out (may be
 *  NULL: only what is fixed is compared): [{"key", "from", "to"}], new reference.
 *  TT_CONFIG: a key that may not change has, with its place, both values, and what to do. */
tt_status_t tt_changes(json_t **out, const tt_setup_t *setup, const char *before, bool old, const char *whose);

/*  Before the settings are looked at as a whole: what is fixed, and changed in `text` (the run's config, as it is now) or by --set,
 *  is refused by its own name and not as something that another setting does not fit to. What cannot be read at all is for
 *  tt_setup_from_run to say: TT_OK. */
tt_status_t tt_changes_fixed(
    const tt_args_t *args, const char *path, const char *text, const char *before, bool old, const char *whose);

/*  Is a key that begins with `prefix` among them? */
bool tt_changes_any(const json_t *changes, const char *prefix);
/*  "learner.threads 1 -> 2, ..." for a person; new text. */
char *tt_changes_text(const json_t *changes);
