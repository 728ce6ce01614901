/*  policy - spec.podFailurePolicy, in the words of batch/v1's Job: which exit codes end a job, whatever else is said of failures.
 *
 *  Of its actions FailJob and Count are known, of its conditions onExitCodes without containerName (a pod's main container is meant). The
 *  first rule that a code meets decides of it. Pure; `wrong` as in spec.h. */
#pragma once
#include "common/job/rules.h"
#include "k8s/front/spec.h"

enum { POLICY_RULES_MAX = 20, POLICY_VALUES_MAX = 255 };

/*  `codes`: those that end it where no rule meets them; then also those that do by a rule. False: there is no policy, nothing was changed. */
bool policy_read(char **wrong, const json_t *spec, tt_code_set_t *codes);
