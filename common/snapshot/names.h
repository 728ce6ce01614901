/*  names - what the arrays and the metadata of a snapshot are called; snapshot.h says what they hold. For this folder. */
#pragma once

#define NAME_UPDATE     "tutti.update"
#define NAME_STEP       "tutti.step"
#define NAME_STEPS      "tutti.steps"
#define NAME_OPT_STEP   "tutti.optimizer.step"
#define NAME_OPT_STATE  "tutti.optimizer.state"
#define NAME_MADE       "tutti.made"
#define NAME_TRAINED    "tutti.trained"
#define NAME_LAG_MAX    "tutti.lag_max"
#define NAME_SOLVED     "tutti.solved"
#define NAME_BEST       "tutti.best"
#define NAME_ENV_STATES "tutti.env_states"
#define NAME_SUM        "tutti.sum"
#define NAME_SUM_STEP   "tutti.sum.step"
#define NAME_EPISODES   "tutti.episodes"
#define NAME_RETURNS    "tutti.returns"
#define NAME_REPLAY     "tutti.replay"
#define NAME_PIECES     "tutti.replay.pieces"
#define NAME_FILES      "tutti.replay.files"
#define NAME_HASHES     "tutti.replay.hashes"
#define NAME_WAITING    "tutti.evaluate"
/*  printf formats; the version is an unsigned long long */
#define NAME_GROUP_STEP     "tutti.optimizer.%s.step" /* the name of a group: where there are several */
#define NAME_GROUP_STATE    "tutti.optimizer.%s.state"
#define NAME_PARAMS         "tutti.version.%llu.params"
#define NAME_NORM           "tutti.version.%llu.norm"
#define NAME_REWARD         "tutti.version.%llu.reward"
#define NAME_WAITING_PARAMS "tutti.evaluate.%llu.params"
#define NAME_WAITING_NORM   "tutti.evaluate.%llu.norm"
#define NAME_SET            "tutti.set.%u" /* the number of a parameter set that follows the trained one */

#define META_FORMAT      "format"
#define META_CONFIG      "config"
#define META_ENV         "env"
#define META_ALGORITHM   "algorithm"
#define META_UPDATE      "update"
#define META_RETURN_MEAN "return_mean"
#define META_SHA256      "weights_sha256"
#define META_HOLDS       "holds" /* "weights": nothing else, so that nobody goes on from it */

#define HOLDS_WEIGHTS   "weights"
#define FORMAT_NOW      "tutti-2"
#define FORMAT_UNSEALED "tutti-1" /* of tutti 0.1: the same arrays, no checksum */
