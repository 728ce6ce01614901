/*  members - the command lines of ours in the manifest of a job: what `check` and `run` read of them before a pod does.
 *
 *  With `engine: tutti` a container without a command, or with `command: [tutti]`, is this program. Its options are read by the table of
 *  its command, and the settings of a coordinator (--config, --set, --seed) as `check` reads a config. What only the pod can know is left
 *  out: a word with $(NAME) in it, a file of a volume or of the working directory, settings where the container's environment names another
 *  Python.
 *
 *  Threads: main thread (getopt). */
#pragma once
#include "local/local.h"

/*  say is told of members that would have nothing to do. TT_USAGE, TT_CONFIG and what else a config may be refused for:
 *  "spec.coordinator.template.spec.containers[0]: what". */
tt_status_t members_check(const local_manifest_t *manifest, local_say_fn say, void *ctx);
