/*  local - what the local run asks of a DIJob beside what the operator asks. Nobody outside this folder includes it. */
#pragma once
#include "k8s/front/front.h"

extern const front_local_t dijob_local;
