/*  local - TFJobs on one machine (local/): what is asked of them beside what the operator asks. Pure. */
#pragma once
#include "k8s/front/front.h"

extern const front_local_t tfjob_local;
