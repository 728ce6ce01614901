/*  task - what the commands of `tutti task` share. */
#pragma once
#include "cli/options.h"
#include "task/store.h"

/*  --cpu and --gpu, where they are given, are kept as the registry's slots (task/engine.h). */
tt_status_t task_set_slots(const tt_args_t *args, store_t *store);
